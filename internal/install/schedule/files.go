package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	settled   = 2 * time.Second // how long a file must be unchanged
	mostFiles = 10000           // that one schedule may watch
)

func checkGlob(glob string) error {
	if !doublestar.ValidatePattern(glob) || !fs.ValidPath(glob) {
		return misused("--on: %q is not a glob below the folder; use one such as inbox/*.csv", glob)
	}
	return nil
}

// look records new and changed files, each content once. First records all files as known without occasions. A
// file that is still changing is left for later. Links are not followed, except one to a folder below Root that
// the glob names.
func (s *Schedule) look(ctx context.Context, now time.Time, first bool) error {
	if s.Files == "" {
		return nil
	}
	root, err := os.OpenRoot(s.Root)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	there := map[string]bool{}
	err = doublestar.GlobWalk(root.FS(), s.Files, func(name string, d fs.DirEntry) error {
		if !d.Type().IsRegular() {
			return ctx.Err()
		}
		if there[name] = true; len(there) > mostFiles {
			return fmt.Errorf("%s names more than %d files", s.Files, mostFiles)
		}
		return errors.Join(ctx.Err(), s.seen(root, name, now, first))
	}, doublestar.WithNoFollow())
	if err != nil {
		return err
	}
	for _, name := range sortedKeys(s.Seen) {
		if !there[name] {
			delete(s.Seen, name)
		}
	}
	return nil
}

// seen records one file.
func (s *Schedule) seen(root *os.Root, name string, now time.Time, first bool) error {
	info, err := root.Lstat(name)
	if err != nil || !first && now.Sub(info.ModTime()) < settled {
		return nil //nolint:nilerr // it is gone, or still changing
	}
	var size, changed int64
	var digest string
	_, _ = fmt.Sscan(s.Seen[name], &size, &changed, &digest)
	if s.Seen[name] != "" && size == info.Size() && changed == info.ModTime().UnixNano() {
		return nil
	}
	sum, err := digestOf(root, name)
	if err != nil {
		return nil //nolint:nilerr // it is gone, or unreadable, which may change
	}
	state := fmt.Sprint(info.Size(), info.ModTime().UnixNano(), " ", sum)
	if !first && sum != digest {
		event, err := json.Marshal(map[string]string{"path": name})
		if err != nil {
			return err
		}
		if !s.add(Occasion{Key: name + " " + sum[:16] + info.ModTime().UTC().Format(" 20060102T150405.000000000"), At: now, Event: event}) {
			return nil // retry later
		}
	}
	s.saw(name, state)
	return nil
}

func digestOf(root *os.Root, name string) (string, error) {
	f, err := root.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

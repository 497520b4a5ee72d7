package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/store"
)

// Leftover is something in the store that belongs to no session.
type Leftover struct {
	Path string
	Spec bool  // a tool spec that no log refers to; else an incomplete file of a crash
	Size int64 // bytes
}

// Leftovers lists files that have not changed since before and belong to no session: incomplete sessions, blobs
// and specs of crashes, half made or half removed, and tool specs that no log refers to. To find the latter it
// reads all logs, if there are specs so old.
func (s *Store) Leftovers(ctx context.Context, before time.Time) ([]Leftover, error) {
	out, err := s.halfDone(ctx, before)
	if err == nil {
		var unused []Leftover
		unused, err = s.unused(ctx, before)
		out = append(out, unused...)
	}
	if err != nil {
		return nil, fmt.Errorf("look for leftovers: %w", err)
	}
	return out, nil
}

// Sweep deletes the files that Leftovers lists.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	list, err := s.Leftovers(ctx, before)
	var specs []string
	for _, l := range list {
		if l.Spec {
			specs = append(specs, l.Path)
		} else {
			err = errors.Join(err, s.drop(l.Path, before))
		}
	}
	if len(specs) == 0 {
		return err
	}
	return errors.Join(err, s.withSpecs(func() (err error) {
		for _, path := range specs { // unless a session has begun to use it since
			err = errors.Join(err, s.drop(path, before))
		}
		return err
	}))
}

// halfDone lists leftovers of crashes.
func (s *Store) halfDone(ctx context.Context, before time.Time) (out []Leftover, err error) {
	names, err := s.names(s.Dir)
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		path := filepath.Join(s.Dir, name)
		switch {
		case strings.HasPrefix(name, putMark) && s.unchanged(path, before):
			out = append(out, Leftover{Path: path, Size: s.length(path)})
		case strings.HasPrefix(name, buildMark) || strings.HasPrefix(name, removeMark):
			if s.unchanged(path, before) {
				size, _ := s.usage(ctx, path)
				out = append(out, Leftover{Path: path, Size: size})
			}
		case store.IsID(name):
			out = append(out, s.halfPut(filepath.Join(path, blobsName), before)...)
		case name == specsName:
			out = append(out, s.halfPut(path, before)...)
		}
	}
	return out, err
}

// halfPut lists incompletely written files in a folder.
func (s *Store) halfPut(dir string, before time.Time) (out []Leftover) {
	names, _ := s.names(dir)
	for _, name := range names {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, putMark) && s.unchanged(path, before) {
			out = append(out, Leftover{Path: path, Size: s.length(path)})
		}
	}
	return out
}

// unused lists the specs that no log refers to. An unreadable log may refer to all.
func (s *Store) unused(ctx context.Context, before time.Time) (out []Leftover, err error) {
	names, err := s.names(s.specsDir())
	old := map[string]bool{}
	for _, name := range names {
		digest, ok := strings.CutSuffix(name, specExt)
		if ok && isDigest(digest) && s.unchanged(s.specPath(digest), before) {
			old[digest] = true
		}
	}
	if err != nil || len(old) == 0 {
		return nil, err
	}
	all, err := s.names(s.Dir)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(all) { // a fork may be in progress
		if store.IsID(strings.TrimPrefix(name, buildMark)) && len(old) > 0 {
			if err := s.named(ctx, s.logPath(name), old); err != nil {
				return nil, err
			}
		}
	}
	for digest := range old {
		path := s.specPath(digest)
		out = append(out, Leftover{Path: path, Spec: true, Size: s.length(path)})
	}
	slices.SortStableFunc(out, func(a, b Leftover) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// named removes the specs that a log may refer to from the set.
func (s *Store) named(ctx context.Context, path string, specs map[string]bool) error {
	const whole = len(specHead) + digestLen // of a reference, without the quote at its end
	f, err := s.fs().Open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, chunk)
	for off := int64(0); ; {
		n, err := f.ReadAt(buf, off)
		for rest := buf[:n]; len(rest) >= whole; {
			at := bytes.Index(rest, []byte(specHead))
			if at < 0 || len(rest)-at < whole {
				break
			}
			delete(specs, string(rest[at+len(specHead):at+whole]))
			rest = rest[at+whole:]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		off += int64(n - whole) // one may cross the end of this part
	}
}

// names lists a folder; a missing one is empty.
func (s *Store) names(dir string) ([]string, error) {
	names, err := s.fs().ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return names, err
}

// unchanged reports whether a file exists and has not changed since a time.
func (s *Store) unchanged(path string, before time.Time) bool {
	f, err := s.fs().Open(path, os.O_RDONLY)
	if err != nil {
		return false
	}
	at, err := f.Changed()
	return errors.Join(err, f.Close()) == nil && at.Before(before)
}

// drop deletes a file that has not changed since a time.
func (s *Store) drop(path string, before time.Time) error {
	if !s.unchanged(path, before) {
		return nil
	}
	return s.fs().Remove(path)
}

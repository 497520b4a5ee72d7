package consent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/rawjson"
)

const (
	version = 1
	maxFile = 16 << 20           // bytes of one file
	others  = fs.FileMode(0o077) // permissions that others must not have
	writers = fs.FileMode(0o022) // permissions that make content untrustworthy
	remedy  = "put back a copy, or remove the file: everything in it is then asked again"
)

// envelope is the format of a file. The sum is over the entries without white space, so that damage can never
// widen a rule.
type envelope struct {
	Version int             `json:"version"`
	Sum     string          `json:"sha256"`
	Entries json.RawMessage `json:"entries"`
}

// load reads a file. It needs no lock, since files are replaced atomically. A missing file is empty.
func load[T any](s *Store, name string) ([]T, error) {
	if s.Dir == "" {
		return nil, errors.New("consent: no folder is set")
	}
	if err := checkMode(s.Dir, fs.ModeDir, 0o700); err != nil {
		return nil, ignoreMissing(err)
	}
	path := filepath.Join(s.Dir, name)
	if err := checkMode(path, 0, 0o600); err != nil {
		return nil, ignoreMissing(err)
	}
	data, err := readBounded(path)
	if err != nil {
		return nil, ignoreMissing(err)
	}
	var list []T
	if err := decode(data, &list); err != nil {
		return nil, fmt.Errorf("%s %w; %s", path, err, remedy)
	}
	return list, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// checkMode rejects a file of the wrong type or one that others could have written, and removes others' read
// permission.
func checkMode(path string, want, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && want == fs.ModeDir && info.Mode()&fs.ModeSymlink != 0 {
		info, err = os.Stat(path) // a folder may be a link
	}
	switch {
	case err != nil:
		return fmt.Errorf("read consent: %w", err)
	case info.Mode().Type() != want:
		return fmt.Errorf("%s is not the file that inspan put there, but has type %q: look at it, then remove it", path, info.Mode().Type())
	case runtime.GOOS == "windows":
		return nil
	case info.Mode()&writers != 0:
		return fmt.Errorf("%s can be changed by other users: check its content, then remove that right with chmod %o, or remove it", path, mode)
	case info.Mode()&others != 0:
		if err := os.Chmod(path, mode); err != nil {
			return fmt.Errorf("other users can read consent, and that can't be changed: %w", err)
		}
	}
	return nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	return data, nil
}

// decode decodes the content of a file. Its errors continue the name of the file.
func decode(data []byte, list any) error {
	if len(data) > maxFile {
		return fmt.Errorf("is longer than %d bytes", maxFile)
	}
	var e envelope
	// Unknown fields belong to a later version with the same version number.
	if err := rawjson.Strict(data, &e); err != nil {
		return fmt.Errorf("is damaged (%w)", err)
	}
	if e.Version > version {
		return errors.New("was written by a later version of inspan; use that")
	}
	sum, _, err := seal(e.Entries)
	if err != nil {
		return fmt.Errorf("is damaged (%w)", err)
	}
	if e.Version != version || sum != e.Sum {
		return errors.New("is damaged or was changed by hand (its sum is wrong)")
	}
	if err := rawjson.Strict(e.Entries, list); err != nil {
		return fmt.Errorf("is damaged (%w)", err)
	}
	return nil
}

// seal returns the sum of entries and the entries without white space.
func seal(entries []byte) (sum string, compact []byte, err error) {
	var b bytes.Buffer
	if err := json.Compact(&b, entries); err != nil {
		return "", nil, err
	}
	return keep.SHA256(b.Bytes()), b.Bytes(), nil
}

func encode[T any](list []T) ([]byte, error) {
	if list == nil {
		list = []T{}
	}
	entries, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	sum, entries, err := seal(entries)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(envelope{version, sum, entries}, "", "  ")
	if err == nil && len(data) >= maxFile {
		err = fmt.Errorf("more than %d bytes would have to be remembered: revoke something first", maxFile)
	}
	return append(data, '\n'), err
}

// change replaces the content of a file with the result of edit, under the lock, unless edit reports no change.
func change[T any](ctx context.Context, s *Store, name string, edit func([]T) ([]T, bool)) error {
	if s.Dir == "" {
		return errors.New("consent: no folder is set")
	}
	if err := keep.MakeDir(s.Dir); err != nil {
		return fmt.Errorf("make the folder for consent: %w", err)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	list, err := load[T](s, name)
	if err != nil {
		return err
	}
	list, changed := edit(list)
	if !changed {
		return nil
	}
	data, err := encode(list)
	if err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	path := filepath.Join(s.Dir, name)
	keep.Sweep(path)
	if err := keep.Write(path, data); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	return nil
}

// lock locks the folder against other processes. If this process dies, the kernel releases the lock.
func (s *Store) lock(ctx context.Context) (unlock func(), err error) {
	path := filepath.Join(s.Dir, lockFile)
	if err := ignoreMissing(checkMode(path, 0, 0o600)); err != nil {
		return nil, err
	}
	l, err := keep.LockFile(ctx, path, keep.Patience)
	if err != nil {
		return nil, fmt.Errorf("lock consent: %w", err)
	}
	return func() { _ = l.Close() }, nil
}

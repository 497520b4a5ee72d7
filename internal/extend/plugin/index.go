package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/rawjson"
	"github.com/inspan/inspan/internal/base/text"
)

// Names in the folder of a store.
const (
	indexFile = "plugins.json"
	lockFile  = "lock"  // never renamed, never removed
	tempMark  = ".new-" // before the names of incomplete folders
)

const (
	version  = 1
	maxIndex = 1 << 20
	maxKept  = 500            // plugins
	stale    = 24 * time.Hour // after which an incomplete copy is abandoned
)

// index is the file that lists the installed plugins.
type index struct {
	Version int      `json:"version"`
	Plugins []record `json:"plugins"`
}

// record is one installed plugin.
type record struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Commit  string `json:"commit,omitempty"`
	Digest  string `json:"digest"`
	Enabled bool   `json:"enabled"`
}

func (r record) check() error {
	switch {
	case !validName(r.Name):
		return fmt.Errorf("%.80q is not the name of a plugin", r.Name)
	case !keep.IsDigest(r.Digest):
		return fmt.Errorf("%s has the invalid digest %.80q", r.Name, r.Digest)
	case r.Commit != "" && !matches(hexForm, r.Commit):
		return fmt.Errorf("%s has the invalid commit %.80q", r.Name, r.Commit)
	case r.Source == "" || len(r.Source) > maxSource || strings.ContainsFunc(r.Source, text.Hidden.Has):
		return fmt.Errorf("%s has an invalid source", r.Name)
	}
	return nil
}

// load reads the index. It needs no lock, since the file is replaced as a whole. A missing one is empty.
func (s *Store) load() ([]record, error) {
	if s.Dir == "" {
		return nil, errors.New("plugins: no folder is set")
	}
	at := filepath.Join(s.Dir, indexFile)
	info, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read plugins: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not the file that inspan put there, but has type %q: look at it, then remove it", at, info.Mode().Type())
	case runtime.GOOS != "windows" && info.Mode()&0o022 != 0:
		return nil, fmt.Errorf("%s can be changed by other users: check its content, then remove that right with chmod 600", at)
	}
	f, err := os.Open(at)
	if err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxIndex+1))
	if err != nil {
		return nil, fmt.Errorf("read plugins: %w", err)
	}
	list, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s %w; restore a copy of it, or remove it and install the plugins again; the installed folders next to it stay", at, err)
	}
	return list, nil
}

// decode reads an index. Its errors continue the name of the file.
func decode(data []byte) ([]record, error) {
	if len(data) > maxIndex {
		return nil, fmt.Errorf("is longer than %d bytes", maxIndex)
	}
	var head struct{ Version int }
	if json.Unmarshal(data, &head) == nil && head.Version > version {
		return nil, errors.New("was written by a later version of inspan: use that")
	}
	var x index
	if err := rawjson.Strict(data, &x); err != nil {
		return nil, fmt.Errorf("is damaged (%w)", err)
	}
	if x.Version != version {
		return nil, fmt.Errorf("is damaged (its version is %d)", x.Version)
	}
	seen := map[string]bool{}
	for _, r := range x.Plugins {
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("is damaged (%w)", err)
		}
		if seen[r.Name] {
			return nil, fmt.Errorf("is damaged (%s is there twice)", r.Name)
		}
		seen[r.Name] = true
	}
	return x.Plugins, nil
}

// change replaces the index with the result of edit, under the lock.
func (s *Store) change(ctx context.Context, edit func([]record) ([]record, error)) error {
	if err := s.createDir(); err != nil {
		return err
	}
	l, err := keep.LockFile(ctx, filepath.Join(s.Dir, lockFile), keep.Patience)
	if err != nil {
		return fmt.Errorf("lock plugins: %w", err)
	}
	defer func() { _ = l.Close() }()
	list, err := s.load()
	if err != nil {
		return err
	}
	if list, err = edit(list); err != nil {
		return err
	}
	if len(list) > maxKept {
		return fmt.Errorf("there are more than %d plugins: remove some first", maxKept)
	}
	s.sweep()
	return s.save(list)
}

// createDir makes the folder, only for this user.
func (s *Store) createDir() error {
	if s.Dir == "" {
		return errors.New("plugins: no folder is set")
	}
	if err := keep.MakeDir(s.Dir); err != nil {
		return fmt.Errorf("make the folder for plugins: %w", err)
	}
	return nil
}

// save replaces the index, under the lock.
func (s *Store) save(list []record) error {
	if list == nil {
		list = []record{}
	}
	data, err := json.MarshalIndent(index{version, list}, "", "  ")
	if err != nil {
		return err
	}
	at := filepath.Join(s.Dir, indexFile)
	keep.Sweep(at)
	if err := keep.Write(at, append(data, '\n')); err != nil {
		return fmt.Errorf("write plugins: %w", err)
	}
	return nil
}

// sweep removes incomplete folders of processes that were killed.
func (s *Store) sweep() {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), tempMark) && time.Since(info.ModTime()) > stale {
			os.RemoveAll(filepath.Join(s.Dir, e.Name()))
		}
	}
}

package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

const (
	indexFile = "MEMORY.md"
	topicDir  = "topics"
	tempMark  = ".new-" // in the names of files that are being written
	maxRead   = 1 << 20 // bytes of a file that is read at all
)

// home is the folder of a scope, opened so that no path leads out of it.
type home struct {
	scope Scope
	path  string
	root  *os.Root
	wrote *[]written // nil if nothing is written
}

// written is a file whose content was replaced.
type written struct {
	path          string
	before, after []byte
}

// folder opens the folder of a scope; with create, it creates the folder if needed.
func (s *Store) folder(scope Scope, create bool) (home, error) {
	dir, err := s.dir(scope)
	if err != nil {
		return home{}, err
	}
	inside := s.Root != "" && dir != s.Root && text.Inside(s.Root, dir)
	if !inside {
		if create {
			if err := os.MkdirAll(dir, dirPerm(scope)); err != nil {
				return home{}, fmt.Errorf("make the folder: %w", err)
			}
		}
		root, err := keep.OpenFolder(dir)
		return home{scope: scope, path: dir, root: root}, err
	}
	workspace, err := os.OpenRoot(s.Root)
	if err != nil {
		return home{}, err
	}
	defer func() { _ = workspace.Close() }()
	rel, err := filepath.Rel(s.Root, dir)
	if err == nil && create {
		err = workspace.MkdirAll(rel, dirPerm(scope))
	}
	if err != nil {
		return home{}, fmt.Errorf("make the folder: %w", err)
	}
	root, err := workspace.OpenRoot(rel)
	return home{scope: scope, path: dir, root: root}, err
}

// perm returns the mode of a new file. A person's own memory is readable for them alone.
func perm(s Scope) fs.FileMode {
	if s == Team {
		return 0o644
	}
	return 0o600
}

func dirPerm(s Scope) fs.FileMode {
	if s == Team {
		return 0o755
	}
	return 0o700
}

func (f home) close() { _ = f.root.Close() }

// read reads a regular file; info is nil if there is none.
func (f home) read(name string, most int64) (data []byte, info fs.FileInfo, err error) {
	before, err := f.root.Lstat(filepath.FromSlash(name))
	if missing(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file: links are not followed", f.name(name))
	}
	file, err := keep.OpenFile(f.root, filepath.FromSlash(name))
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is no longer a regular file", f.name(name))
	}
	data, err = io.ReadAll(io.LimitReader(file, most+1))
	if int64(len(data)) > most {
		return nil, nil, fmt.Errorf("%s is longer than %d bytes", f.name(name), most)
	}
	return data, info, err
}

func (f home) name(name string) string { return filepath.Join(f.path, filepath.FromSlash(name)) }

// replace writes data, which was made from before, to a new file and moves it to name; it is durable on return.
func (f home) replace(name string, before, data []byte) error {
	mode := perm(f.scope)
	if info, err := f.root.Lstat(filepath.FromSlash(name)); err == nil {
		mode = info.Mode().Perm()
	}
	at := filepath.FromSlash(name)
	temp := at + tempMark + rand.Text()
	file, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = f.root.Rename(temp, at)
	}
	if err != nil {
		_ = f.root.Remove(temp)
		return fmt.Errorf("remember: %w", err)
	}
	*f.wrote = append(*f.wrote, written{f.name(name), before, data})
	return f.sync(path.Dir(name))
}

// sync makes the names in a folder durable.
func (f home) sync(name string) error {
	dir, err := f.root.Open(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	if err := errors.Join(keep.SyncFile(dir), dir.Close()); err != nil {
		return fmt.Errorf("remember: %w", err)
	}
	return nil
}

// lock excludes other writers. The kernel releases it when this process dies. It locks the folder itself where
// possible, since a lock file would show up in repositories.
func (f home) lock(ctx context.Context) (unlock func(), err error) {
	l, err := keep.LockFolder(ctx, f.path, keep.Patience)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", f.path, err)
	}
	return func() { _ = l.Close() }, nil
}

// sweep removes files that killed writers left behind. Under the lock no one else is writing.
func (f home) sweep() {
	for _, dir := range []string{".", topicDir} {
		for _, e := range f.list(dir) {
			if e.Type().IsRegular() && strings.Contains(e.Name(), ".md"+tempMark) {
				_ = f.root.Remove(filepath.Join(dir, e.Name()))
			}
		}
	}
}

// list returns the content of a folder, or a part of it; nothing if it can't be read.
func (f home) list(name string) []fs.DirEntry {
	info, err := f.root.Lstat(name)
	if err != nil || !info.IsDir() {
		return nil
	}
	dir, err := f.root.Open(name)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.ReadDir(10 * topics)
	return entries
}

// load reads the index of a scope; a missing one is empty.
func (s *Store) load(scope Scope) (file, error) {
	f, err := s.folder(scope, false)
	if missing(err) {
		return file{}, nil
	}
	if err != nil {
		return file{}, err
	}
	defer f.close()
	index, err := f.load()
	if err == nil && !s.vouched(scope, index.path, index.bytes()) {
		index.unvouched = true
		for i := range index.items {
			index.items[i].Untrusted = true
		}
	}
	return index, err
}

func (f home) load() (file, error) {
	data, _, err := f.read(indexFile, maxRead)
	if err != nil {
		return file{}, err
	}
	return parse(f.name(indexFile), data), nil
}

// inPrompt returns how many lines of the file, from the first one on, fit into the limits.
func (f file) inPrompt() int {
	size := 0
	for i, line := range f.lines {
		if size += len(line); i == MaxLines || size > MaxBytes {
			return i
		}
	}
	return len(f.lines)
}

func (f file) size() int {
	n := 0
	for _, line := range f.lines {
		n += len(line)
	}
	return n
}

func (f file) bytes() []byte {
	var b bytes.Buffer
	for _, line := range f.lines {
		b.WriteString(line)
	}
	return b.Bytes()
}

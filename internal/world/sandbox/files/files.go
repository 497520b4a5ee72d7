package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// files implements [tool.Files] over the real file system.
type files struct {
	guard places.Map // the zero Map guards nothing
	temp  *Temp      // nil means the machine's folders for temporary files
	look  *Looker
	pass  tool.Pass // sensitive places that are open
	// change makes Change.IfDigest and the change itself one step within this session, and a lock of the folder, except on
	// Windows, among all sessions of the machine. A program that takes no lock can still write in between, except that
	// NoFile holds against all.
	change *sync.Mutex
}

// New returns the files of this machine, or of a session with its own folders for temporary files.
func New(guard places.Map, look *Looker, own *Temp) *files {
	f := &files{guard: guard, look: look, change: &sync.Mutex{}}
	if own != nil {
		f.temp, f.guard.Look = own, f.Look
	}
	return f
}

// Look implements [places.Looker].
func (f *files) Look(path string) places.Content {
	if at, err := f.temp.onMachine(path); err == nil {
		path = at
	}
	return f.look.Look(path)
}

// Opened returns the same files with the sensitive places of a pass open.
func (f *files) Opened(p tool.Pass) tool.Files {
	open := *f
	open.pass = p
	return &open
}

// Resolve implements [tool.Files].
func (f *files) Resolve(ctx context.Context, path string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return f.temp.resolve(path)
}

// Machine returns the files as unsandboxed processes see them.
func (f *files) Machine() tool.Files {
	machine := *f
	machine.temp, machine.guard.Look = nil, f.look.Look
	return &machine
}

// Open implements [tool.Files]. Opening a named pipe does not block.
func (f *files) Open(ctx context.Context, path string) (fs.File, error) {
	if err := ctx.Err(); err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	path, err := f.temp.resolve(path)
	if err != nil {
		return nil, err
	}
	at, err := f.temp.onMachine(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(at, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: keep.Bare(err)}
	}
	opened, err := f.mayOpen(file, path)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return opened, nil
}

// Change implements [tool.Files]. New content is written to a file next to the target, synced and renamed over
// it. Owner (if permitted) and mode are preserved, extended attributes are not.
//
// A file with several hard links is the exception: it is written in place, as a rename would separate it from its
// other names, so a crash can leave it half written. Missing directories are created. The mode of new files and
// directories obeys the umask.
func (f *files) Change(ctx context.Context, c tool.Change) error {
	if err := ctx.Err(); err != nil {
		return &fs.PathError{Op: "change", Path: c.Path, Err: err}
	}
	path, err := f.temp.resolve(c.Path)
	if err != nil {
		return err
	}
	if c.Exact && path != c.Path {
		return moved(c.Path)
	}
	at, err := f.temp.onMachine(path)
	if err != nil {
		return err
	}
	f.change.Lock()
	defer f.change.Unlock()
	held, err := f.holdFolder(at, c)
	if err == nil {
		defer held.release()
		if c.IfDigest != "" && runtime.GOOS != "windows" { // other sessions, here or in another process, change the same files
			if lock, unlocked := keep.LockFolder(ctx, filepath.Dir(held.path), keep.Patience); unlocked == nil {
				defer func() { _ = lock.Close() }() // the change is made
			}
		}
		own := !c.Remove && f.isOwn(path)
		if err = held.truePath(apply(held.path, c)); err == nil && own {
			f.look.NoteMade(at)
		}
	}
	if err == nil && at != path {
		f.temp.NoteWritten(path)
	}
	var pe *fs.PathError
	if at != path && errors.As(err, &pe) {
		pe.Path = f.temp.inSession(pe.Path)
	}
	return err
}

// apply makes one change.
func apply(path string, c tool.Change) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		info, err = nil, nil
	}
	if err != nil {
		return err
	}
	if err := checkIf(path, info, c.IfDigest); err != nil {
		return err
	}
	if c.Remove {
		if info == nil {
			return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		return syncDir(filepath.Dir(path))
	}
	return write(path, info, c)
}

// checkIf checks the file against Change.IfDigest. Info is nil if it does not exist.
func checkIf(path string, info fs.FileInfo, want string) error {
	if want == "" {
		return nil
	}
	changed := &fs.PathError{Op: "change", Path: path, Err: tool.ErrChanged}
	if want == tool.NoFile {
		if info != nil {
			return changed
		}
		return nil
	}
	if info == nil || !info.Mode().IsRegular() {
		return changed
	}
	data, err := keep.Read(path)
	if err != nil {
		return err
	}
	if tool.Digest(data) != want {
		return changed
	}
	return nil
}

func write(path string, info fs.FileInfo, c tool.Change) error {
	if info == nil {
		return create(path, c)
	}
	if !info.Mode().IsRegular() {
		err := errors.New("not a regular file")
		if info.IsDir() {
			err = syscall.EISDIR
		}
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	mode := info.Mode().Perm()
	if c.Exec != nil {
		if mode &^= 0o111; *c.Exec {
			mode |= mode & 0o444 >> 2
		}
	}
	if hardLinks(info) > 1 {
		err := writeInPlace(path, c.Data)
		if err == nil && mode != info.Mode().Perm() {
			err = os.Chmod(path, mode)
		}
		return err
	}
	return replace(path, info, mode, c.Data)
}

// replace replaces the content of a file.
func replace(path string, info fs.FileInfo, mode fs.FileMode, data []byte) error {
	temp, err := writeTemp(path, data, 0o600, func(file *os.File) error {
		keepOwner(file, info)
		return file.Chmod(mode)
	})
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// create creates a file, with its parent directories.
func create(path string, c tool.Change) error {
	if err := makeDirs(filepath.Dir(path)); err != nil {
		return err
	}
	mode := c.Mode
	if mode == 0 {
		mode = 0o644
	}
	temp, err := writeTemp(path, c.Data, mode.Perm(), func(*os.File) error { return nil })
	if err != nil {
		return err
	}
	put := os.Rename
	if c.IfDigest == tool.NoFile {
		put = renameNew
	}
	if err := put(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// renameNew renames only if the target does not exist. A hard link does that without a race; on file systems
// without links it checks just before the rename.
func renameNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if _, statErr := os.Lstat(to); !errors.Is(statErr, fs.ErrNotExist) {
		return &fs.PathError{Op: "change", Path: to, Err: tool.ErrChanged}
	}
	return os.Rename(from, to)
}

// writeTemp writes data to a new file next to path, and syncs it.
func writeTemp(path string, data []byte, mode fs.FileMode, prepare func(*os.File) error) (temp string, err error) {
	temp = filepath.Join(filepath.Dir(path), ".inspan-"+rand.Text())
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return "", fmt.Errorf("write beside %s: %w", path, err)
	}
	if _, err = file.Write(data); err == nil {
		err = prepare(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(temp))
	}
	return temp, nil
}

func writeInPlace(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(data, 0); err == nil {
		err = file.Truncate(int64(len(data)))
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// makeDirs is os.MkdirAll that syncs each new name.
func makeDirs(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: keep.Bare(err)}
	}
	parent := filepath.Dir(dir)
	if err := makeDirs(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

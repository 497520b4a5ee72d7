package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// Temp is a session's own folder for temporary files. Its boxes and its files see it as /tmp and /var/tmp.
//
// A name at the top of /tmp belongs to the session if the session created it; otherwise to the machine if it
// exists there; otherwise to the session. Processes in boxes see only those of the machine's names that were
// opened for them.
//
// The folder is locked by its users, inspan and the keepers of boxes. An unlocked folder is removed by any
// later session.
type Temp struct {
	Results bool     // files written by tools are copied to the machine at the end
	Except  []string // never in it: the workspace, the home folder and inspan's state

	mu      sync.Mutex
	dir     string // empty until first used
	lock    *os.File
	tops    []paths.Folder  // its subfolders
	points  map[string]int  // mount points, with the number of boxes that need each
	written map[string]bool // files written by tools, as session paths
	given   map[string]bool // names that a judge treated as the session's: a later file of the machine doesn't change that
}

const tempPrefix = "inspan-session-"

// Split splits a path in a folder for temporary files: the number of the folder and the path below it.
func (t *Temp) Split(path string) (root int, below string, ok bool) {
	if t == nil || paths.InsideAny(t.Except, path) {
		return 0, "", false
	}
	for i, r := range walls.TempFolders() {
		if path == r[0] {
			return i, "", true
		}
		if below, ok = strings.CutPrefix(path, r[0]+"/"); ok {
			return i, below, true
		}
	}
	return 0, "", false
}

// Temporary implements [tool.Env.Temporary].
func (t *Temp) Temporary(path string, boxed bool) bool {
	root, below, ok := t.Split(path)
	if !ok || below == "" || !boxed && !t.Owns(path) {
		return false
	}
	if !boxed {
		t.give(root, below)
	}
	return true
}

// give assigns a name at the top to the session permanently.
func (t *Temp) give(root int, below string) {
	name, _, _ := strings.Cut(below, "/")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given == nil {
		t.given = make(map[string]bool)
	}
	t.given[walls.TempFolders()[root][0]+"/"+name] = true
}

// NoteWritten records a file that a tool changed, or that a command declared to write.
func (t *Temp) NoteWritten(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == nil {
		t.written = make(map[string]bool)
	}
	t.written[path] = true
}

// handOut copies files that calls declared to write to the machine's folders, if the name is free: when a model
// reports that it wrote /tmp/report.txt, a person looks there. Other files remain the session's. The caller
// holds t.mu.
func (t *Temp) handOut() error {
	var failed error
	for _, path := range slices.Sorted(maps.Keys(t.written)) {
		if root, below, ok := t.Split(path); ok && t.Results && !places.Steers(below) {
			r := walls.TempFolders()[root]
			failed = errors.Join(failed, handOut(filepath.Join(t.dir, r[1]), r[0], below))
		}
	}
	return failed
}

func handOut(from, to, name string) error {
	ours, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer func() { _ = ours.Close() }()
	machine, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = machine.Close() }()
	info, err := ours.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // it is gone, or was replaced by a command
	}
	if _, err := machine.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // existing files are not overwritten
	}
	if err := machine.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	in, err := ours.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := machine.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Owns reports whether a path belongs to the session and not to the machine.
func (t *Temp) Owns(path string) bool {
	root, below, ok := t.Split(path)
	if !ok || below == "" {
		return ok
	}
	name, _, _ := strings.Cut(below, "/")
	if t.has(root, name) {
		return true
	}
	_, err := os.Lstat(filepath.Join(walls.TempFolders()[root][0], name))
	return errors.Is(err, fs.ErrNotExist)
}

// has reports whether the session created a name at the top, or was assigned it.
func (t *Temp) has(root int, name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given[walls.TempFolders()[root][0]+"/"+name] {
		return true
	}
	if t.dir == "" {
		return false
	}
	path := filepath.Join(t.dir, walls.TempFolders()[root][1], name)
	_, err := os.Lstat(path)
	return err == nil && t.points[path] == 0
}

// onMachine converts a resolved path to its location on the machine.
func (t *Temp) onMachine(path string) (string, error) {
	root, below, ok := t.Split(path)
	if !ok || !t.Owns(path) {
		return path, nil
	}
	dir, err := t.Open()
	return filepath.Join(dir, walls.TempFolders()[root][1], below), err
}

// inSession is the inverse of onMachine.
func (t *Temp) inSession(path string) string {
	if t == nil {
		return path
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range walls.TempFolders() {
		if own := filepath.Join(t.dir, r[1]); t.dir != "" && text.Inside(own, path) {
			return r[0] + strings.TrimPrefix(path, own)
		}
	}
	return path
}

// resolve is paths.Resolve for paths as the session sees them.
func (t *Temp) resolve(path string) (string, error) {
	return paths.ResolveBy(path, func(path string) (string, error) {
		path, err := t.onMachine(path)
		if err != nil {
			return "", err
		}
		return paths.ReadLink(path)
	})
}

// Open creates the folder, if it does not exist yet.
func (t *Temp) Open() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir != "" {
		return t.dir, nil
	}
	parent, err := filepath.EvalSymlinks(TempFolder())
	if err != nil {
		return "", err
	}
	sweepTemp(parent)
	for range 20 {
		// Another process can sweep the folder before it is locked.
		if err = t.makeFolder(filepath.Join(parent, tempPrefix+rand.Text())); err == nil {
			return t.dir, nil
		}
	}
	return "", fmt.Errorf("make a folder for temporary files: %w", err)
}

func (t *Temp) makeFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	lock, err := paths.LockFolder(dir, true)
	if err != nil {
		return err
	}
	var tops []paths.Folder
	for _, r := range walls.TempFolders() {
		top := filepath.Join(dir, r[1])
		var folder paths.Folder
		if err = errors.Join(os.Mkdir(top, 0o700), os.Chmod(top, 0o777|os.ModeSticky)); err == nil {
			folder, err = paths.OpenFolder(top)
		}
		if err != nil {
			paths.CloseFolders(tops)
			return errors.Join(err, lock.Close(), os.RemoveAll(dir))
		}
		tops = append(tops, folder)
	}
	t.dir, t.lock, t.tops, t.points = dir, lock, tops, make(map[string]int)
	return nil
}

// Close removes the folder, unless a detached process still uses it.
func (t *Temp) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dir == "" {
		return nil
	}
	failed := t.handOut()
	paths.CloseFolders(t.tops)
	dir, lock := t.dir, t.lock
	t.dir, t.lock, t.tops, t.points = "", nil, nil, nil
	defer lock.Close()
	if alone, _ := keep.TryLock(lock, false); !alone {
		return failed // swept later
	}
	return errors.Join(failed, keep.RemoveAll(dir))
}

// sweepTemp removes leftovers of killed sessions.
func sweepTemp(parent string) {
	list, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	for _, dir := range list {
		st, ok := paths.StampOf(dir)
		if !ok || !st.Dir || !st.Own {
			continue
		}
		if lock, err := paths.LockFolder(dir, false); err == nil {
			_ = keep.RemoveAll(dir)
			lock.Close()
		}
	}
}

// MountPoints creates mount points in the folder for paths of the machine, for as long as a box is open; leave
// is nil if none is needed. Files that a process created there are preserved.
func (t *Temp) MountPoints(paths []string) (leave func(), err error) {
	var made []string
	for _, path := range paths {
		root, below, ok := t.belongsInside(path)
		info, err := os.Stat(path)
		if !ok || err != nil {
			continue
		}
		at := filepath.Join(t.dir, walls.TempFolders()[root][1])
		parts := strings.Split(below, "/")
		for i, name := range parts {
			at = filepath.Join(at, name)
			ours, err := t.point(at, i < len(parts)-1 || info.IsDir())
			if err != nil {
				t.unmake(made)
				return nil, fmt.Errorf("make a place for %s: %w", path, err)
			}
			if ours {
				made = append(made, at)
			}
		}
	}
	if made == nil {
		return nil, nil
	}
	return func() { t.unmake(made) }, nil
}

// belongsInside splits a path of the machine that is visible in the folder.
func (t *Temp) belongsInside(path string) (root int, below string, ok bool) {
	plain := Temp{}
	root, below, ok = plain.Split(path)
	return root, below, ok && below != ""
}

// point creates one mount point, or counts another user. It returns false if the place is the session's own.
func (t *Temp) point(at string, isDir bool) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.points[at] > 0 {
		t.points[at]++
		return true, nil
	}
	folder, err := paths.ParentOf(t.tops, at)
	if err != nil {
		return false, err
	}
	defer func() { _ = unix.Close(folder) }()
	if isDir {
		err = unix.Mkdirat(folder, filepath.Base(at), 0o755)
	} else {
		err = unix.Mknodat(folder, filepath.Base(at), unix.S_IFREG|0o600, 0)
	}
	if errors.Is(err, unix.EEXIST) {
		return false, nil
	}
	if err == nil {
		t.points[at] = 1
	}
	return err == nil, err
}

// unmake removes mount points that no box needs any more.
func (t *Temp) unmake(made []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(made) - 1; i >= 0; i-- {
		at := made[i]
		if t.dir == "" {
			return // already removed
		}
		if t.points[at]--; t.points[at] > 0 {
			continue
		}
		delete(t.points, at)
		folder, err := paths.ParentOf(t.tops, at)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if name := filepath.Base(at); unix.Fstatat(folder, name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			switch {
			case st.Mode&unix.S_IFMT == unix.S_IFDIR:
				_ = unix.Unlinkat(folder, name, unix.AT_REMOVEDIR) // fails if something was put there
			case st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0:
				_ = unix.Unlinkat(folder, name, 0)
			}
		}
		_ = unix.Close(folder)
	}
}

// TempFolder returns the first writable folder for temporary files.
func TempFolder() string {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir
		}
	}
	return os.TempDir() // the keeper reports the problem
}

// MakeOverlay creates a folder for the changes of a box in a workspace.
func (t *Temp) MakeOverlay(root string) (dir string, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	own, err := t.Open()
	if err == nil && text.Inside(root, own) {
		err = fmt.Errorf("temporary files lie in the workspace, in %s", own)
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Join(own, "thrown-"+rand.Text())
	upper := filepath.Join(dir, walls.OverlayUpper)
	for _, path := range []string{dir, upper, filepath.Join(dir, walls.OverlayWork)} {
		err = errors.Join(err, os.Mkdir(path, 0o700))
	}
	// The upper folder determines the permissions of the workspace's root.
	if err = errors.Join(err, os.Chmod(upper, info.Mode().Perm())); err == nil {
		err = tryAttributes(upper)
	}
	if err != nil {
		_ = keep.RemoveAll(dir)
		return "", fmt.Errorf("make a place for what is thrown away: %w", err)
	}
	return dir, nil
}

// tryAttributes checks that a folder supports the attributes that the kernel uses to record removals.
func tryAttributes(path string) error {
	const name = "user.overlay.inspan"
	if err := unix.Setxattr(path, name, []byte("y"), 0); err != nil {
		return fmt.Errorf("the file system of the temporary files has no extended attributes (tmpfs has them from Linux 6.6): %w", err)
	}
	return unix.Removexattr(path, name)
}

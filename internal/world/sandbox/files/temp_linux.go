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

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox/walls"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// Temp is the folder for temporary files that a session has to itself. Its
// boxes see it as /tmp and /var/tmp, and so do its files.
//
// A name at the top of /tmp belongs to the session if the session has made it,
// else to the machine if it is there, else to the session. Processes in boxes
// see of the machine's names only those that were opened for them.
//
// The folder is locked by whoever uses it, inspan and the keepers of boxes. One
// that nobody locks is removed by whoever comes by.
type Temp struct {
	Results bool     // what tools have written is to be on the machine afterwards
	Except  []string // never in it, wherever they lie: the workspace, the home folder and what inspan keeps

	mu      sync.Mutex
	dir     string // empty until something is put there
	lock    *os.File
	tops    []paths.Folder  // the folders in it
	points  map[string]int  // places made for what is mounted over them, with how many boxes need each
	written map[string]bool // files that tools have written, as the session sees them
	given   map[string]bool // names that a judge was told are the session's: what appears on the machine later is another
}

const tempPrefix = "inspan-session-"

// Split returns the parts of a path in a folder for temporary files: the
// number of the folder and what is below it.
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

// Temporary is [tool.Env.Temporary].
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

// give makes a name at the top the session's for good.
func (t *Temp) give(root int, below string) {
	name, _, _ := strings.Cut(below, "/")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.given == nil {
		t.given = make(map[string]bool)
	}
	t.given[walls.TempFolders()[root][0]+"/"+name] = true
}

// NoteWritten takes note of a file that a tool has changed, or a command said it would.
func (t *Temp) NoteWritten(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == nil {
		t.written = make(map[string]bool)
	}
	t.written[path] = true
}

// handOut copies what calls have said they write to where they said, if nothing is there: a model says that it wrote
// /tmp/report.txt, and a person looks there. All else is the session's. t.mu is held.
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
		return nil //nolint:nilerr // it is gone, or a command has put something else there
	}
	if _, err := machine.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // what is there stays
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

// Owns reports whether a path is the session's and not the machine's.
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

// has reports whether the session has made a name at the top, or was given it.
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

// onMachine returns where on the machine a resolved path lies.
func (t *Temp) onMachine(path string) (string, error) {
	root, below, ok := t.Split(path)
	if !ok || !t.Owns(path) {
		return path, nil
	}
	dir, err := t.Open()
	return filepath.Join(dir, walls.TempFolders()[root][1], below), err
}

// inSession undoes at.
func (t *Temp) inSession(path string) string {
	if t == nil {
		return path
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range walls.TempFolders() {
		if own := filepath.Join(t.dir, r[1]); t.dir != "" && tool.Inside(own, path) {
			return r[0] + strings.TrimPrefix(path, own)
		}
	}
	return path
}

// resolve is the function of this name, for paths as the session sees them.
func (t *Temp) resolve(path string) (string, error) {
	return paths.ResolveBy(path, func(path string) (string, error) {
		path, err := t.onMachine(path)
		if err != nil {
			return "", err
		}
		return paths.ReadLink(path)
	})
}

// Open makes the folder, if there is none yet.
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
		// Whoever sweeps can come between the folder and its lock.
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

// Close removes the folder, unless a process that was let go of still uses it.
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
		return failed // it is swept later
	}
	return errors.Join(failed, paths.RemoveAll(dir))
}

// sweepTemp removes what sessions left that were killed.
func sweepTemp(parent string) {
	list, _ := filepath.Glob(filepath.Join(parent, tempPrefix+"*"))
	for _, dir := range list {
		st, ok := paths.StampOf(dir)
		if !ok || !st.Dir || !st.Own {
			continue
		}
		if lock, err := paths.LockFolder(dir, false); err == nil {
			_ = paths.RemoveAll(dir)
			lock.Close()
		}
	}
}

// MountPoints makes places in the folder for what of the machine is mounted there,
// for as long as a box is open; leave is nil if none is needed. What a process made at such a
// place stays.
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

// belongsInside returns the parts of a path of the machine that is to be seen in the
// folder.
func (t *Temp) belongsInside(path string) (root int, below string, ok bool) {
	plain := Temp{}
	root, below, ok = plain.Split(path)
	return root, below, ok && below != ""
}

// point makes one place, or counts it again. It reports false if it is the
// session's own.
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

// unmake takes away places that no box needs any more.
func (t *Temp) unmake(made []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := len(made) - 1; i >= 0; i-- {
		at := made[i]
		if t.dir == "" {
			return // all of it is gone
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
				_ = unix.Unlinkat(folder, name, unix.AT_REMOVEDIR) // not if something was put there
			case st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size == 0:
				_ = unix.Unlinkat(folder, name, 0)
			}
		}
		_ = unix.Close(folder)
	}
}

// TempFolder returns the first folder for temporary files that can be written.
func TempFolder() string {
	for _, dir := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir
		}
	}
	return os.TempDir() // the keeper says what is wrong with it
}

// MakeOverlay makes a folder for what a box changes in a workspace.
func (t *Temp) MakeOverlay(root string) (dir string, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	own, err := t.Open()
	if err == nil && tool.Inside(root, own) {
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
	// The workspace looks as the top of what differs from it does.
	if err = errors.Join(err, os.Chmod(upper, info.Mode().Perm())); err == nil {
		err = tryAttributes(upper)
	}
	if err != nil {
		_ = paths.RemoveAll(dir)
		return "", fmt.Errorf("make a place for what is thrown away: %w", err)
	}
	return dir, nil
}

// tryAttributes tries what the kernel needs to note in a folder that something is gone.
func tryAttributes(path string) error {
	const name = "user.overlay.inspan"
	if err := unix.Setxattr(path, name, []byte("y"), 0); err != nil {
		return fmt.Errorf("the file system of the temporary files has no extended attributes (tmpfs has them from Linux 6.6): %w", err)
	}
	return unix.Removexattr(path, name)
}

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/tool"
)

// A box whose workspace is thrown away sees an overlay in its place: what it reads comes
// from the workspace, what it changes goes to a folder among the session's temporary files,
// which no box sees. The workspace itself is not among the mounts of such a box.
//
// That folder lies with the temporary files and not in memory, as a build can need a lot, and
// as memory has the attributes that overlays need only since Linux 6.6.

// thrownAway is what those who ran a command in such a box are told, after "the sandbox".
const thrownAway = "threw away what the command changed in the workspace; everything there is as before"

var (
	errThrown    = errors.New("it runs in a throwaway copy of the workspace, which ends with the session")
	errContained = errors.New("throwaway copies of the workspace are unavailable in containers")
	errWider     = errors.New("a box whose workspace is thrown away opens nothing else to change or to reach")
)

// throwable checks what a box asks for whose workspace is thrown away.
func (b *boxes) throwable(box tool.Box) error {
	switch {
	case !box.Throwaway:
		return nil
	case b.engine != nil:
		return errContained
	case b.o.level(box) != tool.BoxWorkspace || len(box.Write)+len(box.Hosts) > 0 || box.Git || box.Init:
		return errWider
	}
	return nil
}

// discard makes the folder for what the box changes. It goes with the box.
func (k *kept) discard() error {
	dir, err := k.boxes.temp.throw(k.order.Root)
	if err != nil {
		return err
	}
	k.order.Throw = dir
	k.leaving = append(k.leaving, func() { _ = paths.RemoveAll(dir) })
	return nil
}

// Parts of such a folder.
const (
	throwUpper = "upper" // what differs from the workspace
	throwWork  = "work"  // of the kernel
)

// throw makes a folder for what a box changes in a workspace.
func (t *temp) throw(root string) (dir string, err error) {
	info, err := os.Stat(root)
	if err != nil {
		return "", err
	}
	own, err := t.open()
	if err == nil && tool.Inside(root, own) {
		err = fmt.Errorf("temporary files lie in the workspace, in %s", own)
	}
	if err != nil {
		return "", err
	}
	dir = filepath.Join(own, "thrown-"+rand.Text())
	upper := filepath.Join(dir, throwUpper)
	for _, path := range []string{dir, upper, filepath.Join(dir, throwWork)} {
		err = errors.Join(err, os.Mkdir(path, 0o700))
	}
	// The workspace looks as the top of what differs from it does.
	if err = errors.Join(err, os.Chmod(upper, info.Mode().Perm())); err == nil {
		err = noted(upper)
	}
	if err != nil {
		_ = paths.RemoveAll(dir)
		return "", fmt.Errorf("make a place for what is thrown away: %w", err)
	}
	return dir, nil
}

// noted tries what the kernel needs to note in a folder that something is gone.
func noted(path string) error {
	const name = "user.overlay.inspan"
	if err := unix.Setxattr(path, name, []byte("y"), 0); err != nil {
		return fmt.Errorf("the file system of the temporary files has no extended attributes (tmpfs has them from Linux 6.6): %w", err)
	}
	return unix.Removexattr(path, name)
}

const layCopy = "lay a copy over "

// lay puts an overlay in the place of the workspace.
func (s *scene) lay(root, dir string) error {
	at, err := paths.Open(root)
	if err != nil {
		return setup("open "+root, err)
	}
	defer func() { _ = unix.Close(at) }()
	// The kernel takes a path, which must lead to what was opened.
	if err := unix.Fchdir(at); err != nil {
		return setup("enter "+root, err)
	}
	fd, err := overlay(dir)
	if err = errors.Join(err, os.Chdir("/")); err != nil {
		return setup(layCopy+root+" (nothing may be mounted in it)", err)
	}
	s.pieces = append(s.pieces, piece{path: root, fd: fd, write: true})
	return nil
}

// overlay mounts what a folder of ours holds over the current directory, as a mount that is
// nowhere yet.
func overlay(dir string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range [][2]string{
		{"lowerdir", "."},
		{"upperdir", filepath.Join(dir, throwUpper)},
		{"workdir", filepath.Join(dir, throwWork)},
	} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, fmt.Errorf("%s: %w", o[0], err)
		}
	}
	// What is there outlives no crash, so nothing waits for the disk.
	for _, flag := range []string{"userxattr", "volatile"} {
		if err := unix.FsconfigSetFlag(fs, flag); err != nil {
			return -1, fmt.Errorf("%s: %w", flag, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}

package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
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
	k.order.Throwaway = dir
	k.leaving = append(k.leaving, func() { _ = paths.RemoveAll(dir) })
	return nil
}

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
	upper := filepath.Join(dir, walls.OverlayUpper)
	for _, path := range []string{dir, upper, filepath.Join(dir, walls.OverlayWork)} {
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

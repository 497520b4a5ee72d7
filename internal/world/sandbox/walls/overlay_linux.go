package walls

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// Parts of an overlay folder.
const (
	OverlayUpper = "upper" // changes of the workspace
	OverlayWork  = "work"  // for the kernel
)

// OverlayStep begins the error of a failed overlay mount.
const OverlayStep = "lay a copy over "

// lay mounts an overlay in place of the workspace.
func (s *mountTree) lay(root, dir string) error {
	at, err := paths.Open(root)
	if err != nil {
		return During("open "+root, err)
	}
	defer func() { _ = unix.Close(at) }()
	// The kernel requires a path, which must lead to the opened folder.
	if err := unix.Fchdir(at); err != nil {
		return During("enter "+root, err)
	}
	fd, err := overlay(dir)
	if err = errors.Join(err, os.Chdir("/")); err != nil {
		return During(OverlayStep+root+" (nothing may be mounted in it)", err)
	}
	s.pieces = append(s.pieces, piece{path: root, fd: fd, write: true})
	return nil
}

// overlay creates a detached overlay mount of one of our folders over the current directory.
func overlay(dir string) (int, error) {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range [][2]string{
		{"lowerdir", "."},
		{"upperdir", filepath.Join(dir, OverlayUpper)},
		{"workdir", filepath.Join(dir, OverlayWork)},
	} {
		if err := unix.FsconfigSetString(fs, o[0], o[1]); err != nil {
			return -1, fmt.Errorf("%s: %w", o[0], err)
		}
	}
	// Its content does not survive a crash, so it need not be synced.
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

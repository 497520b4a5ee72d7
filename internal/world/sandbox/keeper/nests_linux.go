package keeper

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// No program outside reads a git directory that a box can write. A mount can't protect a name that does not exist
// yet, so the keeper makes each folder .git in the workspace for the command: an empty folder, with one of the
// session's temporary folders mounted over it, which only the box sees. It is removed with the command. A folder
// that is moved there would be visible outside, so moving is denied; programs then copy it.

// nests are the running command's folders of this kind.
type nests struct {
	mu   sync.Mutex
	list []nest
}

type nest struct {
	parent int    // its parent folder
	at     string // its path, for people
	mount  int    // the mount over it
	hidden string // the path of the mounted folder
}

const gitDir = ".git"

// mostNests bounds the nests of a command: each costs a mount and descriptors.
const mostNests = 200

// folder makes a command's system call about a folder .git in a folder shared with the outside.
func (k *keeper) folder(listener int, c heldCall) error {
	i := slices.IndexFunc(walls.FolderCalls(), func(f walls.FolderCall) bool { return f.NR == uintptr(c.nr) })
	if i < 0 {
		return syscall.ENOSYS
	}
	call := walls.FolderCalls()[i]
	if call.Mode > 0 && c.args[call.Mode]&walls.RunsAs != 0 {
		return syscall.EPERM // as for all other files
	}
	for i, name := range call.Names {
		at, err := c.path(name[1])
		if err != nil {
			return err
		}
		dir, last := path.Split(strings.TrimRight(at, "/"))
		if last != gitDir {
			continue
		}
		parent, err := c.open(name[0], cmp.Or(dir, "."))
		if err != nil {
			return err
		}
		err = c.still(listener)
		if err == nil {
			err = k.nest(call, parent, i == 0 && len(call.Names) > 1 && (call.NR != unix.SYS_RENAMEAT2 || c.args[4]&unix.RENAME_EXCHANGE == 0))
		}
		if err != nil || call.Mode == 0 {
			_ = unix.Close(parent)
		}
		if !errors.Is(err, errGoOn) {
			return err
		}
	}
	return errGoOn
}

// nest creates or removes the folder .git of an open folder, or refuses to move it there. Others than these may
// be moved away.
func (k *keeper) nest(call walls.FolderCall, parent int, from bool) error {
	dir, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", parent))
	now := k.now.Load()
	k.nests.mu.Lock()
	defer k.nests.mu.Unlock()
	switch {
	case err != nil:
		return err
	case now == nil || !paths.InsideAny(now.order.Write, dir):
		return errGoOn
	case call.Mode > 0:
		return k.nests.make(parent, dir)
	case call.Removes:
		return k.nests.remove(parent)
	case from && k.nests.find(parent) < 0:
		return errGoOn
	}
	return syscall.EXDEV
}

// make creates a nest.
func (n *nests) make(parent int, dir string) error {
	const mode = 0o755
	if len(n.list) >= mostNests {
		return syscall.ENOSPC
	}
	if err := unix.Mkdirat(parent, gitDir, mode); err != nil {
		return err
	}
	hidden, mount, err := cover(parent)
	if err != nil {
		return errors.Join(err, unix.Unlinkat(parent, gitDir, unix.AT_REMOVEDIR))
	}
	n.list = append(n.list, nest{parent: parent, at: filepath.Join(dir, gitDir), mount: mount, hidden: hidden})
	return nil
}

// cover mounts a temporary folder over the folder .git of another.
func cover(parent int) (hidden string, mount int, err error) {
	const folder = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	at, err := unix.Openat(parent, gitDir, folder, 0)
	if err != nil {
		return "", -1, err
	}
	defer func() { _ = unix.Close(at) }()
	if hidden, err = os.MkdirTemp("/tmp", "git-"); err != nil {
		return "", -1, err
	}
	if err := os.Chmod(hidden, 0o755); err != nil {
		return "", -1, err
	}
	if mount, err = unix.OpenTree(unix.AT_FDCWD, hidden, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC); err != nil {
		return "", -1, err
	}
	if err := unix.MoveMount(mount, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		_ = unix.Close(mount)
		return "", -1, errors.Join(err, os.Remove(hidden))
	}
	return hidden, mount, nil
}

// remove removes the folder .git of another, if it is a nest.
func (n *nests) remove(parent int) error {
	i := n.find(parent)
	if i < 0 {
		return errGoOn
	}
	if err := os.Remove(n.list[i].hidden); err != nil {
		return err
	}
	_, err := n.list[i].drop()
	n.list = slices.Delete(n.list, i, i+1)
	return err
}

// find returns the index of the nest in another folder, -1 if there is none.
func (n *nests) find(parent int) int {
	at := fmt.Sprintf("/proc/self/fd/%d/%s", parent, gitDir)
	return slices.IndexFunc(n.list, func(one nest) bool { return sameFile(fmt.Sprintf("/proc/self/fd/%d", one.mount), at) })
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	other, errs := os.Stat(b)
	return err == nil && errs == nil && os.SameFile(one, other)
}

// drop removes the mount and the folder.
func (n nest) drop() (there bool, err error) {
	defer func() { _, _ = unix.Close(n.mount), unix.Close(n.parent) }()
	if err := unix.Unmount(fmt.Sprintf("/proc/self/fd/%d", n.mount), unix.MNT_DETACH); err != nil {
		return false, err
	}
	err = unix.Unlinkat(n.parent, gitDir, unix.AT_REMOVEDIR)
	return err == nil, err
}

// dropNests removes the nests of an ended command.
func (c *command) dropNests() {
	c.nests.mu.Lock()
	defer c.nests.mu.Unlock()
	for _, n := range c.nests.list {
		there, _ := n.drop()
		_ = os.RemoveAll(n.hidden)
		if there {
			c.tell(protocol.Report{Op: protocol.OpRefused, Text: "did not keep " + n.at + ", the repository that it has made: only git init and git clone, " +
				"in a command line with nothing but git and what is known to do no harm, make one that stays"})
		}
	}
	c.nests.list = nil
}

// path returns the path in an argument.
func (c *heldCall) path(arg int) (string, error) {
	const page = 4 << 10
	var buf [page]byte
	for read := 0; read < len(buf); {
		until := min(len(buf), read+page-int((c.args[arg]+uint64(read))%page)) // the next page may be unmapped
		n, err := c.read(buf[read:until], c.args[arg]+uint64(read))
		if err != nil {
			return "", syscall.EFAULT
		}
		if text, _, ended := bytes.Cut(buf[:read+n], []byte{0}); ended {
			return string(text), nil
		}
		read += n
	}
	return "", syscall.ENAMETOOLONG
}

// open opens a folder as the thread would, relative to the descriptor in an argument, or to its current folder.
func (c *heldCall) open(arg int, dir string) (int, error) {
	from := fmt.Sprintf("/proc/%d/cwd", c.task)
	if arg >= 0 && int32(c.args[arg]) != unix.AT_FDCWD {
		from = fmt.Sprintf("/proc/%d/fd/%d", c.task, int32(c.args[arg]))
	}
	at, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(at) }()
	return unix.Openat(at, ofTask(int(c.task), dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

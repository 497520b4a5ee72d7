package walls

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
)

// Rights of Landlock over files.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayUse   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	ofFiles  = mayUse | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fsAlways = 1<<13 - 1
)

// leastABI is the oldest version of Landlock that makes a wall: the first that
// knows of truncation. What came later is used where it is there.
const leastABI = 3

// leastSignals is the first version that keeps signals inside. The read box
// needs it, the workspace box has its own namespace of processes.
const leastSignals = 6

// landlockABI returns the version of Landlock that the kernel has, 0 for none.
func landlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Ruleset is a wall of Landlock in the making.
type Ruleset struct {
	fd    int
	files uint64 // the rights over files that it handles
}

// newRuleset starts a wall that handles every right that the kernel and we
// know. What a newer kernel adds is left as it was before that kernel.
func newRuleset(abi int, network bool) (*Ruleset, error) {
	if abi < leastABI {
		return nil, errors.New("the kernel's Landlock is missing or too old")
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: fsAlways | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE}
	if abi >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= 4 && !network {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return nil, errno
	}
	return &Ruleset{int(fd), attr.Handled_access_fs}, nil
}

// allow gives rights to what the descriptor stands for and all below it.
func (r *Ruleset) allow(fd int, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= ofFiles
	}
	rights &= r.files
	if rights == 0 {
		return nil
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd),
		unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// allowPath gives rights to a path. What is not there needs none.
func (r *Ruleset) allowPath(path string, rights uint64) error {
	fd, err := paths.Open(path)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return r.allow(fd, rights)
}

// allowGrant gives rights to read to all of a grant but its holes.
func (r *Ruleset) allowGrant(g Grant) error {
	fd, err := paths.Open(g.Path)
	if err != nil {
		return nil //nolint:nilerr // what can't be opened now is not granted
	}
	defer func() { _ = unix.Close(fd) }()
	var holes [][]string
	for _, hole := range g.Holes {
		rel, err := filepath.Rel(g.Path, hole)
		if err != nil || rel == "." {
			return err
		}
		holes = append(holes, strings.Split(rel, "/"))
	}
	if len(holes) > 0 {
		if err := r.allow(fd, unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	return r.allowAround(fd, holes)
}

// allowAround gives the rights to read to all below a folder but the holes,
// whose names are relative to it. Rights can't be taken back below the folder
// they were given to, so the neighbours of a hole get theirs one by one.
func (r *Ruleset) allowAround(fd int, holes [][]string) error {
	if len(holes) == 0 {
		return r.allow(fd, mayRead)
	}
	names, err := paths.NamesIn(fd)
	if errors.Is(err, unix.EACCES) {
		return nil // what lies around the holes can't be told, so none of it is opened
	}
	if err != nil {
		return err
	}
	below := make(map[string][][]string)
	for _, hole := range holes {
		below[hole[0]] = append(below[hole[0]], hole[1:])
	}
	for _, name := range names {
		inner := below[name]
		if slices.ContainsFunc(inner, func(h []string) bool { return len(h) == 0 }) {
			continue // the hole itself
		}
		if err := r.allowChild(fd, name, inner); err != nil {
			return err
		}
	}
	return nil
}

func (r *Ruleset) allowChild(dir int, name string, holes [][]string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil //nolint:nilerr // it has gone since
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return err // where a link leads to has rules of its own
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		holes = nil
	}
	return r.allowAround(fd, holes)
}

// Enforce puts the current thread behind the wall. It must not gain privileges
// any more. Nil is no wall.
func (r *Ruleset) Enforce() error {
	if r == nil {
		return nil
	}
	_, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Close gives up the wall, but not that around threads which are behind it. Nil is none.
func (r *Ruleset) Close() {
	if r != nil {
		_ = unix.Close(r.fd)
	}
}

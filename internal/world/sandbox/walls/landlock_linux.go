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

// Landlock rights for files.
const (
	mayRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	mayUse   = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	ofFiles  = mayUse | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fsAlways = 1<<13 - 1
)

// leastABI is the oldest usable version of Landlock: the first that covers truncation. Later features are used
// if available.
const leastABI = 3

// leastSignals is the first version that confines signals. The read box needs it; the workspace box has its own
// process namespace.
const leastSignals = 6

// landlockABI returns the kernel's version of Landlock, 0 for none.
func landlockABI() int {
	v, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// Ruleset is a Landlock ruleset under construction.
type Ruleset struct {
	fd    int
	files uint64 // the file rights that it handles
}

// newRuleset creates a ruleset that handles every right that the kernel and we know. Rights of newer kernels
// are not restricted.
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

// allow grants rights to the descriptor's file and everything below it.
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

// allowPath grants rights to a path. A missing path needs none.
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

// allowGrant grants read rights to a grant without its holes.
func (r *Ruleset) allowGrant(g Grant) error {
	fd, err := paths.Open(g.Path)
	if err != nil {
		return nil //nolint:nilerr // a path that can't be opened now is not granted
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

// allowAround grants read rights to everything below a folder except the holes, whose names are relative to it.
// Rights can't be revoked below their folder, so the neighbours of a hole get theirs one by one.
func (r *Ruleset) allowAround(fd int, holes [][]string) error {
	if len(holes) == 0 {
		return r.allow(fd, mayRead)
	}
	names, err := paths.NamesIn(fd)
	if errors.Is(err, unix.EACCES) {
		return nil // the surroundings of the holes are unknown, so nothing is opened
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
		return nil //nolint:nilerr // it is gone
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return err // the target of a link has its own rules
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		holes = nil
	}
	return r.allowAround(fd, holes)
}

// Enforce restricts the current thread. It must have no_new_privs set. Nil restricts nothing.
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

// Close closes the ruleset; restricted threads remain restricted. Nil does nothing.
func (r *Ruleset) Close() {
	if r != nil {
		_ = unix.Close(r.fd)
	}
}

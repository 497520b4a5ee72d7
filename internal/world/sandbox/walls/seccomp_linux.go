package walls

import (
	"errors"
	"slices"
	"syscall"
	"unsafe"

	"github.com/inspan/inspan/tool"

	"golang.org/x/sys/unix"
)

// callRule is the rule for one system call. Without tests it is denied.
type callRule struct {
	nr    uintptr
	errno syscall.Errno
	but   []argTest // denied if all hold
	only  []argTest // otherwise allowed if all hold; nil means always if there is a but
	asks  bool      // the listener of the filter makes the call instead
}

// argTest holds if the low 32 bits of an argument, masked, are one of the values. The kernel ignores the high
// bits of all tested arguments.
type argTest struct {
	arg  int
	mask uint32 // 0 means all bits
	in   []uint32
}

// newNamespaces are the clone flags that create namespaces.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// lastCall is the highest system call number that these rules cover. Later ones don't exist in a box.
const lastCall = 470

// always lists what no box allows: new namespaces and mounts, descriptors of other processes, kernel internals,
// and ways around this filter.
func always() []callRule {
	var out []callRule
	for _, nr := range []uintptr{
		unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
		unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF,
		unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
		unix.SYS_ADJTIMEX, unix.SYS_SYSLOG, unix.SYS_VHANGUP, unix.SYS_LOOKUP_DCOOKIE, unix.SYS_NFSSERVCTL,
		unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	} {
		out = append(out, callRule{nr: nr, errno: syscall.EPERM})
	}
	for _, nr := range []uintptr{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		out = append(out, callRule{nr: nr, errno: syscall.ENOSYS}) // programs fall back
	}
	return append(
		out,
		callRule{nr: unix.SYS_CLONE, errno: syscall.EPERM, only: []argTest{{0, newNamespaces, []uint32{0}}}},
		callRule{nr: unix.SYS_PERSONALITY, errno: syscall.EPERM, only: []argTest{{0, 0, []uint32{0, 0xffffffff}}}},
	)
}

// readCalls lists what a read box additionally denies: sockets, changes that Landlock doesn't cover, and
// inspecting and signalling other processes of the same user. In a workspace box debuggers work: the only other
// processes are its own and the keeper, which can't be traced, and a traced process's changes pass its filter
// afterwards (since Linux 4.8).
func readCalls() []callRule {
	out := always()
	for _, nr := range append(
		metadataCalls(),
		unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
		unix.SYS_SOCKET, unix.SYS_BIND, unix.SYS_CONNECT, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4,
		unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_FCHOWN, unix.SYS_FCHOWNAT, unix.SYS_UTIMENSAT,
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
		unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR,
		unix.SYS_MKNODAT, unix.SYS_IOPRIO_SET, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER,
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_MSGGET,
		unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
		unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
	) {
		out = append(out, callRule{nr: nr, errno: syscall.EPERM})
	}
	for _, nr := range []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET, unix.SYS_EXECVEAT, unix.SYS_INOTIFY_ADD_WATCH} {
		out = append(out, callRule{nr: nr, errno: syscall.ENOSYS})
	}
	own := []argTest{{0, 0, []uint32{0}}}
	return append(
		out,
		// A stream pair reaches no other process; datagrams could be sent anywhere.
		callRule{nr: unix.SYS_SOCKETPAIR, errno: syscall.EPERM, only: []argTest{
			{0, 0, []uint32{unix.AF_UNIX}},
			{1, 0xf, []uint32{unix.SOCK_STREAM, unix.SOCK_SEQPACKET}},
		}},
		callRule{nr: unix.SYS_PRLIMIT64, errno: syscall.EPERM, only: own},
		callRule{nr: unix.SYS_SCHED_SETAFFINITY, errno: syscall.EPERM, only: own},
		callRule{nr: unix.SYS_SETPRIORITY, errno: syscall.EPERM, only: []argTest{{0, 0, []uint32{unix.PRIO_PROCESS}}, {1, 0, []uint32{0}}}},
		callRule{nr: unix.SYS_IOCTL, errno: syscall.ENOTTY, only: []argTest{{1, 0, harmlessControls()}}},
	)
}

// harmlessControls lists the ioctls of programs that read terminals, pipes and files.
func harmlessControls() []uint32 {
	return []uint32{
		unix.TCGETS, unix.TCGETS2, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCGSID, unix.TIOCINQ,
		0x5421, 0x5450, 0x5451, // blocking mode, close-on-exec
		unix.FS_IOC_GETFLAGS, unix.BLKGETSIZE64, unix.BLKSSZGET, 0xc020660b, // the last one returns a file's location on disk
	}
}

// workspaceCalls lists what a workspace box denies. It has its own namespaces, so less is reachable.
func workspaceCalls() []callRule {
	sockets := func(nr uintptr) callRule {
		return callRule{
			nr: nr, errno: syscall.EAFNOSUPPORT,
			but:  []argTest{{0, 0, []uint32{unix.AF_UNIX}}, {1, 0xf, []uint32{unix.SOCK_DGRAM, unix.SOCK_RAW}}}, // see keeper.filterCalls
			only: []argTest{{0, 0, []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}}},
		}
	}
	return append(
		append(always(), modeCalls()...),
		callRule{nr: unix.SYS_OPENAT2, errno: syscall.ENOSYS}, // its arguments can't be inspected; programs fall back
		sockets(unix.SYS_SOCKET), sockets(unix.SYS_SOCKETPAIR),
		// 0x541c pastes on a console
		callRule{nr: unix.SYS_IOCTL, errno: syscall.EPERM, but: []argTest{{1, 0, []uint32{unix.TIOCSTI, 0x541c, unix.TIOCSETD, unix.TIOCCONS}}}},
	)
}

// RunsAs are the mode bits that let others run a file as its owner.
const RunsAs = unix.S_ISUID | unix.S_ISGID

// modeCalls denies those bits.
func modeCalls() []callRule {
	mode := func(nr uintptr, arg int) callRule {
		return callRule{nr: nr, errno: syscall.EPERM, only: []argTest{{arg, RunsAs, []uint32{0}}}}
	}
	out := []callRule{
		mode(unix.SYS_FCHMOD, 1), mode(unix.SYS_FCHMODAT, 2), mode(unix.SYS_FCHMODAT2, 2), mode(unix.SYS_MKDIRAT, 2),
		mode(unix.SYS_MKNODAT, 2), opening(unix.SYS_OPENAT, 2),
	}
	for nr, arg := range oldModeCalls() {
		out = append(out, mode(nr, arg))
	}
	for _, nr := range oldOpenCalls() {
		out = append(out, opening(nr, 1))
	}
	return out
}

// opening denies them where a file is created. Otherwise the argument is ignored.
func opening(nr uintptr, flags int) callRule {
	const hidden = unix.O_TMPFILE &^ unix.O_DIRECTORY
	return callRule{nr: nr, errno: syscall.EPERM, but: []argTest{
		{flags, unix.O_CREAT | hidden, []uint32{unix.O_CREAT, hidden, unix.O_CREAT | hidden}},
		{flags + 1, RunsAs, []uint32{unix.S_ISUID, unix.S_ISGID, RunsAs}},
	}}
}

// Offsets in the kernel's data for a filter.
const (
	offsetNr   = 0
	offsetArch = 4
	offsetArgs = 16
)

// Instructions of a filter: load a word of the data, return a verdict, and jump over instructions depending on
// a comparison.
func load(k uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: k}
}

func ret(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }

func jump(op uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)}
}

// assemble creates a filter program. Calls of another architecture end the process.
func assemble(arch uint32, rules []callRule) []unix.SockFilter {
	prog := []unix.SockFilter{
		load(offsetArch), jump(unix.BPF_JEQ, arch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS),
		load(offsetNr), jump(unix.BPF_JGE, 0x40000000, 0, 1), ret(unix.SECCOMP_RET_KILL_PROCESS), // x32
		jump(unix.BPF_JGT, lastCall, 0, 1), ret(unix.SECCOMP_RET_ERRNO | uint32(syscall.ENOSYS)),
	}
	allow := ret(unix.SECCOMP_RET_ALLOW)
	for _, r := range rules {
		refuse := ret(unix.SECCOMP_RET_ERRNO | uint32(r.errno))
		if r.asks {
			refuse = ret(unix.SECCOMP_RET_USER_NOTIF)
		}
		var body []unix.SockFilter
		if r.but != nil {
			body = append(body, ifAll(r.but, refuse)...)
		}
		switch {
		case r.only != nil:
			body = append(append(body, ifAll(r.only, allow)...), refuse)
		case r.but != nil:
			body = append(body, allow)
		default:
			body = append(body, refuse)
		}
		prog = append(prog, jump(unix.BPF_JEQ, uint32(r.nr), 0, len(body)))
		prog = append(prog, body...)
	}
	return append(prog, allow)
}

// ifAll returns a verdict if all tests hold. Otherwise execution continues after it.
func ifAll(tests []argTest, verdict unix.SockFilter) []unix.SockFilter {
	out := []unix.SockFilter{verdict}
	for _, t := range slices.Backward(tests) {
		one := []unix.SockFilter{load(offsetArgs + uint32(t.arg)*8 + lowHalf)}
		if t.mask != 0 {
			one = append(one, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: t.mask})
		}
		for i, v := range t.in {
			one = append(one, jump(unix.BPF_JEQ, v, len(t.in)-i, 0)) // over the other values and the exit
		}
		one = append(one, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JA, K: uint32(len(out))})
		out = append(one, out...)
	}
	return out
}

// lowHalf is the offset of an argument's low half: all supported architectures are little-endian.
const lowHalf = 0

// CanFilter reports whether there are rules for this architecture.
func CanFilter() bool { return auditArch() != 0 }

// Filter installs the filter of a box on the current thread.
func Filter(level tool.Level) error {
	arch := auditArch()
	if arch == 0 {
		return errors.New("no rules for this architecture")
	}
	return install(assemble(arch, callsOf(level)), 0)
}

// FilterAsking is Filter, but asks about connect and, with folders, about calls that create, move or remove
// folders: the reader of the descriptor decides; see seccomp_unotify(2). On kernels that don't support it
// (before 5.19) the filter only denies: the descriptor is -1.
func FilterAsking(level tool.Level, folders bool) (listener int, err error) {
	if !CanFilter() {
		return -1, Filter(level)
	}
	asked := []callRule{{nr: unix.SYS_CONNECT, asks: true}}
	if folders {
		for _, c := range FolderCalls() {
			rule := callRule{nr: c.NR, asks: true}
			if c.NR == unix.SYS_UNLINKAT {
				rule.but = []argTest{{2, unix.AT_REMOVEDIR, []uint32{unix.AT_REMOVEDIR}}}
			}
			asked = append(asked, rule)
		}
	}
	listener, err = installAsking(assemble(auditArch(), append(asked, callsOf(level)...)))
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EBUSY) {
		return -1, Filter(level)
	}
	return listener, err
}

// FolderCall is a system call that creates, moves or removes a folder.
type FolderCall struct {
	NR      uintptr
	Names   [][2]int // arguments that name folders: the descriptor that the path is relative to (-1: none), and the path
	Mode    int      // the argument with the mode of a new folder; 0 means it creates none
	Removes bool
}

// FolderCalls lists these calls. Unlinkat is one only with AT_REMOVEDIR.
func FolderCalls() []FolderCall {
	return append(
		oldFolderCalls(),
		FolderCall{NR: unix.SYS_MKDIRAT, Names: [][2]int{{0, 1}}, Mode: 2},
		FolderCall{NR: unix.SYS_UNLINKAT, Names: [][2]int{{0, 1}}, Removes: true},
		FolderCall{NR: unix.SYS_RENAMEAT, Names: [][2]int{{0, 1}, {2, 3}}},
		FolderCall{NR: unix.SYS_RENAMEAT2, Names: [][2]int{{0, 1}, {2, 3}}},
	)
}

// callsOf lists what a box denies.
func callsOf(level tool.Level) []callRule {
	if level == tool.BoxRead {
		return readCalls()
	}
	return workspaceCalls()
}

// install installs a filter on the current thread, or with unix.SECCOMP_FILTER_FLAG_TSYNC on all threads. It
// can't be removed.
func install(prog []unix.SockFilter, flags uintptr) error {
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return errno
	}
	return nil
}

// installAsking is install for a program that asks. The listener reads the requests from the descriptor.
func installAsking(prog []unix.SockFilter) (int, error) {
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&fprog)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

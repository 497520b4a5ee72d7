package walls

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Seal restricts this process permanently: from now on it can only compute, and read and write open files. It
// can't open a file, start a process, create a socket or signal another process. It is for programs that
// process untrusted data. On architectures without rules it does nothing.
func Seal() error {
	arch := auditArch()
	if arch == 0 {
		return nil
	}
	runtime.LockOSThread() // the filter needs the no_new_privs flag of this thread
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	if err := install(sealed(arch), unix.SECCOMP_FILTER_FLAG_TSYNC); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// sealed returns the filter: it denies everything that is not listed.
func sealed(arch uint32) []unix.SockFilter {
	allow, refuse := ret(unix.SECCOMP_RET_ALLOW), ret(unix.SECCOMP_RET_ERRNO|uint32(syscall.EPERM))
	prog := []unix.SockFilter{
		load(offsetArch), jump(unix.BPF_JEQ, arch, 1, 0), ret(unix.SECCOMP_RET_KILL_PROCESS), load(offsetNr),
		jump(unix.BPF_JEQ, unix.SYS_CLONE, 0, 4), // threads only
		load(offsetArgs + lowHalf), jump(unix.BPF_JSET, unix.CLONE_THREAD, 0, 1), allow, refuse,
		jump(unix.BPF_JEQ, unix.SYS_CLONE3, 0, 1), ret(unix.SECCOMP_RET_ERRNO | uint32(syscall.ENOSYS)), // programs fall back
		jump(unix.BPF_JEQ, unix.SYS_TGKILL, 0, 4), // of this process only
		load(offsetArgs + lowHalf), jump(unix.BPF_JEQ, uint32(unix.Getpid()), 0, 1), allow, refuse,
	}
	for _, nr := range computing() {
		prog = append(prog, jump(unix.BPF_JEQ, uint32(nr), 0, 1), allow)
	}
	return append(prog, refuse)
}

// computing lists the system calls of a Go program that only computes, reads and writes.
func computing() []uintptr {
	return []uintptr{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_FCNTL,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP,
		unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_RSEQ, unix.SYS_SET_ROBUST_LIST, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	}
}

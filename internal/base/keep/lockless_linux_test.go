package keep_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/base/keep"
)

// lockless takes a lock in a process whose system refuses flock(2), as file systems without locks do.
func lockless(path string) error {
	const number = 0 // offset of the number of a call
	code := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: number},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_FLOCK},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(syscall.ENOLCK)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	filter := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&filter)))
	if failed != 0 {
		return failed
	}
	_, err := keep.LockFile(context.Background(), path, 0)
	return err
}

// TestNoLocks checks that a file system without locks is named, with a way out.
func TestNoLocks(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	path := filepath.Join(t.TempDir(), "lock")
	cmd, said := exec.CommandContext(t.Context(), self), bytes.Buffer{}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), childEnv+"=lockless "+path), &said, &said
	want := filepath.Dir(path) + " is on a file system without locks (flock: no locks available); choose another one with --state DIR"
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), want) {
		t.Errorf("%v: %s", err, said.String())
	}
}

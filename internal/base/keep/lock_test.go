//go:build linux

package keep_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// holder starts a process that takes a lock, says so, and has it until it is killed.
func holder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"=hold "+path)
	in, err := cmd.StdinPipe()
	must(t, err)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if said, err := bufio.NewReader(out).ReadString('\n'); said != "held\n" {
		t.Fatal(said, err)
	}
	return cmd
}

// hold is the work of such a process.
func hold(path string) error {
	l, err := keep.LockFile(context.Background(), path, 0)
	if err != nil {
		return err
	}
	defer func() { _ = l.Close() }()
	_, _ = os.Stdout.WriteString("held\n")
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestLockOfAnotherProcess checks that a lock keeps another process out until it dies.
func TestLockOfAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := holder(t, path)
	mode(t, path, 0o600)
	want := fmt.Sprintf("process %d (keep.test) has held the lock %s for more than 20ms: end that process, and try again", other.Process.Pid, path)
	if runtime.GOOS != "linux" {
		want = "another process has held the lock " + path
	}
	for name, take := range map[string]func(context.Context, string, time.Duration) (*keep.Lock, error){
		"file": keep.LockFile, "shared": keep.LockShared,
	} {
		if _, err := take(t.Context(), path, 20*time.Millisecond); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := keep.LockFile(gone, path, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := keep.LockFile(gone, path+"-free", 0); !errors.Is(err, context.Canceled) {
		t.Error("a lock that nobody holds was taken by who has given up:", err)
	}
	must(t, other.Process.Kill())
	l, err := keep.LockFile(t.Context(), path, 0)
	must(t, err)
	must(t, errors.Join(l.Close(), l.Close(), (*keep.Lock)(nil).Close()))
}

// TestLocksOfOneProcess checks that goroutines exclude each other too, and that readers exclude only writers.
func TestLocksOfOneProcess(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "lock")
	for name, take := range map[string]func() (*keep.Lock, error){
		"file":   func() (*keep.Lock, error) { return keep.LockFile(t.Context(), path, time.Minute) },
		"folder": func() (*keep.Lock, error) { return keep.LockFolder(t.Context(), dir, time.Minute) },
	} {
		var all sync.WaitGroup
		inside, most := 0, 0
		var mu sync.Mutex
		count := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			inside += n
			most = max(most, inside)
		}
		for range 4 {
			all.Go(func() {
				for range 20 {
					l, err := take()
					if err != nil {
						t.Error(err)
						return
					}
					count(1)
					count(-1)
					_ = l.Close()
				}
			})
		}
		all.Wait()
		if most != 1 {
			t.Errorf("%s: %d at once", name, most)
		}
	}
	one, err := keep.LockShared(t.Context(), path, 0)
	must(t, err)
	two, err := keep.LockShared(t.Context(), path, 0)
	must(t, err)
	if _, err := keep.LockFile(t.Context(), path, time.Millisecond); err == nil {
		t.Error("one writes while others read")
	}
	must(t, errors.Join(one.Close(), two.Close()))
}

// TestLockWhereNothingIs fails, and makes nothing but the file of a lock.
func TestLockWhereNothingIs(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	if _, err := keep.LockFolder(t.Context(), missing, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := keep.LockFile(t.Context(), filepath.Join(missing, "lock"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if got := names(t, dir); len(got) != 0 {
		t.Error(got)
	}
}

// TestLockWithoutWriting takes the lock of a file that only can be read.
func TestLockWithoutWriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	must(t, os.WriteFile(path, nil, 0o400))
	l, err := keep.LockFile(t.Context(), path, time.Minute)
	must(t, err)
	must(t, l.Close())
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := keep.Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Error(err, time.Since(began))
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := keep.Sleep(limited, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Error(err, time.Since(began))
		}
		if err := keep.Sleep(limited, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Error("it is over:", err)
		}
		if err := keep.Sleep(t.Context(), -time.Second); err != nil || time.Since(began) != time.Minute {
			t.Error(err)
		}
	})
}

// TestClosedIsUnlocked checks that a lock is given back although a process which was just being started has a copy of
// its file.
func TestClosedIsUnlocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := keep.LockFile(t.Context(), path, 0)
	if err != nil {
		t.Fatal(err)
	}
	names, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	copied := -1
	for _, n := range names {
		if to, err := os.Readlink("/proc/self/fd/" + n.Name()); err == nil && to == path {
			fd, _ := strconv.Atoi(n.Name())
			if copied, err = syscall.Dup(fd); err != nil {
				t.Fatal(err)
			}
		}
	}
	if copied < 0 {
		t.Fatal("the file is not open")
	}
	defer func() { _ = syscall.Close(copied) }()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if got, err := keep.TryLock(other, false); err != nil || !got {
		t.Errorf("it is still held: %v", err)
	}
}

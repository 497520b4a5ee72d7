package walls_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
)

// breakouts are the attempts of a sealed process. Each gets the folder of the test and the test's own process.
func breakouts() map[string]func(dir string, parent int) error {
	return map[string]func(dir string, parent int) error{
		"read a file":     func(dir string, _ int) error { _, err := os.ReadFile(filepath.Join(dir, "there")); return err },
		"look at a file":  func(dir string, _ int) error { _, err := os.Stat(filepath.Join(dir, "there")); return err },
		"list a folder":   func(dir string, _ int) error { _, err := os.ReadDir(dir); return err },
		"write a file":    func(dir string, _ int) error { return os.WriteFile(filepath.Join(dir, "new"), nil, 0o600) },
		"remove a file":   func(dir string, _ int) error { return os.Remove(filepath.Join(dir, "there")) },
		"make a folder":   func(dir string, _ int) error { return os.Mkdir(filepath.Join(dir, "folder"), 0o700) },
		"make a link":     func(dir string, _ int) error { return os.Symlink("there", filepath.Join(dir, "link")) },
		"start a program": func(string, int) error { return exec.Command("/bin/true").Run() },
		"become another":  func(string, int) error { return syscall.Exec("/bin/true", []string{"true"}, nil) },
		"fork": func(string, int) error {
			_, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
			return failed(errno)
		},
		"make a socket":   func(string, int) error { _, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); return err },
		"ask a server":    func(string, int) error { _, err := net.Dial("tcp", "127.0.0.1:1"); return err },
		"signal another":  func(_ string, parent int) error { return unix.Kill(parent, unix.SIGUSR1) },
		"signal a thread": func(_ string, parent int) error { return unix.Tgkill(parent, parent, unix.SIGUSR1) },
		"look into one":   func(_ string, parent int) error { return unix.PtraceAttach(parent) },
		"set its limits":  func(string, int) error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1, Max: 1}) },
		"make a pipe":     func(string, int) error { return unix.Pipe2(make([]int, 2), 0) },
		"hide memory":     func(string, int) error { _, err := unix.MemfdCreate("x", 0); return err },
		"load a filter":   func(string, int) error { return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_STRICT, 0, 0, 0) },
	}
}

func failed(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// sealed is the process of TestSeal: it reports the outcome of each attempt.
func sealed() {
	var at struct {
		Dir    string
		Parent int
	}
	if err := json.Unmarshal([]byte(os.Getenv("SANDBOX_TEST_SEALED")), &at); err != nil {
		panic(err)
	}
	begin, beside := make(chan struct{}), make(chan error)
	for range 4 { // threads that there were before
		go func() {
			runtime.LockOSThread()
			<-begin
			_, err := os.ReadFile(filepath.Join(at.Dir, "there"))
			beside <- err
		}()
	}
	if err := walls.Seal(); err != nil {
		panic(err)
	}
	close(begin)
	for range 4 {
		fmt.Printf("read a file on another thread: %v\n", <-beside)
	}
	for name, try := range breakouts() {
		fmt.Printf("%s: %v\n", name, try(at.Dir, at.Parent))
	}
	work := make(chan int) // it goes on as a Go program does
	for i := range 20 {
		go func() { work <- len(strings.Repeat("x", i<<16)) }()
	}
	for range 20 {
		<-work
	}
	fmt.Println("done")
	os.Exit(0)
}

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if os.Getenv("SANDBOX_TEST_SEALED") != "" {
		sealed()
	}
	os.Exit(m.Run())
}

// TestSeal checks that a process which has sealed itself off can compute and print, and nothing else.
func TestSeal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	at, err := json.Marshal(map[string]any{"Dir": dir, "Parent": os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience) // one that isn't sealed off tries what may never return
	defer stop()
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_SEALED="+string(at))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), "done\n") {
		t.Fatalf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if name, came, is := strings.Cut(strings.TrimSpace(line), ": "); is && !strings.Contains(came, "operation not permitted") {
			t.Errorf("%s: %s", name, came)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left %v: %v", entries, err)
	}
	if n := strings.Count(string(out), "\n"); n != len(breakouts())+4+1 {
		t.Errorf("%d attempts were told of", n-1)
	}
}

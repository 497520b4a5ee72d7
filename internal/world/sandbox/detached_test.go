//go:build unix

package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
)

// detach starts a shell as a detached process; the script finds the report at 3
// and the order at 4.
func detach(t *testing.T, script, order string) (d *sandbox.Detached, log string) {
	t.Helper()
	log = filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if d, err = sandbox.Detach("/bin/sh", []string{"-c", script}, f, []byte(order)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d, log
}

func TestDetach(t *testing.T) {
	t.Setenv("DETACHED_TEST", "passed on")
	order := strings.Repeat("a long order ", 20_000) // longer than a pipe holds
	d, log := detach(t, `cat; order=$(cat <&4 | wc -c); ps -o sid= -p $$ >&3; echo $$ $order $DETACHED_TEST >&3; echo out; echo err >&2; `+
		`exec 3>&-; exit 7`, order)
	told, err := d.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(told))
	if len(fields) != 5 || fields[0] != fields[1] || fields[2] != strconv.Itoa(len(order)) || fields[4] != "on" {
		t.Errorf("told %q: want its session to be its own, and all of the order", told)
	}
	if code, err := d.Wait(); code != 7 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	if raw, err := os.ReadFile(log); string(raw) != "out\nerr\n" || err != nil {
		t.Errorf("log %q, %v", raw, err)
	}
}

// TestDetachIsCalledOff ends the wait for the report, and with it the process.
func TestDetachIsCalledOff(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	d, _ := detach(t, `cat <&4; exec sleep 300`, "")
	cancel()
	if _, err := d.Report(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if code, err := d.Wait(); code != 128+int(syscall.SIGKILL) || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
}

func TestDetachFails(t *testing.T) {
	if _, err := sandbox.Detach("/no/such/program", nil, os.Stderr, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOrderedIsForDetachedProcesses(t *testing.T) {
	if order, report, err := sandbox.Ordered(); !errors.Is(err, fs.ErrNotExist) || order != nil || report != nil {
		t.Errorf("got %q, %v, %v", order, report, err)
	}
}

// TestEnd ends processes that end when told to, and such that do not.
func TestEnd(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		wait   time.Duration
		killed bool
	}{
		"ends":    {`echo ready; exec sleep 300`, testkit.Patience, false},
		"refuses": {`trap '' TERM; echo ready; exec sleep 300`, 300 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			pid, gone := victims(t, c.script)
			still := func() bool {
				select {
				case <-gone:
					return false
				default:
					return true
				}
			}
			killed, err := sandbox.End(t.Context(), pid, c.wait, still)
			if killed != c.killed || err != nil || still() {
				t.Errorf("killed %v, %v; want %v", killed, err, c.killed)
			}
		})
	}
}

// TestEndLeavesStrangersAlone passes a process number that now belongs to another process.
func TestEndLeavesStrangersAlone(t *testing.T) {
	pid, gone := victims(t, `trap 'exit 9' TERM; trap 'exit 3' WINCH; echo ready; while :; do sleep 0.01; done`)
	if killed, err := sandbox.End(t.Context(), pid, testkit.Patience, func() bool { return false }); killed || err != nil {
		t.Errorf("killed %v, %v", killed, err)
	}
	// A shell looks at a lower signal first, had there been one.
	if err := syscall.Kill(pid, syscall.SIGWINCH); err != nil {
		t.Fatal(err)
	}
	if code := <-gone; code != 3 {
		t.Errorf("the stranger ended with code %d", code)
	}
}

// TestEndIsCalledOff ends the wait, and kills nothing.
func TestEndIsCalledOff(t *testing.T) {
	pid, _ := victims(t, `trap '' TERM; echo ready; exec sleep 300`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if killed, err := sandbox.End(ctx, pid, time.Hour, func() bool { return true }); killed || !errors.Is(err, context.Canceled) {
		t.Errorf("killed %v, %v", killed, err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Error(err)
	}
}

// victims starts a shell that has said it is ready; gone has its exit code when it
// has ended.
func victims(t *testing.T, script string) (pid int, gone <-chan int) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	code, ended := make(chan int, 1), make(chan struct{})
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
		code <- cmd.ProcessState.ExitCode()
		close(code)
	}()
	if err != nil || line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	return cmd.Process.Pid, code
}

package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestMain lets the test binary play a harness that is killed: it starts a
// process, says its id and waits to die.
func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if os.Getenv("SANDBOX_TEST_VICTIM") != "" {
		victim()
	}
	if os.Getenv("SANDBOX_TEST_DOCK") != "" {
		dockedVictim()
	}
	if os.Getenv("SANDBOX_TEST_FIRST") != "" {
		leavesBehind()
	}
	code := m.Run()
	closeDocks()
	os.Exit(code)
}

func victim() {
	env, err := sandbox.Local(os.TempDir(), nil, sandbox.Options{})
	if err != nil {
		panic(err)
	}
	_, err = env.Procs.Start(context.Background(), tool.Command{
		Args: []string{"sh", "-c", "echo $$; exec sleep 300"}, Dir: env.Root, Output: os.Stdout,
	})
	if err != nil {
		panic(err)
	}
	select {}
}

func TestCancelDaemon(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, pid := boxes.Start(t, ctx, boxes.Unwalled(t), tool.Command{Args: []string{"sh", "-c", daemon + "wait"}})
	if !boxes.Running(pid) {
		t.Fatal("the daemon did not start")
	}
	cancel()
	if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
	boxes.WaitForEnd(t, pid)
}

// TestKillLater checks that a process left behind runs on, and ends with Kill.
func TestKillLater(t *testing.T) {
	for name, script := range map[string]string{
		"daemon": daemon,
		"child":  `sh -c 'echo $$; exec >/dev/null 2>&1; exec sleep 300' & `,
	} {
		t.Run(name, func(t *testing.T) {
			p, pid := boxes.Start(t, t.Context(), boxes.Unwalled(t), tool.Command{Args: []string{"sh", "-c", script + "sleep 0.2"}})
			if code, err := p.Wait(); code != 0 || err != nil {
				t.Fatal(code, err)
			}
			if !boxes.Running(pid) {
				t.Fatal("it ended with its parent")
			}
			p.Kill()
			boxes.WaitForEnd(t, pid)
		})
	}
}

// TestLeftWhileItLoads leaves a process behind that loads its program again and again, in which it has no
// environment for a moment: it is seen whenever one looks, and can be killed.
func TestLeftWhileItLoads(t *testing.T) {
	env := boxes.Unwalled(t)
	if err := os.WriteFile(filepath.Join(env.Root, "again"), []byte("exec sh again\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, pid := boxes.Start(t, t.Context(), env, tool.Command{
		Args: []string{"sh", "-c", "setsid sh again >/dev/null 2>&1 & echo $!"},
		Env:  append(os.Environ(), "MUCH="+strings.Repeat("x", 40_000)), // more than one reads at once
	})
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	for n := range 300 {
		if !p.(ability.Leaver).Left() {
			t.Fatalf("it was not seen the %dth time, and runs: %v", n+1, boxes.Running(pid))
		}
	}
	p.Kill()
	boxes.WaitForEnd(t, pid)
}

// TestParentDies checks that the process is killed when the harness is.
func TestParentDies(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, pid := boxes.Start(t, t.Context(), boxes.Unwalled(t), tool.Command{Args: []string{self}, Env: append(os.Environ(), "SANDBOX_TEST_VICTIM=1")})
	ppid := parentOf(t, pid)
	if !boxes.Running(pid) {
		t.Fatal("the child did not start")
	}
	// Kill finds the child by itself, so the parent alone is killed here.
	if err := syscall.Kill(ppid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	boxes.WaitForEnd(t, pid)
	if code, err := p.Wait(); code != 128+9 || err != nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "PPid:\t")
	line, _, _ := strings.Cut(rest, "\n")
	ppid, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return ppid
}

// TestDescriptors checks that a process gets no open file of ours, not even
// one that this process would pass on by itself.
func TestDescriptors(t *testing.T) {
	var fds [2]int
	if err := syscall.Pipe(fds[:]); err != nil { // without close-on-exec
		t.Fatal(err)
	}
	defer func() { _, _ = syscall.Close(fds[0]), syscall.Close(fds[1]) }()
	env := boxes.Unwalled(t)
	var out bytes.Buffer
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sh", "-c", "ls /proc/$$/fd"}, Dir: env.Root, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code != 0 || err != nil {
		t.Fatal(code, err)
	}
	if got := strings.Fields(out.String()); strings.Join(got, " ") != "0 1 2" {
		t.Errorf("open descriptors are %q", got)
	}
}

// TestOwnSession checks that a process leads its own group and has no
// terminal.
func TestOwnSession(t *testing.T) {
	env := boxes.Unwalled(t)
	_, pid := boxes.Start(t, t.Context(), env, tool.Command{Args: []string{"sh", "-c", "echo $$; exec sleep 300"}})
	pgid, err := syscall.Getpgid(pid)
	if err != nil || pgid != pid {
		t.Errorf("process %d is in group %d, %v", pid, pgid, err)
	}
	var out bytes.Buffer
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"sh", "-c", "echo x >/dev/tty"}, Dir: env.Root, Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(); code == 0 || err != nil {
		t.Errorf("wrote to a terminal: %d, %v", code, err)
	}
}

func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	env := boxes.Unwalled(t)
	path := filepath.Join(env.Root, "f")
	if err := os.WriteFile(path, nil, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 1234, 2345); err != nil {
		t.Fatal(err)
	}
	if err := env.Files.Change(t.Context(), tool.Change{Path: path, Data: []byte("x")}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Uid != 1234 || st.Gid != 2345 || info.Mode() != 0o640 {
		t.Errorf("owner %d:%d, mode %v", st.Uid, st.Gid, info.Mode())
	}
}

func BenchmarkStart(b *testing.B) {
	b.Run("exec", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	for name, env := range map[string]tool.Env{"direct": boxes.Unwalled(b), "none": boxes.Kept(b), "read": boxes.Kept(b), "workspace": boxes.Kept(b)} {
		b.Run(name, func(b *testing.B) {
			level := tool.Level(name)
			if name == "direct" {
				level = tool.BoxNone
			}
			for b.Loop() {
				p, err := env.Procs.Start(b.Context(), tool.Command{Args: []string{"/bin/true"}, Dir: env.Root, Box: tool.Box{Level: level}})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := p.Wait(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// daemon leaves the group and the output of its parent.
const daemon = `setsid sh -c 'trap "" TERM HUP; echo $$; exec >/dev/null 2>&1; while :; do sleep 1; done' & `

//go:build linux || darwin

package consent_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/consent"
	"github.com/inspan/inspan/internal/testkit"
)

const childEnv = "CONSENT_TEST_CHILD" // a line of words: be a child process

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		runtime.LockOSThread() // strace counts the calls of each thread
		if err := child(strings.Split(args, "|")); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child does one thing in a process of its own.
func child(args []string) error {
	switch args[0] {
	case "approve": // folder, name, count: say each rule that is approved
		s := &consent.Store{Dir: args[1]}
		count, err := strconv.Atoi(args[3])
		for i := 0; i < count && err == nil; i++ {
			rule := fmt.Sprintf("bash(%s %d)", args[2], i)
			if err = testkit.Patiently(func() error { return s.Approve(context.Background(), always(rule)) }); err == nil {
				_, err = fmt.Println(rule)
			}
		}
		return err
	case "find": // root: list its items
		items, err := consent.Find(args[1])
		for _, it := range items {
			fmt.Println(it.Path, it.Digest != "")
		}
		return err
	case "find unprivileged":
		if os.Getuid() == 0 {
			if err := syscall.Setuid(65534); err != nil {
				return err
			}
		}
		return child([]string{"find", args[1]})
	case "run":
		return exec.Command("true").Run()
	case "connect":
		_, err := net.Dial("tcp", "127.0.0.1:1")
		fmt.Println(err)
		return nil
	}
	return fmt.Errorf("unknown: %q", args)
}

func command(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+strings.Join(args, "|"))
	cmd.Stderr = os.Stderr
	return cmd
}

func rules(t testing.TB, s *consent.Store) map[string]int {
	t.Helper()
	list, err := s.Approvals("")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, a := range list {
		out[a.Rule]++
	}
	return out
}

func TestManyProcesses(t *testing.T) {
	const processes, each = 8, 50
	s := store(t)
	var running []*exec.Cmd
	var out io.Reader
	for i := range processes {
		cmd := command(t, "approve", s.Dir, fmt.Sprint("p", i), fmt.Sprint(each))
		if i == 0 {
			var err error
			if out, err = cmd.StdoutPipe(); err != nil {
				t.Fatal(err)
			}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	seen := 0
	for lines := bufio.NewScanner(out); lines.Scan(); { // readers take no lock and never see a part
		n := len(rules(t, s))
		if n < seen || n == 0 {
			t.Fatalf("%d approvals, then %d", seen, n)
		}
		seen = n
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	got := rules(t, s)
	for i := range processes {
		for k := range each {
			if rule := fmt.Sprintf("bash(p%d %d)", i, k); got[rule] != 1 {
				t.Errorf("%s is there %d times", rule, got[rule])
			}
		}
	}
}

// TestKilledAnywhere kills writers at random moments. What they said is there,
// the file is whole, and the next writer needs not wait.
func TestKilledAnywhere(t *testing.T) {
	s := store(t)
	acknowledged, killed := map[string]bool{}, 0
	for round := range 60 {
		cmd := command(t, "approve", s.Dir, fmt.Sprint("r", round), "100000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatal("the child did nothing")
		}
		acknowledged[lines.Text()] = true
		timer := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for lines.Scan() {
			acknowledged[lines.Text()] = true
		}
		_ = cmd.Wait()
		timer.Stop()
		if cmd.ProcessState.ExitCode() == -1 {
			killed++
		}
		got := rules(t, s)
		for rule := range acknowledged {
			if got[rule] != 1 {
				t.Fatalf("round %d: %s was acknowledged and is there %d times", round, rule, got[rule])
			}
		}
		if len(got) > len(acknowledged)+killed {
			t.Fatalf("round %d: %d rules, %d acknowledged", round, len(got), len(acknowledged))
		}
		approve(t, s, always("after"))
		acknowledged["after"] = true
	}
	t.Logf("%d killed, %d approvals", killed, len(acknowledged))
	if killed < 50 {
		t.Errorf("only %d were killed", killed)
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) > 3 {
		t.Errorf("leftovers: %v, %v", entries, err)
	}
}

// strace returns the path of strace, or skips the test for all to see.
func strace(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("strace")
	if err == nil {
		err = exec.CommandContext(t.Context(), path, "-f", "-o", os.DevNull, "true").Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: strace is not installed or can not trace here (apt-get install strace): %v\n", t.Name(), err)
		t.Skip("no strace")
	}
	return path
}

// traced runs a command under strace and returns its system calls.
func traced(t *testing.T, cmd *exec.Cmd, options ...string) (trace string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace")
	cmd.Args = append(append([]string{strace(t), "-f", "-qq", "-o", file}, options...), cmd.Path)
	cmd.Path = cmd.Args[0]
	err = cmd.Run()
	data, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(data), err
}

// TestFaultAtEveryCall fails each call of a writer that can touch the store, one after the other, by an error or by the
// end of the process. The store has the old or the new content, and every acknowledged change.
func TestFaultAtEveryCall(t *testing.T) {
	strace(t)
	for _, fault := range []string{
		"fsync:signal=SIGKILL", "fsync:error=EIO", "renameat:signal=SIGKILL", "renameat:error=EIO", "write:signal=SIGKILL", "write:error=ENOSPC",
		"flock:signal=SIGKILL", "flock:error=EINTR", "flock:error=ENOLCK", "mkdirat:signal=SIGKILL", "mkdirat:error=ENOSPC",
	} {
		t.Run(strings.ReplaceAll(fault, ":", " "), func(t *testing.T) {
			fired := 0
			for _, old := range []bool{false, true} {
				for n := 1; n < 100 && faultOnce(t, fault, n, old); n++ {
					fired++
				}
			}
			t.Logf("%d faults", fired)
			if fired < 2 {
				t.Error("nothing was injected")
			}
		})
	}
}

// faultOnce approves under a fault at the nth call, and checks. It reports
// whether the fault was injected.
func faultOnce(t *testing.T, fault string, n int, old bool) bool {
	t.Helper()
	s := store(t)
	if old {
		approve(t, s, always("old"))
	}
	cmd, out := command(t, "approve", s.Dir, "x", "1"), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, io.Discard
	call, _, _ := strings.Cut(fault, ":")
	trace, err := traced(t, cmd, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:when=%d", fault, n))
	got := rules(t, s)
	said := strings.HasPrefix(out.String(), "bash(x 0)")
	injected := strings.Contains(trace, "INJECTED") || strings.Contains(trace, "killed by SIGKILL")
	if old && got["old"] != 1 || said && got["bash(x 0)"] != 1 || err == nil && !said {
		t.Fatalf("call %d: %v after %q, %v", n, got, out, err)
	}
	if injected && err == nil && call != "flock" { // which is tried again, or fails to be given back by a process that ends
		t.Fatalf("call %d: the fault went unnoticed", n)
	}
	approve(t, s, always("later"))
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) != 2 {
		t.Fatalf("call %d: leftovers: %v, %v", n, entries, err)
	}
	return injected
}

// TestFullDisk writes to a disk until it is full.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(dir); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: can't mount a small disk: %v\n", t.Name(), err)
		t.Skip("no small disk")
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	s := &consent.Store{Dir: filepath.Join(dir, "consent")}
	kept := map[string]int{}
	var full error
	for i := 0; i < 1000 && full == nil; i++ {
		rule := fmt.Sprintf("bash(%d %s)", i, strings.Repeat("x", 2000))
		if full = s.Approve(t.Context(), always(rule)); full == nil {
			kept[rule] = 1
		}
	}
	if !errors.Is(full, syscall.ENOSPC) || len(kept) < 10 {
		t.Fatalf("%d kept, then %v", len(kept), full)
	}
	if diff := cmp.Diff(kept, rules(t, s)); diff != "" {
		t.Error(diff)
	}
	if n, err := s.Revoke(t.Context(), firstKey(kept), ""); err == nil && n != 1 {
		t.Errorf("revoked %d", n)
	}
	if entries, err := os.ReadDir(s.Dir); err != nil || len(entries) != 2 {
		t.Errorf("leftovers: %v, %v", entries, err)
	}
}

func firstKey(m map[string]int) string {
	for k := range m {
		return k
	}
	return ""
}

// TestFindRunsNothing traces Find over the hostile workspace: it starts no
// program, opens no socket and reads nothing outside.
func TestFindRunsNothing(t *testing.T) {
	root, canary := hostile(t)
	offences := func(args ...string) (out []string) {
		cmd := command(t, args...)
		cmd.Stdout = io.Discard
		cmd.Dir = root
		trace, err := traced(t, cmd, "-e", "trace=process,network,openat,open,openat2")
		if err != nil {
			t.Fatal(err)
		}
		execs := 0
		for line := range strings.Lines(trace) {
			_, call, _ := strings.Cut(line, " ")
			call = strings.TrimSpace(call)
			switch name, _, _ := strings.Cut(call, "("); name {
			case "execve":
				if execs++; execs > 1 { // the first is the child itself
					out = append(out, call)
				}
			case "execveat", "fork", "vfork", "socket", "connect", "sendto", "sendmsg":
				out = append(out, call)
			case "clone", "clone3":
				if !strings.Contains(call, "CLONE_THREAD") {
					out = append(out, call)
				}
			case "openat", "open", "openat2":
				if strings.Contains(call, "secret") || strings.Contains(call, "outside") {
					out = append(out, call)
				}
			}
		}
		if execs == 0 {
			t.Fatalf("nothing was traced:\n%s", trace)
		}
		return out
	}
	if got := offences("find", root); len(got) > 0 {
		t.Errorf("Find did this:\n%s", strings.Join(got, "\n"))
	}
	if found, _ := filepath.Glob(canary + "*"); len(found) > 0 {
		t.Errorf("something ran: %v", found)
	}
	for _, control := range []string{"run", "connect"} {
		if got := offences(control); len(got) == 0 {
			t.Errorf("the test does not notice that a child does %q", control)
		}
	}
	if got := offences("find", filepath.Join(root, "..", "outside")); len(got) == 0 {
		t.Error("the test does not notice reading outside")
	}
}

func TestUnreadable(t *testing.T) {
	root := folder(t)
	for _, name := range []string{".mcp.json", ".inspan/hooks/x.sh", ".inspan/tools/a", ".inspan/tools/b", ".claude/skills/s/x.sh"} {
		write(t, root, name, "{}")
	}
	for dir := root; dir != filepath.Dir(os.TempDir()); dir = filepath.Dir(dir) { // the child is someone else
		if info, err := os.Stat(dir); err == nil && info.Mode()&0o005 != 0o005 && strings.HasPrefix(dir, os.TempDir()+"/") {
			chmod(t, dir, 0o755)
		}
	}
	list := func() string {
		t.Helper()
		out, err := command(t, "find unprivileged", root).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if got := list(); strings.Contains(got, "false") {
		t.Fatalf("readable, and yet:\n%s", got)
	}
	for _, name := range []string{".mcp.json", ".inspan/hooks/x.sh", ".inspan/tools/a", ".claude/skills"} {
		chmod(t, filepath.Join(root, name), 0)
		t.Cleanup(func() { chmod(t, filepath.Join(root, name), 0o755) })
	}
	want := ".claude/skills/ false\n.inspan/hooks/ false\n.inspan/tools/a false\n.inspan/tools/b true\n.mcp.json false\n"
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Error(diff)
	}
}

func TestPipesAndSockets(t *testing.T) {
	root := folder(t)
	write(t, root, ".inspan/tools/a", "")
	for _, name := range []string{".mcp.json", ".inspan/tools/pipe"} {
		if err := syscall.Mkfifo(filepath.Join(root, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link(t, "pipe", filepath.Join(root, ".inspan/tools/link"))
	t.Chdir(filepath.Join(root, ".inspan/tools")) // names of sockets are short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	want := []string{".inspan/tools/a", ".inspan/tools/link!", ".inspan/tools/pipe!", ".inspan/tools/socket!", ".mcp.json!"}
	if diff := cmp.Diff(want, paths(find(t, root))); diff != "" {
		t.Error(diff)
	}
}

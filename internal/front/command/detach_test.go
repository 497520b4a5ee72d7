//go:build linux

package command

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/testkit"
)

// detaches starts a session, and ends whatever runs in the home with the test.
func (h home) detaches(t *testing.T, args ...string) (id string) {
	t.Helper()
	h.cleanUp(t)
	lines := strings.Split(strings.TrimSpace(h.does(t, 0, append([]string{"run", "--detach"}, args...)...)), "\n")
	return lines[len(lines)-1]
}

// cleanUp ends whatever runs in the home when the test ends.
func (h home) cleanUp(t *testing.T) {
	t.Cleanup(func() { endAll(h.store().Dir) })
}

// runs is the output of ps.
func (h home) runs(t *testing.T) []running.Driven {
	t.Helper()
	out, err := h.command(t.Context(), "ps", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list []running.Driven
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return list
}

// asks waits until the session asks, and returns its process.
func (h home) asks(t *testing.T, id string) (pid int) {
	t.Helper()
	testkit.WaitFor(t, id+" asks", func() bool {
		for _, d := range h.runs(t) {
			if d.ID == id && d.State == running.StateWaiting {
				pid = d.PID
			}
		}
		return pid != 0
	})
	return pid
}

// attached starts a command that is typed to.
func (h home) attached(t *testing.T, args ...string) *testkit.Process {
	t.Helper()
	return testkit.Start(t, h.command(t.Context(), args...))
}

// nap is a time that no other process sleeps.
func nap() string { return fmt.Sprint(700 + rand.Float64()) }

// TestDetachedIsKilled kills a detached process while a command of the agent runs: no process is left, watchers are
// told, and the session can be continued.
func TestDetachedIsKilled(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	nap := nap()
	id := h.detaches(t, "--mode", "auto", "bash: touch begun; sleep "+nap)
	watching := h.attached(t, "attach", id)
	watching.Shows("▸ bash touch begun; sleep "+nap, 1)
	testkit.WaitFor(t, "the command runs", func() bool { return sleeps(nap) })
	list := h.runs(t)
	if len(list) != 1 || list[0].ID != id || list[0].State != running.StateRunning ||
		list[0].Root == "" || time.Since(list[0].Since) > time.Hour {
		t.Fatalf("%+v", list)
	}
	if err := syscall.Kill(list[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, "ps no longer shows it", func() bool { return len(h.runs(t)) == 0 })
	testkit.WaitFor(t, "its command is gone", func() bool { return !sleeps(nap) })
	watching.Ends(console.ExitError)
	watching.Shows("is no longer running; continue it with: inspan resume "+id, 1)
	h.does(t, console.ExitError, "logs", "-f", id)
	if out := h.does(t, 0, "resume", id); !strings.Contains(out, "Done: 1 step.") {
		t.Errorf("resumed:\n%s", out)
	}
}

// withoutHangup says that the tests run under nohup. It is known before a test handles signals, since the
// runtime no longer tells it afterwards.
var withoutHangup = signal.Ignored(syscall.SIGHUP)

// TestDetachedSurvivesItsTerminal closes the terminal that a run was detached from,
// so that all that belongs to it gets SIGHUP.
func TestDetachedSurvivesItsTerminal(t *testing.T) {
	t.Parallel()
	if withoutHangup {
		t.Skip("the tests run under nohup, so that no terminal's end is noticed")
	}
	h := withoutModel(t)
	window, tty := pseudoTerminal(t)
	shell := exec.CommandContext(t.Context(), "sh", "-c", h.bin+
		` run --detach --mode auto "bash: until [ -e go ]; do sleep 0.05; done; touch went" > id; touch started; exec sleep 300`)
	shell.Dir, shell.Env = h.work, h.command(t.Context()).Env
	shell.Stdin, shell.Stderr = tty, tty
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	h.cleanUp(t)
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	tty.Close()
	testkit.WaitFor(t, "the run has begun", func() bool { return h.has("started") })
	window.Close()
	_ = shell.Wait()
	if ws := shell.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGHUP {
		t.Errorf("the shell ended by %v", ws)
	}
	raw, err := os.ReadFile(filepath.Join(h.work, "id"))
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(raw))
	list := h.runs(t)
	if len(list) != 1 || list[0].ID != id {
		t.Fatalf("%q: %+v", id, list)
	}
	for fd, want := range map[int]string{
		0: "/dev/null", 1: filepath.Join(h.store().Dir, id, running.RunLog),
		2: filepath.Join(h.store().Dir, id, running.RunLog),
	} {
		if got, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", list[0].PID, fd)); got != want || err != nil {
			t.Errorf("descriptor %d is %s, want %s: %v", fd, got, want, err)
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", list[0].PID))
	if err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')'):])); fields[4] != strconv.Itoa(list[0].PID) ||
		fields[5] != "0" {
		t.Errorf("its session is %s and its terminal %s", fields[4], fields[5])
	}
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.does(t, 0, "logs", "-f", id)
	if !h.has("went") {
		t.Error("the command did not run to its end")
	}
}

// pseudoTerminal opens both ends of one.
func pseudoTerminal(t *testing.T) (window, tty *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	fd := int(window.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return window, tty
}

// TestTwoAttached has two people look at a session that asks. The first answer
// counts, and the other person learns of it.
func TestTwoAttached(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch one\nbash: touch two\nbash: echo three > three")
	if out := h.does(t, 1, "sessions", "rm", id); !strings.Contains(out, "join it: inspan attach "+id+", or end it: inspan stop "+id) {
		t.Error(out)
	}
	a, b := h.attached(t, "attach", id), h.attached(t, "attach", id)
	a.Shows("$ touch one", 1)
	b.Shows("$ touch one", 1)
	a.Types("")
	a.Shows("Please answer", 1)
	a.Types("s")
	b.Shows("(answered in another terminal)", 1)
	for _, l := range []*testkit.Process{a, b} {
		l.Shows("$ echo three > three", 1) // the second was allowed with the first
	}
	if !h.has("one") || !h.has("two") || h.has("three") {
		t.Error("an answer does not count")
	}
	b.Types("rather not")
	a.Shows("rather not", 1)
	a.Ends(0)
	b.Ends(0)
	if h.has("three") {
		t.Error("what was denied has run")
	}
	for _, l := range []*testkit.Process{a, b} {
		if strings.Count(l.Printed(), "(answered in another terminal)") != 1 {
			t.Error(l.Printed())
		}
	}
}

// TestAttachSteersAndLeaves types to a session that works, and leaves it.
func TestAttachSteersAndLeaves(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "--mode", "auto", "bash: until [ -e go ]; do sleep 0.05; done")
	l := h.attached(t, "attach", id)
	l.Shows("▸ bash until", 1)
	l.Types("use the helper")
	l.Shows("told the model: use the helper", 1)
	if err := l.Cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	l.Ends(0)
	l.Shows("detached; session "+id+" continues", 1)
	if list := h.runs(t); len(list) != 1 {
		t.Errorf("%+v", list)
	}
	again := h.attached(t, "attach", id)
	again.Shows("told the model: use the helper", 1)
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again.Ends(0)
	again.Shows("— done", 1)
}

// TestAttachAnswers answers the questions of a session and of one that works for it.
func TestAttachAnswers(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, `call: ask_user {"question":"Which bird?","options":["heron","egret"]}`+"\n"+
		`call: spawn_agent {"task":"bash: touch kid"}`)
	h.asks(t, id)
	l := h.attached(t, "attach", id)
	l.Shows("? Which bird?", 1)
	l.Types("2")
	l.Shows("The person answers: egret", 1)
	l.Shows("› bash asks", 1)
	list := h.runs(t)
	testkit.WaitFor(t, "both sessions to ask", func() bool {
		list = h.runs(t)
		return len(list) == 2 && list[0].State == running.StateWaiting && list[1].State == running.StateWaiting
	}, func() string { return fmt.Sprintf("%+v", list) })
	if list[1].Parent != id || list[1].PID != list[0].PID {
		t.Errorf("%+v", list)
	}
	l.Types("p")
	l.Ends(0)
	if !h.has("kid") {
		t.Error("what was allowed has not run")
	}
	id = h.detaches(t, "bash: touch later")
	h.does(t, 0, "logs", "-f", id)
	if !h.has("later") {
		t.Error("what was allowed for the project asks again")
	}
}

// TestStopEndsWhatHangs stops a run whose process does nothing any more.
func TestStopEndsWhatHangs(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	nap := nap()
	id := h.detaches(t, "--mode", "auto", "bash: sleep "+nap)
	testkit.WaitFor(t, "the command runs", func() bool { return sleeps(nap) })
	pid := h.runs(t)[0].PID
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	out := h.does(t, 0, "stop", "--wait", "50ms", id)
	if want := fmt.Sprintf("%s: process %d was killed; the run is broken off, continue with: inspan resume %s\n", id, pid, id); out != want {
		t.Errorf("%q, want %q", out, want)
	}
	testkit.WaitFor(t, "its command is gone", func() bool { return !sleeps(nap) })
	if list := h.runs(t); len(list) != 0 {
		t.Errorf("%+v", list)
	}
}

// TestStopReachesTheCommand stops a run whose command does not want to end.
func TestStopReachesTheCommand(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	nap := nap()
	id := h.detaches(t, "--mode", "auto", "bash: trap '' TERM INT HUP; setsid sleep "+nap+" & sleep "+nap)
	testkit.WaitFor(t, "the command runs", func() bool { return sleeps(nap) })
	pid := h.runs(t)[0].PID
	if out := h.does(t, 0, "stop", id); out != id+": cancelled\n" {
		t.Errorf("%q", out)
	}
	if sleeps(nap) {
		t.Error("the command still runs")
	}
	testkit.WaitFor(t, "the process ends", func() bool { return syscall.Kill(pid, 0) != nil })
	h.does(t, console.ExitCancelled, "logs", "-f", id)
}

// TestStopKeepsWhatWaits stops a run after which another prompt waits, in each way: that is not begun, and done
// when the session is resumed.
func TestStopKeepsWhatWaits(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(h home, id string){
		"stop":   func(h home, id string) { h.does(t, 0, "stop", id) },
		"now":    func(h home, id string) { h.does(t, 0, "stop", "--now", id) },
		"signal": func(h home, _ string) { _ = syscall.Kill(h.runs(t)[0].PID, syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			h := withoutModel(t)
			nap := nap()
			id := h.detaches(t, "--mode", "auto", "bash: sleep "+nap)
			testkit.WaitFor(t, "the command runs", func() bool { return sleeps(nap) })
			h.does(t, 0, "send", id, "bash: touch ran")
			end(h, id)
			testkit.WaitFor(t, "the process ends", func() bool { return len(h.runs(t)) == 0 })
			if h.has("ran") {
				t.Error("what waited was done")
			}
			h.does(t, 0, "resume", id)
			if !h.has("ran") {
				t.Error("what waited was not done")
			}
		})
	}
}

// TestStopOfAChild interrupts it alone: the process is that of the session that it
// works for.
func TestStopOfAChild(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	nap := nap()
	id := h.detaches(t, "--mode", "auto", `call: spawn_agent {"task":"bash: sleep `+nap+`"}`)
	testkit.WaitFor(t, "the command runs", func() bool { return sleeps(nap) })
	list := h.runs(t)
	if len(list) != 2 || list[1].Parent != id {
		t.Fatalf("%+v", list)
	}
	if out := h.does(t, 0, "stop", "--now", list[1].ID); out != list[1].ID+": cancelled\n" {
		t.Errorf("%q", out)
	}
	h.does(t, 0, "logs", "-f", id)
}

// TestQuestionsOutlastTheProcess ends a process that asks, in order and not; the next
// one asks again.
func TestQuestionsOutlastTheProcess(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "bash: touch made")
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(h.asks(t, id), sig); err != nil {
			t.Fatal(err)
		}
		testkit.WaitFor(t, "ps no longer shows it", func() bool { return len(h.runs(t)) == 0 })
		h.does(t, console.ExitWaiting, "logs", "-f", id)
		h.does(t, 0, "resume", "--detach", id)
	}
	h.asks(t, id)
	l := h.attached(t, "attach", id)
	l.Shows("$ touch made", 1)
	l.Types("y")
	l.Ends(0)
	if !h.has("made") {
		t.Error("what was allowed has not run")
	}
}

// TestNobodyAnswersInTime has questions without an answer that become a no after a while.
func TestNobodyAnswersInTime(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	if err := os.WriteFile(filepath.Join(h.dir, "config", "config.toml"),
		[]byte("model = \"script/commands\"\nask_timeout = \"1s\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	id := h.detaches(t, "bash: touch made")
	if out := h.does(t, 0, "logs", "-f", id); !strings.Contains(out, "nobody answered in time") || h.has("made") {
		t.Error(out)
	}
}

// TestDetachedTwice has two processes continue a session at once: one gets it, and the other says so.
func TestDetachedTwice(t *testing.T) {
	t.Parallel()
	h := withoutModel(t)
	id := h.detaches(t, "--max-turns", "1", "--mode", "auto", "bash: true\nbash: until [ -e go ]; do sleep 0.05; done")
	h.does(t, console.ExitMaxTurns, "logs", "-f", id)
	a, b := h.attached(t, "resume", "--detach", "--max-turns", "9", id), h.attached(t, "resume", "--detach", "--max-turns", "9", id)
	a.WaitFor("its end", a.Over)
	b.WaitFor("its end", b.Over)
	if a.Cmd.ProcessState.ExitCode() != 0 {
		a, b = b, a
	}
	if a.Printed() != id+"\n" || b.Cmd.ProcessState.ExitCode() != console.ExitBusy ||
		!strings.Contains(b.Printed(), "drives this session; join it: inspan attach "+id) {
		t.Errorf("%q\n%q", a.Printed(), b.Printed())
	}
	if err := os.WriteFile(filepath.Join(h.work, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h.does(t, 0, "logs", "-f", id)
	raw, err := os.ReadFile(filepath.Join(h.store().Dir, id, running.RunLog))
	if err != nil || !strings.Contains(string(raw), "Done: 2 steps.") {
		t.Errorf("%s: %q, %v", running.RunLog, raw, err)
	}
}

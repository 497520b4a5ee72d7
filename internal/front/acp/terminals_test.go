//go:build unix

package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	wire "github.com/coder/acp-go-sdk"
	"golang.org/x/sys/unix"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
)

// screens are the terminals of an editor, with real processes in them.
type screens struct {
	refuses error // to open one
	mute    bool  // what they show is not told
	mu      sync.Mutex
	all     []*screen
}

type screen struct {
	request  wire.CreateTerminalRequest
	cmd      *exec.Cmd
	out      lockedBuffer
	looks    atomic.Int32
	ended    chan struct{}
	released chan struct{} // closed when it is given back
}

func (s *screens) find(id string) *screen {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(id, "t%d", &n); err != nil || n < 1 || n > len(s.all) {
		return nil
	}
	return s.all[n-1]
}

func (s *screens) CreateTerminal(_ context.Context, p wire.CreateTerminalRequest) (wire.CreateTerminalResponse, error) {
	if s.refuses != nil {
		return wire.CreateTerminalResponse{}, s.refuses
	}
	t := &screen{request: p, cmd: exec.Command(p.Command, p.Args...), ended: make(chan struct{}), released: make(chan struct{})}
	t.cmd.Dir, t.cmd.Env, t.cmd.Stdout, t.cmd.Stderr = *p.Cwd, append(os.Environ(), "EDITOR_KEY=geheim"), &t.out, &t.out
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := t.cmd.Start(); err != nil {
		return wire.CreateTerminalResponse{}, err
	}
	go func() {
		_ = t.cmd.Wait()
		close(t.ended)
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, t)
	return wire.CreateTerminalResponse{TerminalId: fmt.Sprintf("t%d", len(s.all))}, nil
}

func (s *screens) KillTerminal(_ context.Context, p wire.KillTerminalRequest) (wire.KillTerminalResponse, error) {
	return wire.KillTerminalResponse{}, syscall.Kill(-s.find(p.TerminalId).cmd.Process.Pid, syscall.SIGKILL)
}

func (s *screens) TerminalOutput(ctx context.Context, p wire.TerminalOutputRequest) (wire.TerminalOutputResponse, error) {
	if s.mute {
		<-ctx.Done()
		return wire.TerminalOutputResponse{}, ctx.Err()
	}
	t := s.find(p.TerminalId)
	t.looks.Add(1)
	out := strings.ReplaceAll(t.out.String(), "\n", "\r\n")
	kept := out[max(0, len(out)-*t.request.OutputByteLimit):]
	return wire.TerminalOutputResponse{Output: kept, Truncated: len(kept) < len(out)}, nil
}

func (s *screens) ReleaseTerminal(_ context.Context, p wire.ReleaseTerminalRequest) (wire.ReleaseTerminalResponse, error) {
	close(s.find(p.TerminalId).released)
	return wire.ReleaseTerminalResponse{}, nil
}

func (s *screens) WaitForTerminalExit(ctx context.Context, p wire.WaitForTerminalExitRequest) (wire.WaitForTerminalExitResponse, error) {
	t := s.find(p.TerminalId)
	select {
	case <-t.ended:
	case <-ctx.Done():
		return wire.WaitForTerminalExitResponse{}, ctx.Err()
	}
	if w := t.cmd.ProcessState.Sys().(syscall.WaitStatus); w.Signaled() {
		return wire.WaitForTerminalExitResponse{Signal: wire.Ptr(unix.SignalName(w.Signal()))}, nil
	}
	return wire.WaitForTerminalExitResponse{ExitCode: wire.Ptr(t.cmd.ProcessState.ExitCode())}, nil
}

var withTerminals = wire.ClientCapabilities{Terminal: true}

func yolo(a *inspan.Agent) { a.Mode = "yolo" }

// bash is a step of the model that runs a command.
func bash(command string) script.Step {
	raw, _ := json.Marshal(map[string]string{"command": command})
	return call("bash", string(raw))
}

// results are the results that the model got, oldest first.
func (e *editor) results() []string {
	e.t.Helper()
	var out []string
	for ev, err := range store.Events(e.t.Context(), e.server.App.Store(), string(e.session)) {
		if err != nil {
			e.t.Fatal(err)
		}
		if b, ok := ev.Body.(event.Ended); ok {
			out = append(out, b.Parts.Text())
		}
	}
	return out
}

func TestTerminals(t *testing.T) {
	t.Setenv("INSPAN_API_KEY", "geheim") // of inspan itself, so no command gets it
	e := edit(t, withTerminals, yolo,
		bash("cat; mkdir -p sub && cd sub && export WORD='two  words' && echo \"it's $EDITOR_KEY$INSPAN_API_KEY here\" && exit 3"),
		bash("echo $WORD in $(basename \"$PWD\"); kill -9 $$"),
		call("bash", `{"command":"echo ours","background":true}`),
		say("Done."))
	e.prompt("go")
	got := e.results()
	if len(got) != 3 || !strings.Contains(got[0], "it's  here\n") || !strings.Contains(got[0], "code 3") ||
		!strings.Contains(got[0], "now in "+filepath.Join(e.root, "sub")) {
		t.Fatalf("%q", got)
	}
	if !strings.Contains(got[1], "two words in sub\n") || !strings.Contains(got[1], "137") && !strings.Contains(got[1], "signal 9") {
		t.Errorf("%q", got[1])
	}
	if !strings.Contains(got[2], "ours") {
		t.Errorf("%q", got[2])
	}
	if len(e.all) != 2 {
		t.Fatalf("%d terminals", len(e.all))
	}
	calls := e.calls()
	for i, s := range e.all {
		if want := fmt.Sprintf(`"terminalId":"t%d"`, i+1); !strings.Contains(shown(calls[i]), want) || strings.Contains(shown(calls[i]), "here") {
			t.Errorf("call %d: %s", i, shown(calls[i]))
		}
		<-s.released
		if string(s.request.SessionId) != string(e.session) {
			t.Errorf("terminal %d: %+v", i, s.request)
		}
		if _, err := os.Stat(filepath.Dir(s.request.Args[0])); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("terminal %d has left its script: %v", i, err)
		}
	}
}

func TestTerminalsThatAreRefused(t *testing.T) {
	e := edit(t, withTerminals, yolo, bash("touch made"), say("Done."))
	e.refuses = errors.New("no window is open")
	e.prompt("go")
	if got := e.results(); len(got) != 1 || !strings.Contains(got[0], "the editor did not open a terminal: ") ||
		!strings.Contains(got[0], "no window is open") {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(filepath.Join(e.root, "made")); err == nil {
		t.Error("it has run")
	}
}

func TestTerminalsAreKilled(t *testing.T) {
	e := edit(t, withTerminals, yolo, bash("echo begun; sleep 1000"), say("Done."))
	wait := e.going("go")
	e.until("the terminal is shown", func() bool { return strings.Contains(shown(e.last()), `"terminalId":"t1"`) })
	testkit.WaitFor(t, "what is printed first", func() bool { return e.all[0].out.String() != "" })
	if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: e.session}); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.StopReason != wire.StopReasonCancelled {
		t.Error(r.StopReason)
	}
	<-e.all[0].ended
	if got := e.results(); len(got) != 1 || !strings.Contains(got[0], "begun\n") {
		t.Errorf("%q", got)
	}
}

// TestTerminalsOfAnEditorThatIsMute ends cancelled commands all the same.
func TestTerminalsOfAnEditorThatIsMute(t *testing.T) {
	e := edit(t, withTerminals, yolo, bash("sleep 1000"), say("Done."))
	e.mute = true
	wait := e.going("go")
	e.until("the terminal is shown", func() bool { return strings.Contains(shown(e.last()), `"terminalId":"t1"`) })
	if err := e.conn.Cancel(t.Context(), wire.CancelNotification{SessionId: e.session}); err != nil {
		t.Fatal(err)
	}
	<-e.all[0].ended
	if r := wait(); r.StopReason != wire.StopReasonCancelled {
		t.Error(r.StopReason)
	}
	if got := e.results(); len(got) != 1 || !strings.Contains(got[0], "the editor did not say what was printed last") {
		t.Errorf("%q", got)
	}
}

// TestTerminalsWithShortBeginnings has dropped output follow a short beginning.
func TestTerminalsWithShortBeginnings(t *testing.T) {
	e := edit(t, withTerminals, yolo, bash("echo; until [ -e go ]; do sleep 0.01; done; seq 1 300000; echo the end"), say("Done."))
	wait := e.going("go")
	e.until("the terminal is shown", func() bool { return strings.Contains(shown(e.last()), `"terminalId":"t1"`) })
	testkit.WaitFor(t, "a second look", func() bool { return e.all[0].looks.Load() >= 2 })
	put(t, filepath.Join(e.root, "go"), "")
	wait()
	if got := e.results(); len(got) != 1 || !strings.Contains(got[0], "299999\n300000\nthe end\n") {
		t.Errorf("%.300q", got)
	}
}

// TestTerminalsGoOnAsJobs has a command outlast its call, and print more than the
// client keeps.
func TestTerminalsGoOnAsJobs(t *testing.T) {
	e := edit(t, withTerminals, yolo,
		call("bash", `{"command":"echo first; until [ -e go ]; do sleep 0.01; done; yes 0123456789abcde | head -c 3000000; echo `+
			`last","timeout":1}`),
		say("It goes on."), say("Let it."), call("jobs", `{"action":"read","id":"1"}`), say("Done."))
	e.prompt("go")
	put(t, filepath.Join(e.root, "go"), "")
	<-e.all[0].released
	e.prompt("read")
	got := e.results()
	if len(got) != 2 || !strings.Contains(got[0], "first\n[still running as job 1") {
		t.Fatalf("%.2000q", got)
	}
	if !strings.Contains(got[1], "abcde\nlast\n") {
		t.Errorf("%.300q … %q", got[1], got[1][max(0, len(got[1])-300):])
	}
}

// TestTerminalsOfAnEditorThatDies does not wait for an editor that is gone: the command
// is its own, if it was not killed in time.
func TestTerminalsOfAnEditorThatDies(t *testing.T) {
	e := edit(t, withTerminals, yolo, bash("sleep 1000"), say("Done."))
	_ = e.going("go")
	e.until("the terminal is shown", func() bool { return strings.Contains(shown(e.last()), `"terminalId":"t1"`) })
	began := time.Now()
	if err := e.close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Error(took)
	}
	if err := syscall.Kill(-e.all[0].cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	<-e.all[0].ended
}

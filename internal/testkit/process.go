package testkit

import (
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// Process is a command that runs in parallel with a test.
type Process struct {
	Cmd *exec.Cmd

	t     testing.TB
	in    io.WriteCloser
	ended chan struct{} // closed when it has been waited for

	mu   sync.Mutex
	text strings.Builder
}

// Start starts a command. Its standard output and standard error are stored, unless the caller has set them.
// The command is killed and waited for when the test ends.
func Start(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	p := &Process{Cmd: cmd, t: t, ended: make(chan struct{})}
	if cmd.Stdout == nil {
		cmd.Stdout = p
	}
	if cmd.Stderr == nil {
		cmd.Stderr = p
	}
	var err error
	if cmd.Stdin == nil {
		p.in, err = cmd.StdinPipe()
	}
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		_ = cmd.Wait() // the exit code tells
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// Write stores output of the command.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// Printed returns the output so far.
func (p *Process) Printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// Types writes a line to the command's standard input.
func (p *Process) Types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Over reports whether the command has ended.
func (p *Process) Over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// WaitFor is [WaitFor] for something that this command does. It fails the test at once if the command has ended
// without it.
func (p *Process) WaitFor(what string, cond func() bool) {
	p.t.Helper()
	died := false
	WaitFor(p.t, what, func() bool {
		over := p.Over() // first: it may do the thing and end in between
		if cond() {
			return true
		}
		died = over
		return over
	}, p.Printed)
	if died {
		p.t.Fatalf("the process ended with code %d before %s:\n%s", p.Cmd.ProcessState.ExitCode(), what, p.Printed())
	}
}

// Shows waits until the command has printed a text a number of times.
func (p *Process) Shows(text string, times int) {
	p.t.Helper()
	p.WaitFor("the output "+text, func() bool { return strings.Count(p.Printed(), text) >= times })
}

// Ends waits for the end of the command, and fails the test if its exit code differs.
func (p *Process) Ends(code int) {
	p.t.Helper()
	WaitFor(p.t, "the command to end", p.Over, p.Printed)
	if got := p.Cmd.ProcessState.ExitCode(); got != code {
		p.t.Errorf("exit code %d, want %d:\n%s", got, code, p.Printed())
	}
}

// Kill kills the command and waits for its end.
func (p *Process) Kill() {
	p.t.Helper()
	_ = p.Cmd.Process.Kill()
	WaitFor(p.t, "the command to end", p.Over, p.Printed)
}

//go:build unix

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
)

// direct runs a process as a child of this one, without a keeper. Descendants that left the process group are
// found by their mark, if possible.
type direct struct {
	mark   string
	pid    int
	exited chan struct{} // closed when the process itself has ended

	mu   sync.Mutex // held while the group is killed, so that its id is not reused
	gone bool       // everything is settled
}

// launch implements runner. On Linux the parent-death signal is tied to the thread that forked, so that thread
// is kept until the process has ended.
func (d *direct) launch(cmd *exec.Cmd, e WaitForEnd, ended func(int, error)) error {
	if e.in != nil {
		cmd.Stdin = e.in
	}
	if e.out != nil {
		cmd.Stdout, cmd.Stderr = e.out, e.out
	}
	if e.report != nil {
		cmd.ExtraFiles = []*os.File{e.report} // becomes descriptor 3
	}
	d.exited = make(chan struct{})
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			d.pid = cmd.Process.Pid
		}
		started <- err
		if err != nil {
			return
		}
		code, err := outcome(cmd.Wait(), cmd.ProcessState)
		close(d.exited)
		ended(code, err)
	}()
	return <-started
}

// kill implements runner. Once settled, the group's id may belong to other processes.
func (d *direct) kill() {
	d.mu.Lock()
	if !d.gone {
		_ = syscall.Kill(-d.pid, syscall.SIGKILL) // fails if all have ended, as intended
	}
	d.mu.Unlock()
	processes.KillMarked(d.mark)
}

// end implements runner.
func (d *direct) end() {
	_ = syscall.Kill(-d.pid, syscall.SIGTERM)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(processes.TermGrace); time.Now().Before(late) && d.groupAlive(); {
		<-tick.C
	}
	d.kill()
}

// groupAlive reports whether any process of the group runs. Ended processes count until they are reaped, which
// can take init a while for orphans, so the marks are checked too.
func (d *direct) groupAlive() bool {
	if errors.Is(syscall.Kill(-d.pid, 0), syscall.ESRCH) {
		return false
	}
	select {
	case <-d.exited:
		return d.marksAlive()
	default:
		return true
	}
}

// alive implements runner.
func (d *direct) alive() bool { return d.marksAlive() }

// settle implements runner.
func (d *direct) settle() bool {
	left := d.leaves()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	return left
}

func outcome(err error, state *os.ProcessState) (int, error) {
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return -1, fmt.Errorf("wait for process: %w", err)
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok {
		return processes.ExitCode(ws), nil
	}
	return state.ExitCode(), nil
}

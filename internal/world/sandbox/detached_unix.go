//go:build unix

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// Further descriptors of a detached process.
const (
	reportFD = 3
	orderFD  = 4
)

// Detached is a process of this program that outlives this process and the terminal. Its standard input is
// empty.
type Detached struct {
	cmd    *exec.Cmd
	report *os.File
}

// Detach starts the program with these arguments as the leader of a new session. Its output goes to the file
// log, and [Ordered] returns the order to it. It has the environment of this process plus vars, as NAME=VALUE.
// The caller closes the result.
func Detach(program string, args []string, log *os.File, order []byte, vars ...string) (*Detached, error) {
	d := &Detached{cmd: &exec.Cmd{Path: program, Args: append([]string{"inspan"}, args...), Stdout: log, Stderr: log}}
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	d.cmd.Env = append(os.Environ(), vars...)
	ordered, give, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("detach: %w", err)
	}
	defer give.Close()
	report, theirs, err := os.Pipe()
	if err != nil {
		ordered.Close()
		return nil, fmt.Errorf("detach: %w", err)
	}
	d.report, d.cmd.ExtraFiles = report, []*os.File{theirs, ordered}
	err = d.cmd.Start()
	ordered.Close()
	theirs.Close()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("detach: %w", err), report.Close())
	}
	_, _ = give.Write(order) // a process that ends before reading reports why
	return d, nil
}

// Report returns the report of the process, read until it closes the report or ends. When ctx ends, the process
// is killed.
func (d *Detached) Report(ctx context.Context) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.cmd.Process.Kill() })
	defer stop()
	told, err := io.ReadAll(d.report)
	return told, errors.Join(err, ctx.Err())
}

// Wait waits for the end of the process and returns its exit code, 128+n for an end by signal n.
func (d *Detached) Wait() (int, error) { return outcome(d.cmd.Wait(), d.cmd.ProcessState) }

// Close lets the process continue alone.
func (d *Detached) Close() { d.report.Close() }

// Ordered returns the order for a process that [Detach] started, and a writer for its report, which the caller
// closes. The error is fs.ErrNotExist for any other process.
func Ordered() (order []byte, report io.WriteCloser, err error) {
	for _, fd := range []int{reportFD, orderFD} {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			return nil, nil, fs.ErrNotExist
		}
		syscall.CloseOnExec(fd)
	}
	in := os.NewFile(orderFD, "order")
	defer in.Close()
	order, err = io.ReadAll(in)
	return order, os.NewFile(reportFD, "report"), err
}

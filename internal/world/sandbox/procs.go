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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox/files"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/tool"
)

// reportGrace is the time that a report is still read after the process ended. Only the process itself should
// write it.
const reportGrace = 100 * time.Millisecond

// procs implements [tool.Procs] over the real operating system.
type procs struct {
	mark  string // unguessable
	count atomic.Int64
	boxes boxes // builds the boxes
}

// Close implements [io.Closer]: it ends everything that the boxes share. Processes must have ended before.
func (ps *procs) Close() error { return ps.boxes.close() }

// sessionTemp returns the session's own folder for temporary files, nil if it has none.
func (ps *procs) sessionTemp() *files.Temp { return ps.boxes.sessionTemp() }

// runner is one way to start, supervise and end a process.
type runner interface {
	// launch starts the process and calls ended once at its end. The caller closes the ends.
	launch(cmd *exec.Cmd, e WaitForEnd, ended func(code int, err error)) error
	// end terminates the group. After the grace period it kills the group and all descendants that can be
	// found.
	end()
	// kill kills the group and all descendants that can be found.
	kill()
	// alive reports, after settle has returned true, whether any descendant still runs.
	alive() bool
	// settle is called once the process has ended and its output is written. It reports whether descendants are
	// left that kill can end.
	settle() (left bool)
}

// WaitForEnd is the process's ends of its pipes. A nil in or out means the null device; a nil report means that
// descriptor 3 is not open.
type WaitForEnd struct{ in, out, report *os.File }

func (e WaitForEnd) close() {
	for _, f := range []*os.File{e.in, e.out, e.report} {
		if f != nil {
			f.Close()
		}
	}
}

// Start implements [tool.Procs].
//
// The process leads its own session, so its only terminal is one that it is given: a program that asks for a
// password fails instead of waiting. It is killed when this process dies, if the system supports that (Linux).
func (ps *procs) Start(ctx context.Context, c tool.Command) (tool.Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Box.Program != "" {
		c.Box.Read = append(slices.Clone(c.Box.Read), c.Box.Program)
	}
	cmd, err := ps.prepare(c)
	if err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	mark := ps.mark + "-" + strconv.FormatInt(ps.count.Add(1), 10)
	cmd.Env = append(cmd.Env, processes.MarkName+"="+os.Getenv(processes.MarkName)+"/"+mark+"/")
	p := &process{exited: make(chan struct{}), done: make(chan struct{})}
	if p.run, err = ps.boxes.runner(ctx, c, mark); err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	if err := ps.begin(ctx, func() error { return p.start(cmd, c) }); err != nil {
		return nil, fmt.Errorf("start process: %w", err)
	}
	go p.supervise(ctx)
	return p, nil
}

// begin starts a process when it is its turn. Containers don't wait for a turn: the engine starts them, and an
// image can take minutes.
func (ps *procs) begin(ctx context.Context, start func() error) error {
	if ps.boxes.options().Container != nil {
		return start()
	}
	over, err := ps.boxes.options().Pool.starts.Take(ctx)
	if err != nil {
		return err
	}
	defer over()
	return start()
}

func (ps *procs) prepare(c tool.Command) (*exec.Cmd, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("no program given")
	}
	cmd := ps.command(c.Args)
	if errors.Is(cmd.Err, exec.ErrNotFound) {
		return nil, &fs.PathError{Op: "find program", Path: c.Args[0], Err: fs.ErrNotExist}
	}
	cmd.Dir = c.Dir
	cmd.Env = environ(os.Environ(), ps.boxes.options(), ps.boxes.Root, c)
	cmd.SysProcAttr = processes.Attributes()
	if c.TTY != (tool.TTY{}) {
		processes.ControlTerminal(cmd.SysProcAttr)
		cmd.Env = append(slices.DeleteFunc(cmd.Env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }), "TERM="+terminal)
	}
	return cmd, cmd.Err
}

// command looks up a program, except for containers, which have their own.
func (ps *procs) command(args []string) *exec.Cmd {
	if ps.boxes.options().Container != nil {
		return &exec.Cmd{Path: args[0], Args: args}
	}
	return exec.Command(args[0], args[1:]...)
}

// process implements [tool.Process].
type process struct {
	run    runner
	stdin  *os.File            // our end of a pipe or terminal, nil if there is none
	tty    *os.File            // our end of its terminal, nil if it has none
	out    *processes.Copier   // of standard output, nil if it is discarded
	copies []*processes.Copier // out and that of the report
	report *reportFile         // of a report that is read at the end; nil means none

	exited chan struct{} // closed when the process itself has ended; code and err are set before
	done   chan struct{} // closed when everything is settled; left is set before
	code   int
	err    error
	left   bool // descendants were alive when everything was settled
}

// Wait implements [tool.Process].
func (p *process) Wait() (int, error) {
	<-p.done
	return p.code, p.err
}

// Kill implements [tool.Process]. After the process has ended it still kills remaining descendants, if they can
// be identified (Linux).
func (p *process) Kill() {
	select {
	case <-p.done:
		if p.left {
			p.run.kill()
		}
	default:
		p.run.kill()
	}
}

// Left implements [ability.Leaver].
func (p *process) Left() bool {
	<-p.done
	return p.left && p.run.alive()
}

// Keep implements [ability.Keepable]: it needs a keeper that is not in a container.
func (p *process) Keep(output string, register func(ability.Kept) error) ([]tool.Port, error) {
	r, ok := p.run.(interface {
		keep(out *os.File, pipe int, register func(ability.Kept) error) ([]tool.Port, error)
	})
	if !ok {
		return nil, errNotKept
	}
	out, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep process: %w", err)
	}
	defer out.Close()
	pipe := -1
	if p.out != nil {
		pipe = p.out.Duplicate()
	}
	if pipe >= 0 {
		defer func() { _ = syscall.Close(pipe) }()
	}
	ports, err := r.keep(out, pipe, register)
	if err != nil {
		return nil, fmt.Errorf("keep process: %w", err)
	}
	for _, c := range p.copies {
		c.Stop()
	}
	return ports, nil
}

var (
	errNotKept = errors.New("here nothing can go on without inspan: that takes Linux, and no container")
	errGoesOn  = errors.New("it goes on without this program")
)

// Refused lists in words what the sandbox removed or denied, once the process has ended. It waits for the end.
// Callers find it by assertion.
func (p *process) Refused() []string {
	<-p.done
	if r, ok := p.run.(interface{ refused() []string }); ok {
		return r.refused()
	}
	return nil
}

// Fetched implements [ability.Fetcher].
func (p *process) Fetched() map[string]int {
	<-p.done
	if r, ok := p.run.(interface{ fetched() map[string]int }); ok {
		return r.fetched()
	}
	return nil
}

// start opens the pipes and starts the process.
func (p *process) start(cmd *exec.Cmd, c tool.Command) error {
	theirs, err := p.connect(c)
	if err == nil {
		err = p.run.launch(cmd, theirs, func(code int, err error) {
			p.code, p.err = code, err
			close(p.exited)
		})
	}
	theirs.close()
	if err != nil {
		p.disconnect()
		return err
	}
	for _, o := range p.copies {
		go o.Run()
	}
	if p.stdin != nil {
		go p.give(c.Stdin)
	}
	return nil
}

func (p *process) connect(c tool.Command) (theirs WaitForEnd, err error) {
	if c.TTY != (tool.TTY{}) {
		return p.connectTTY(c)
	}
	if c.Stdin != nil {
		if theirs.in, p.stdin, err = os.Pipe(); err != nil {
			return theirs, err
		}
	}
	if c.Output != nil {
		if theirs.out, err = p.copyTo(c.Output, processes.OutputGrace); err != nil {
			return theirs, err
		}
		p.out = p.copies[0]
	}
	if c.Report != nil {
		theirs.report, err = p.reportTo(c)
	}
	return theirs, err
}

// reportTo returns the file that the process writes its report to.
func (p *process) reportTo(c tool.Command) (*os.File, error) {
	if c.AtEnd {
		if s, err := newReportFile(c.Report); err == nil {
			p.report = s
			return s.duplicate()
		}
	}
	return p.copyTo(c.Report, reportGrace)
}

// copyTo opens a pipe whose content is copied to dst, and returns its writing end.
func (p *process) copyTo(dst io.Writer, grace time.Duration) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.copies = append(p.copies, processes.NewCopier(r, dst, grace))
	return w, nil
}

func (p *process) disconnect() {
	if p.stdin != nil && p.tty == nil {
		p.stdin.Close()
	}
	for _, o := range p.copies {
		o.Discard()
	}
	if p.report != nil {
		p.report.close()
	}
}

// supervise follows the process to its end.
func (p *process) supervise(ctx context.Context) {
	defer close(p.done)
	cancelled := ctx.Done()
	select {
	case <-p.exited:
	case <-cancelled:
		p.run.end()
		<-p.exited
		cancelled = nil // it ends once
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		p.finishOutput()
	}()
	select {
	case <-finished:
	case <-cancelled:
		p.run.end()
		<-finished
	}
	p.left = p.run.settle()
}

// finishOutput waits until the pipes are at their end, or the grace period is over.
func (p *process) finishOutput() {
	var wait sync.WaitGroup
	for _, o := range p.copies {
		wait.Go(o.Finish)
	}
	wait.Wait()
	if p.report != nil {
		p.report.finish()
	}
}

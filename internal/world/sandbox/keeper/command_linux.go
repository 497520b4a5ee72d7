package keeper

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/ports"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// command is one command of a keeper.
type command struct {
	*keeper
	number int
	family processes.Family
	order  protocol.Order
	main   int           // process id of the command
	begun  chan struct{} // closed when the start has been reported
	ports  ports.Ports

	staying sync.Mutex        // held while either its continuation or its end is decided
	over    bool              // the family has ended
	out     *processes.Copier // of its output, once it continues alone; nil means no output, or inspan reads it
}

// serve runs the command to its end. It reports whether the keeper can run another.
func (c *command) serve(fds []int) (again bool) {
	if err := c.start(fds); err != nil {
		c.cleanUp()
		c.tell(failure(err))
		return false
	}
	c.family.Reap(c.childEnded, c.ended)
	c.finishOutput()
	c.ports.Close()
	again = c.clean()
	c.tell(protocol.Report{Op: protocol.OpGone, Again: again})
	return again
}

// tell sends a report about this command.
func (c *command) tell(r protocol.Report) {
	r.N = c.number
	c.Tell(r)
}

func failure(err error) protocol.Report {
	r := protocol.Report{Op: protocol.OpFailed}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	var se *walls.BuildError
	if errors.As(err, &se) {
		r.Text = se.Error()
	}
	return r
}

// obey executes a request while the command runs.
func (c *command) obey(r protocol.Request, fds []int) {
	switch r.Op {
	case protocol.OpEnd:
		go c.end()
	case protocol.OpKill:
		go c.killAll()
	case protocol.OpKeep:
		c.goOnAlone(fds)
	case protocol.OpOffer:
		c.ports.Give(fds[:r.Four:r.Four], fds[r.Four:])
		go c.ports.Follow(c.family.Done)
	case protocol.OpLeft:
		c.tell(protocol.Report{Op: protocol.OpLeft, Left: c.family.Sweep(c.ended)})
	}
}

// ended is called for each ended descendant.
func (c *command) ended(pid int, ws syscall.WaitStatus) {
	if pid == c.main {
		c.tell(protocol.Report{Op: protocol.OpExited, Status: int(ws)})
	}
}

// end terminates the group of the command, and kills all descendants when it has ended or the grace period is
// over.
func (c *command) end() {
	_ = c.family.Signal(-c.main, syscall.SIGTERM)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(processes.TermGrace); time.Now().Before(late); <-tick.C {
		if errors.Is(c.family.Signal(-c.main, 0), syscall.ESRCH) {
			break
		}
	}
	c.killAll()
}

// start builds the box and starts the command.
func (c *command) start(fds []int) error {
	defer protocol.CloseAll(fds)
	if err := c.prepare(); err != nil {
		return err
	}
	if c.before == nil {
		now := currentConditions()
		c.before = &now
	}
	thread, err := c.walledThread()
	if err != nil {
		return err
	}
	started := make(chan error)
	thread.run <- func() {
		err := c.fork(fds)
		started <- err
		if err == nil {
			<-c.family.Done // the command's parent-death signal is tied to its parent thread
		}
	}
	return <-started
}

// walledThread returns a thread in the box: the waiting one, if the box is unchanged. An unrestricted one
// serves all commands.
func (c *command) walledThread() (*walledThread, error) {
	enter := c.enter
	if c.order.Level == tool.BoxNone {
		enter = nil
	}
	thread := c.waiting
	if thread != nil && !thread.unwalled && !c.order.Stands {
		thread.close()
		thread = nil
	}
	if thread == nil {
		c.rules.Close()
		c.rules = nil
		thread = newWalledThread(enter)
	}
	c.waiting = nil
	if thread.unwalled {
		c.waiting = thread
	}
	<-thread.ready
	if thread.failed != nil {
		thread.close()
	}
	return thread, thread.failed
}

// fork starts the command on this thread.
func (c *command) fork(fds []int) error {
	attr := &syscall.ProcAttr{Dir: c.order.Dir, Env: c.order.Env, Sys: processes.Attributes()}
	if c.order.TTY {
		processes.ControlTerminal(attr.Sys)
	}
	for _, fd := range fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(c.order.Path, c.order.Args, attr)
	if err != nil {
		return err
	}
	c.main = pid
	c.order.Limits.ApplyTo(pid)
	c.tell(protocol.Report{Op: protocol.OpStarted, Pid: pid})
	close(c.begun)
	return nil
}

// prepare executes the steps that concern the whole keeper.
func (c *command) prepare() error {
	if c.order.Container {
		return c.prepareInside()
	}
	switch {
	case c.order.Isolated:
		return c.prepareScene()
	case c.order.Level == tool.BoxRead:
		return c.prepareRead()
	}
	return nil
}

// enter puts the current thread into the box.
func (c *command) enter() error {
	if c.order.Container {
		return c.enterInside()
	}
	switch {
	case c.order.Isolated:
		return c.enterScene()
	case c.order.Level == tool.BoxRead:
		return c.enterRead()
	}
	return nil
}

// clean removes the keeper's files of the command. It reports whether the keeper is in its initial state again.
func (c *command) clean() (again bool) {
	c.dropNests()
	if c.order.Level == tool.BoxWorkspace && c.order.Throwaway == "" && c.orphan.Load() {
		c.sweep()
	}
	own := c.ownFolders()
	shared := slices.ContainsFunc(c.order.Write, func(path string) bool { return paths.InsideAny(own, path) }) // mounted there, and not ours to remove
	if c.usedUp() || shared || !emptied(own) || *c.before != currentConditions() {
		c.cleanUp() // before the end is reported
		return false
	}
	return true
}

// ownFolders lists the box's private folders.
func (c *command) ownFolders() []string {
	switch {
	case c.order.Isolated:
		return c.order.InMemory()
	case c.order.Temp != "":
		return []string{c.order.Temp}
	}
	return nil
}

// emptied removes the content of folders. It reports whether all are empty.
func emptied(folders []string) bool {
	for _, dir := range folders {
		entries, err := paths.ReadFolder(dir)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if keep.RemoveAll(filepath.Join(dir, e.Name())) != nil {
				return false
			}
		}
	}
	return true
}

// usedUp reports whether the box serves only this command.
func (c *command) usedUp() bool {
	return c.order.Alone() || c.ports.Offered() || c.orphan.Load() || c.stays.Load()
}

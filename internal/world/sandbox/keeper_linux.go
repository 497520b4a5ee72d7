package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/paths"
	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

const (
	keeperName = "inspan-keeper" // the whole command line of a keeper
	keeperFD   = 3               // its end of the connection, outside of containers
)

// Keeper is to be called first of all by every program whose path is given as
// [Options.Self], tests included. If this process was started to be a keeper,
// it is one until it is no longer needed, and the caller must exit with the
// code; else nothing happens.
//
// A keeper starts one command after another, watches over each and all its
// descendants, and ends them when it is told to or when the connection to the one who
// started it ends, in whatever way that one died. The first process of every container
// is one too. In a workspace box the program also serves the go command its build cache.
func Keeper() (ran bool, code int) {
	if len(os.Args) == 1 && os.Args[0] == insideProgram {
		fd, err := callHome()
		if err != nil {
			fmt.Fprintln(os.Stderr, "reach the other side of the container:", err)
			return true, 1
		}
		return true, keepPost(fd)
	}
	if len(os.Args) == 2 && os.Args[0] == walls.GoCacheProgram {
		return true, serveLayers(os.Args[1])
	}
	if len(os.Args) != 1 || os.Args[0] != keeperName && os.Args[0] != holderName {
		return false, 0
	}
	var st unix.Stat_t
	if unix.Fstat(keeperFD, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return false, 0
	}
	unix.CloseOnExec(keeperFD)
	if os.Args[0] == holderName {
		return true, hold()
	}
	return true, keepPost(keeperFD)
}

// keeper is a keeper with one command, from inside.
type keeper struct {
	*post
	number int
	family processes.Family
	order  protocol.Order
	main   int           // the process id of the command
	begun  chan struct{} // closed when the start has been told
	ports  ports

	staying sync.Mutex        // held where it is settled which comes first: that it goes on, or the end
	over    bool              // the family has ended
	out     *processes.Copier // of what it prints, once it goes on; nil: another reads that, or nobody
}

func newKeeper(p *post, r protocol.Request) *keeper {
	return &keeper{post: p, number: r.N, order: p.ordered(*r.Order), family: processes.Family{Done: make(chan struct{})}, begun: make(chan struct{})}
}

// serve runs the command to its end. It reports whether the keeper can run another.
func (k *keeper) serve(fds []int) (again bool) {
	if err := k.start(fds); err != nil {
		k.leave()
		k.tell(failure(err))
		return false
	}
	k.family.Reap(k.ends, k.ended)
	k.settle()
	k.ports.close()
	again = k.clean()
	k.tell(protocol.Report{Op: protocol.OpGone, Again: again})
	return again
}

// tell reports of this command.
func (k *keeper) tell(r protocol.Report) {
	r.N = k.number
	k.Wire.Tell(r)
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

// heard does what is asked of it while its command runs.
func (k *keeper) heard(r protocol.Request, fds []int) {
	switch r.Op {
	case protocol.OpEnd:
		go k.end()
	case protocol.OpKill:
		go k.killAll()
	case protocol.OpKeep:
		k.stay(fds)
	case protocol.OpOffer:
		k.ports.give(fds[:r.Four:r.Four], fds[r.Four:])
		go k.ports.follow(k.family.Done)
	case protocol.OpLeft:
		k.tell(protocol.Report{Op: protocol.OpLeft, Left: k.family.Sweep(k.ended)})
	}
}

// ended is called for each descendant that has ended.
func (k *keeper) ended(pid int, ws syscall.WaitStatus) {
	if pid == k.main {
		k.tell(protocol.Report{Op: protocol.OpExited, Status: int(ws)})
	}
}

// end asks the group of the command to end, and kills all when it has or the
// grace is over.
func (k *keeper) end() {
	_ = k.family.Signal(-k.main, syscall.SIGTERM)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(processes.TermGrace); time.Now().Before(late); <-tick.C {
		if errors.Is(k.family.Signal(-k.main, 0), syscall.ESRCH) {
			break
		}
	}
	k.killAll()
}

// start builds the walls and starts the command.
func (k *keeper) start(fds []int) error {
	defer protocol.CloseAll(fds)
	if err := k.prepare(); err != nil {
		return err
	}
	if k.nature == nil {
		now := natureNow()
		k.nature = &now
	}
	c, err := k.behind()
	if err != nil {
		return err
	}
	started := make(chan error)
	c.use <- func() {
		err := k.fork(fds)
		started <- err
		if err == nil {
			<-k.family.Done // the command is to die with the thread that it is a child of
		}
	}
	return <-started
}

// behind returns a thread behind the walls: that which waits there, if the walls stand. One without
// walls is for all commands.
func (k *keeper) behind() (*cell, error) {
	enter := k.enter
	if k.order.Level == tool.BoxNone {
		enter = nil
	}
	c := k.cell
	if c != nil && !c.bare && !k.order.Stands {
		c.close()
		c = nil
	}
	if c == nil {
		k.rules.Close()
		k.rules = nil
		c = newCell(enter)
	}
	k.cell = nil
	if c.bare {
		k.cell = c
	}
	<-c.ready
	if c.failed != nil {
		c.close()
	}
	return c, c.failed
}

// fork starts the command on this thread.
func (k *keeper) fork(fds []int) error {
	attr := &syscall.ProcAttr{Dir: k.order.Dir, Env: k.order.Env, Sys: processes.Attributes()}
	if k.order.TTY {
		processes.ControlTerminal(attr.Sys)
	}
	for _, fd := range fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(k.order.Path, k.order.Args, attr)
	if err != nil {
		return err
	}
	k.main = pid
	k.order.Limits.ApplyTo(pid)
	k.tell(protocol.Report{Op: protocol.OpStarted, Pid: pid})
	close(k.begun)
	return nil
}

// prepare does what concerns the whole keeper.
func (k *keeper) prepare() error {
	if k.order.Container {
		return k.prepareInside()
	}
	switch {
	case k.order.Isolated:
		return k.prepareScene()
	case k.order.Level == tool.BoxRead:
		return k.prepareRead()
	}
	return nil
}

// enter puts the current thread behind the walls.
func (k *keeper) enter() error {
	if k.order.Container {
		return k.enterInside()
	}
	switch {
	case k.order.Isolated:
		return k.enterScene()
	case k.order.Level == tool.BoxRead:
		return k.enterRead()
	}
	return nil
}

// clean removes what the keeper has made for the command. It reports whether the keeper
// is as it was before.
func (k *keeper) clean() (again bool) {
	if k.order.Level == tool.BoxWorkspace && k.order.Throwaway == "" && k.orphan.Load() {
		k.sweep()
	}
	own := k.own()
	shared := slices.ContainsFunc(k.order.Write, func(path string) bool { return paths.InsideAny(own, path) }) // mounted there, and not ours to remove
	if k.once() || shared || !emptied(own) || *k.nature != natureNow() {
		k.leave() // before the end is told
		return false
	}
	return true
}

// own lists the folders of the box that nobody else sees.
func (k *keeper) own() []string {
	switch {
	case k.order.Isolated:
		return k.order.InMemory()
	case k.order.Temp != "":
		return []string{k.order.Temp}
	}
	return nil
}

// emptied removes what is in folders. It reports whether nothing is left.
func emptied(folders []string) bool {
	for _, dir := range folders {
		entries, err := paths.ReadFolder(dir)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if paths.RemoveAll(filepath.Join(dir, e.Name())) != nil {
				return false
			}
		}
	}
	return true
}

// once reports whether the box was made for this command alone.
func (k *keeper) once() bool {
	return k.order.Alone() || k.ports.offered() || k.orphan.Load() || k.stays.Load()
}

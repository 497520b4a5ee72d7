package sandbox

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// post is a keeper and what stays of it from one command to the next, from inside.
type post struct {
	*protocol.Wire
	ends   chan os.Signal         // rings when a child has ended
	nature *nature                // as it was before any command; nil: there was none yet
	now    atomic.Pointer[keeper] // with its command: the last one; nil: there was none yet
	orphan atomic.Bool            // the connection has ended
	stays  atomic.Bool            // and that is no reason to end

	room  protocol.Order // the last order; its walls stand
	cell  *cell          // a thread behind them; nil: there is none
	temp  string         // the folder that was made for temporary files; empty: none was
	rules *walls.Ruleset // of a read box; nil: none were made
	using []*os.File     // keep the session's folders for temporary files and caches
}

// commission is an order with the descriptors of its command.
type commission struct {
	request protocol.Request
	fds     []int
}

// keepPost is a keeper from its start to its end. It returns the exit code, which says nothing of
// its commands.
func keepPost(fd int) int {
	w, err := protocol.NewWire(fd)
	if err != nil {
		return 1
	}
	p := &post{Wire: w, ends: make(chan os.Signal, 1)}
	// The first thread of a process does not end before the process does, and those that
	// walls were put around must.
	runtime.LockOSThread()
	// Whoever sends signals to all processes of a terminal or a service does
	// not mean the keeper: it goes when its family is gone. See heed.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	go p.heed(signals)
	signal.Notify(p.ends, syscall.SIGCHLD)
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil || unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	done := make(chan struct{})
	go func() { // not on this thread, to which each command would have to be handed over
		defer close(done)
		p.serve()
	}()
	<-done
	return 0
}

// serve runs commands until the keeper can run no more of them.
func (p *post) serve() {
	defer p.leave()
	commissions := make(chan commission)
	go p.hear(commissions)
	for c := range commissions {
		k := newKeeper(p, c.request)
		p.now.Store(k)
		if p.orphan.Load() { // the connection ended before this one could be told
			protocol.CloseAll(c.fds)
			return
		}
		again := k.serve(c.fds)
		p.room = k.order
		if !again {
			return
		}
		if k.order.Level != tool.BoxNone {
			p.cell = newCell(k.enter) // the next command need not wait for that
		}
	}
}

// leave gives up what is kept from one command to the next. It may be called again.
func (p *post) leave() {
	for _, lock := range p.using {
		_ = lock.Close()
	}
	if p.temp != "" {
		_ = os.RemoveAll(p.temp)
	}
}

// cell is a thread behind walls, for one command. It ends with that, unless there are no walls.
type cell struct {
	ready  chan struct{} // closed when the walls are built; failed is set before
	failed error
	use    chan func() // takes what is to be done there
	bare   bool        // there are no walls
}

// newCell has enter put walls around a thread; nil: there are to be none.
func newCell(enter func() error) *cell {
	c := &cell{ready: make(chan struct{}), use: make(chan func()), bare: enter == nil}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is inside the walls
		if !c.bare {
			c.failed = enter()
		}
		close(c.ready)
		for do := range c.use {
			if do(); !c.bare {
				return
			}
		}
	}()
	return c
}

// close ends a thread that is used no more.
func (c *cell) close() {
	<-c.ready
	close(c.use)
}

// hear follows requests. When the connection ends, so does the family.
func (p *post) hear(commissions chan<- commission) {
	defer close(commissions)
	for {
		var r protocol.Request
		if err := p.Lines.Next(&r); err != nil {
			p.orphan.Store(true)
			if k := p.now.Load(); k != nil && !p.stays.Load() {
				k.killAll()
			}
			return
		}
		fds := p.Lines.TakeAll(r.Descriptors())
		switch k := p.now.Load(); {
		case r.Op == protocol.OpRun && r.Order != nil:
			commissions <- commission{r, fds}
		case k != nil && r.N == k.number && len(fds) == r.Descriptors():
			k.heard(r, fds)
		default:
			protocol.CloseAll(fds) // it came too late
		}
	}
}

// ordered is an order with the walls that stand, if they are to do.
func (p *post) ordered(o protocol.Order) protocol.Order {
	if !o.Stands {
		return o
	}
	all := p.room
	all.Path, all.Args, all.Dir, all.Env, all.TTY, all.Stands = o.Path, o.Args, o.Dir, o.Env, o.TTY, true
	return all
}

// nature is what processes of the same user can change of this one from outside, whatever
// walls they are behind: its limits, and how its threads are scheduled. Commands inherit
// it, so a keeper for which it has changed runs no more of them.
type nature struct {
	limits  [16]unix.Rlimit
	threads scheduling
	mixed   bool // not all threads are scheduled alike
}

// scheduling is how a thread is scheduled, but for the length of its turns, which the
// kernel chooses.
type scheduling struct {
	cpus     unix.CPUSet
	io       uintptr
	policy   uint32
	flags    uint64
	nice     int32
	priority uint32
}

func natureNow() (n nature) {
	for resource := range n.limits {
		_ = unix.Getrlimit(resource, &n.limits[resource])
	}
	threads, _ := os.ReadDir("/proc/self/task")
	for _, t := range threads {
		id, _ := strconv.Atoi(t.Name())
		s, ok := scheduled(id)
		if ok && n.threads != (scheduling{}) && s != n.threads {
			n.mixed = true
		}
		if ok {
			n.threads = s
		}
	}
	return n
}

// scheduled reports false if the thread has ended.
func scheduled(thread int) (s scheduling, ok bool) {
	io, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, 1, uintptr(thread), 0)
	attr, err := unix.SchedGetAttr(thread, 0)
	if errno != 0 || err != nil || unix.SchedGetaffinity(thread, &s.cpus) != nil {
		return scheduling{}, false
	}
	s.io, s.policy, s.flags, s.nice, s.priority = io, attr.Policy, attr.Flags, attr.Nice, attr.Priority
	return s, true
}

package keeper

import (
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/processes"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// keeper runs one command after another. Its fields persist between commands.
type keeper struct {
	*protocol.Wire
	childEnded chan os.Signal          // receives a signal when a child has ended
	before     *conditions             // before the first command; nil means not yet known
	now        atomic.Pointer[command] // with its command: the last one; nil means none yet
	orphan     atomic.Bool             // the connection has ended
	stays      atomic.Bool             // the keeper continues anyway

	lookPath func(program string) (string, error) // finds programs in a container

	last    protocol.Order // the last order, whose box still exists
	waiting *walledThread  // a thread in that box; nil means none
	temp    string         // the folder for temporary files that was created; empty means none
	rules   *walls.Ruleset // of a read box; nil means none
	nests   nests          // of the command
	locks   []*os.File     // locks of the session's folders for temporary files and caches
}

// assignment is an order with the descriptors of its command.
type assignment struct {
	request protocol.Request
	fds     []int
}

// runKeeper runs a keeper from its start to its end. It returns the exit code, which is unrelated to its commands.
func runKeeper(fd int, lookPath func(program string) (string, error)) int {
	w, err := protocol.NewWire(fd)
	if err != nil {
		return 1
	}
	p := &keeper{Wire: w, childEnded: make(chan os.Signal, 1), lookPath: lookPath}
	// The first thread of a process ends only with the process, but restricted threads must end earlier.
	runtime.LockOSThread()
	// Signals to all processes of a terminal or a service are not meant for the keeper: it ends when its family
	// is gone. See followSignals.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	go p.followSignals(signals)
	signal.Notify(p.childEnded, syscall.SIGCHLD)
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil || unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	done := make(chan struct{})
	go func() { // not on this thread, to which each command would have to be passed
		defer close(done)
		p.serve()
	}()
	<-done
	return 0
}

// serve runs commands until the keeper can't run more.
func (k *keeper) serve() {
	defer k.cleanUp()
	assignments := make(chan assignment)
	go k.readRequests(assignments)
	for a := range assignments {
		c := &command{keeper: k, number: a.request.N, order: k.complete(*a.request.Order), family: processes.Family{Done: make(chan struct{})}, begun: make(chan struct{})}
		k.now.Store(c)
		if k.orphan.Load() { // the connection ended before this command's end could be reported
			protocol.CloseAll(a.fds)
			return
		}
		again := c.serve(a.fds)
		k.last = c.order
		if !again {
			return
		}
		if c.order.Level != tool.BoxNone {
			k.waiting = newWalledThread(c.enter) // prepared for the next command
		}
	}
}

// cleanUp releases everything that persists between commands. It may be called repeatedly.
func (k *keeper) cleanUp() {
	for _, lock := range k.locks {
		_ = lock.Close()
	}
	if k.temp != "" {
		_ = os.RemoveAll(k.temp)
	}
}

// walledThread is a thread in a box, for one command. It ends with the command, unless it is unrestricted.
type walledThread struct {
	ready    chan struct{} // closed when the box is ready; failed is set before
	failed   error
	run      chan func() // receives the functions to run
	unwalled bool        // the thread is not restricted
}

// newWalledThread starts a thread and restricts it with enter; nil means no restrictions.
func newWalledThread(enter func() error) *walledThread {
	c := &walledThread{ready: make(chan struct{}), run: make(chan func()), unwalled: enter == nil}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread remains in the box
		if !c.unwalled {
			c.failed = enter()
		}
		close(c.ready)
		for do := range c.run {
			if do(); !c.unwalled {
				return
			}
		}
	}()
	return c
}

// close ends a thread after its use.
func (t *walledThread) close() {
	<-t.ready
	close(t.run)
}

// readRequests handles requests. When the connection ends, so does the family.
func (k *keeper) readRequests(assignments chan<- assignment) {
	defer close(assignments)
	for {
		var r protocol.Request
		if err := k.Lines.Next(&r); err != nil {
			k.orphan.Store(true)
			if c := k.now.Load(); c != nil && !k.stays.Load() {
				c.killAll()
			}
			return
		}
		fds := k.Lines.TakeAll(r.Descriptors())
		switch c := k.now.Load(); {
		case r.Op == protocol.OpRun && r.Order != nil:
			assignments <- assignment{r, fds}
		case c != nil && r.N == c.number && len(fds) == r.Descriptors():
			c.obey(r, fds)
		default:
			protocol.CloseAll(fds) // received too late
		}
	}
}

// complete returns the order with the existing box, if the order refers to it.
func (k *keeper) complete(o protocol.Order) protocol.Order {
	if !o.Stands {
		return o
	}
	all := k.last
	all.Path, all.Args, all.Dir, all.Env, all.TTY, all.Stands = o.Path, o.Args, o.Dir, o.Env, o.TTY, true
	return all
}

// conditions are the properties of this process that other processes of the same user can change, even from within
// a box: its limits, and the scheduling of its threads. Commands inherit them, so a keeper whose conditions changed
// runs no more commands.
type conditions struct {
	limits  [16]unix.Rlimit
	threads scheduling
	mixed   bool // threads have different scheduling
}

// scheduling is the scheduling of a thread, except the time slice, which the kernel chooses.
type scheduling struct {
	cpus     unix.CPUSet
	io       uintptr
	policy   uint32
	flags    uint64
	nice     int32
	priority uint32
}

func currentConditions() (n conditions) {
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

// scheduled returns false if the thread has ended.
func scheduled(thread int) (s scheduling, ok bool) {
	io, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, 1, uintptr(thread), 0)
	attr, err := unix.SchedGetAttr(thread, 0)
	if errno != 0 || err != nil || unix.SchedGetaffinity(thread, &s.cpus) != nil {
		return scheduling{}, false
	}
	s.io, s.policy, s.flags, s.nice, s.priority = io, attr.Policy, attr.Flags, attr.Nice, attr.Priority
	return s, true
}

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
// A keeper starts one command, watches over it and all its descendants, and
// ends them when it is told to or when the connection to the one who started
// it ends, in whatever way that one died. The first process of every container
// is one too.
func Keeper() (ran bool, code int) {
	if len(os.Args) == 1 && os.Args[0] == insideProgram {
		fd, err := callHome()
		if err != nil {
			fmt.Fprintln(os.Stderr, "reach the other side of the container:", err)
			return true, 1
		}
		return true, newKeeper(fd).run()
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
	return true, newKeeper(keeperFD).run()
}

func newKeeper(fd int) *keeper {
	return &keeper{fd: fd, family: family{done: make(chan struct{})}, begun: make(chan struct{})}
}

type keeper struct {
	fd     int // its end of the connection
	family family
	order  order
	main   int           // the process id of the command
	using  *os.File      // keeps the session's folder for temporary files; nil if it is not seen
	begun  chan struct{} // closed when the start has been told
	ports  ports

	writing sync.Mutex
	lines   lineReader
	orphan  atomic.Bool // the connection has ended
	stays   atomic.Bool // and that is no reason to end
}

// run returns the exit code of the keeper, which says nothing of the command.
func (k *keeper) run() int {
	// Whoever sends signals to all processes of a terminal or a service does
	// not mean the keeper: it goes when its family is gone. See heed.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	go k.heed(signals)
	if unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != nil || unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	k.lines.recv = receiver(k.fd)
	if err := k.lines.next(&k.order); err != nil {
		return 0 // it was never needed
	}
	if err := k.start(); err != nil {
		k.clean()
		k.tell(failure(err))
		return 1
	}
	go k.listen()
	k.family.reap(k.ended)
	k.ports.close()
	k.clean()
	k.tell(report{Op: opGone})
	return 0
}

// receiver reads from a socket.
func receiver(fd int) func(p, oob []byte) (int, int, error) {
	return func(p, oob []byte) (int, int, error) {
		for {
			n, oobn, _, _, err := unix.Recvmsg(fd, p, oob, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(err, syscall.EINTR) {
				return n, oobn, err
			}
		}
	}
}

// setupError is a failure to build the walls.
type setupError struct {
	what string
	err  error
}

func (e *setupError) Error() string { return e.what + ": " + e.err.Error() }
func (e *setupError) Unwrap() error { return e.err }

// setup names the step of building walls that failed.
func setup(what string, err error) error {
	if err == nil {
		return nil
	}
	return &setupError{what, err}
}

func failure(err error) report {
	r := report{Op: opFailed}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		r.Errno = int(errno)
	}
	var se *setupError
	if errors.As(err, &se) {
		r.Text = se.Error()
	}
	return r
}

func (k *keeper) tell(r report) {
	line, err := encode(r)
	if err != nil {
		return
	}
	k.send(line, nil)
}

// send writes a line and the descriptor that belongs to it. If nobody listens
// any more, that is found out by listen.
func (k *keeper) send(line, oob []byte) {
	k.writing.Lock()
	defer k.writing.Unlock()
	for len(line) > 0 {
		n, err := unix.SendmsgN(k.fd, line, oob, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		line, oob = line[n:], nil
	}
}

// listen follows requests. When the connection ends, so does the family.
func (k *keeper) listen() {
	for {
		var r request
		if err := k.lines.next(&r); err != nil {
			k.orphan.Store(true)
			if !k.stays.Load() {
				k.killAll()
			}
			return
		}
		switch r.Op {
		case opEnd:
			go k.end()
		case opKill:
			go k.killAll()
		case opKeep:
			k.stay(r.Pipe)
		case opOffer:
			k.ports.give(k.lines.takeAll(r.Four), k.lines.takeAll(r.Six))
			go k.ports.follow(k.family.done)
		case opLeft:
			k.tell(report{Op: opLeft, Left: k.family.sweep(k.ended)})
		}
	}
}

// ended is called for each descendant that has ended.
func (k *keeper) ended(pid int, ws syscall.WaitStatus) {
	if pid == k.main {
		k.tell(report{Op: opExited, Status: int(ws)})
	}
}

// end asks the group of the command to end, and kills all when it has or the
// grace is over.
func (k *keeper) end() {
	_ = k.family.signal(-k.main, syscall.SIGTERM)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(termGrace); time.Now().Before(late); <-tick.C {
		if errors.Is(k.family.signal(-k.main, 0), syscall.ESRCH) {
			break
		}
	}
	k.killAll()
}

// start builds the walls and starts the command. The thread that the command
// is a child of stays, as the command is to die with it.
func (k *keeper) start() error {
	fds := k.lines.fds
	k.lines.fds = nil
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	if err := k.prepare(); err != nil {
		return err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread is inside the walls
		err := k.fork(fds)
		started <- err
		if err == nil {
			<-k.family.done
		}
	}()
	return <-started
}

// fork starts the command on a thread that goes behind the walls first.
func (k *keeper) fork(fds []int) error {
	if err := k.enter(); err != nil {
		return err
	}
	attr := &syscall.ProcAttr{Dir: k.order.Dir, Env: k.order.Env, Sys: attributes()}
	if k.order.TTY {
		control(attr.Sys)
	}
	for _, fd := range fds {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	pid, err := syscall.ForkExec(k.order.Path, k.order.Args, attr)
	if err != nil {
		return err
	}
	k.main = pid
	k.limit(pid)
	k.tell(report{Op: opStarted, Pid: pid})
	close(k.begun)
	return nil
}

// prepare does what concerns the whole keeper.
func (k *keeper) prepare() error {
	if k.order.Container {
		return k.prepareInside()
	}
	switch {
	case k.order.Scene:
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
	case k.order.Scene:
		return k.enterScene()
	case k.order.Level == tool.BoxRead:
		return k.enterRead()
	}
	return nil
}

// clean removes what the keeper has made.
func (k *keeper) clean() {
	if k.order.Temp != "" {
		_ = os.RemoveAll(k.order.Temp)
	}
	_ = k.using.Close() // before the end is told
	if k.order.Level == tool.BoxWorkspace && k.order.Throw == "" && k.orphan.Load() {
		k.sweep()
	}
}

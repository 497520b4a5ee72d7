package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/internal/world/sandbox/walls"
	"github.com/inspan/inspan/tool"
)

// The workspace boxes of a session share a loopback network. The holder is the
// process that has it, in namespaces of users and of the network that are its
// own. It starts the keepers, as nobody else can put one into a network without
// privileges; each has all other namespaces to itself. The holder ends with the
// connection to inspan; so do the keepers, each with one of its own.

const holderName = "inspan-holder" // the whole command line of a holder

// hold is a holder, from inside. It returns the exit code.
func hold() int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE)
	if unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) != nil {
		return 1
	}
	w, err := protocol.NewWire(keeperFD)
	if err != nil {
		return 1
	}
	failed := walls.During("start the loopback network", loopback())
	for {
		var r protocol.Request
		if w.Lines.Next(&r) != nil {
			return 0
		}
		theirs := w.Lines.Take()
		if failed != nil {
			w.Tell(failure(failed))
			return 1
		}
		keeper, handle, err := bear(theirs, r.Throw)
		_ = unix.Close(theirs)
		if err != nil {
			w.Tell(failure(walls.During("start a keeper", err)))
			continue
		}
		line, err := protocol.Encode(protocol.Report{Op: protocol.OpStarted, Pid: keeper.Pid})
		if err == nil {
			w.Send(line, unix.UnixRights(handle))
		}
		_ = unix.Close(handle)
		go func() { _, _ = keeper.Wait() }()
	}
}

// bear starts a keeper in the network of this process. It returns a handle that
// tells of the keeper's end. One that is to throw away what its box changes mounts an
// overlay, whose own folder nobody may enter without a privilege.
func bear(conn int, throw bool) (keeper *os.Process, handle int, err error) {
	theirs, err := unix.FcntlInt(uintptr(conn), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, -1, err
	}
	file := os.NewFile(uintptr(theirs), "keeper")
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, -1, err
	}
	defer null.Close()
	handle = -1
	caps := []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE}
	if throw {
		caps = append(caps, unix.CAP_DAC_OVERRIDE)
	}
	keeper, err = os.StartProcess("/proc/self/exe", []string{keeperName}, &os.ProcAttr{
		Dir: "/", Env: keeperVars(), Files: []*os.File{null, null, null, file},
		Sys: &syscall.SysProcAttr{
			Setsid: true, Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, PidFD: &handle,
			AmbientCaps: caps,
		},
	})
	if err == nil && handle < 0 {
		err = errors.New("the kernel has no handles of processes")
	}
	return keeper, handle, err
}

// loopback starts the network inside of this machine, which is all there is.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// holder is one, as inspan sees it.
type holder struct {
	process *os.Process
	conn    *net.UnixConn
	lines   protocol.Lines
}

// sessionNet is the holder of a session. The zero value is ready.
type sessionNet struct {
	mu     sync.Mutex
	holder *holder
}

// spawn has the holder start a keeper. One that was killed is replaced: what
// runs in its network goes on there.
func (n *sessionNet) spawn(o Options, throw bool) (link, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != nil {
		if l, err := n.holder.spawn(throw); err == nil {
			return l, nil
		}
		n.holder.end()
		n.holder = nil
	}
	h, err := newHolder(o)
	if err != nil {
		return link{}, err
	}
	l, err := h.spawn(throw)
	if err != nil {
		h.end()
		return link{}, err
	}
	n.holder = h
	return l, nil
}

// close ends the holder.
func (n *sessionNet) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != nil {
		n.holder.end()
		n.holder = nil
	}
}

func newHolder(o Options) (*holder, error) {
	process, conn, err := startKeeper(o, holderName, holderAttributes())
	if err != nil {
		return nil, err
	}
	return &holder{process: process, conn: conn, lines: protocol.Lines{Receive: receiving(conn)}}, nil
}

func (h *holder) end() {
	_ = h.conn.Close()
	_, _ = h.process.Wait()
}

// spawn has a keeper started.
func (h *holder) spawn(throw bool) (link, error) {
	ours, theirs, err := connected()
	if err != nil {
		return link{}, err
	}
	defer theirs.Close()
	l := newLink(ours)
	line, err := protocol.Encode(protocol.Request{Op: protocol.OpSpawn, Throw: throw})
	if err == nil {
		_, _, err = h.conn.WriteMsgUnix(line, unix.UnixRights(int(theirs.Fd())), nil)
	}
	var r protocol.Report
	if err == nil {
		err = h.lines.Next(&r)
	}
	if err == nil && r.Op != protocol.OpStarted {
		err = fmt.Errorf("%w: %s", tool.ErrNoBox, r.Text)
	}
	if err != nil {
		_ = ours.Close()
		return link{}, err
	}
	l.pid, l.handle = r.Pid, h.lines.Take()
	return l, nil
}

func holderAttributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNET}
	uid, gid := os.Geteuid(), os.Getegid()
	inner := [2]int{uid, gid}
	if uid == 0 {
		inner = [2]int{boxUser, boxUser}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inner[0], HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inner[1], HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_PTRACE, unix.CAP_DAC_OVERRIDE}
	return attr
}

package sandbox

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/keeper"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// The workspace boxes of a session share a loopback network. The holder is the process that owns it, in its own
// user and network namespaces. It starts the keepers, since no other unprivileged process can start one in that
// network; each keeper has its own other namespaces. The holder ends with its connection to inspan; so do the
// keepers, each with its own connection.

// holder is inspan's side of a holder.
type holder struct {
	process *os.Process
	conn    *net.UnixConn
	lines   protocol.Lines
}

// sessionNetwork is the holder of a session. The zero value is ready.
type sessionNetwork struct {
	mu     sync.Mutex
	holder *holder
}

// spawn lets the holder start a keeper. A killed holder is replaced; processes in its network continue there.
func (n *sessionNetwork) spawn(o Options, throw bool) (keeperLink, error) {
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
		return keeperLink{}, err
	}
	l, err := h.spawn(throw)
	if err != nil {
		h.end()
		return keeperLink{}, err
	}
	n.holder = h
	return l, nil
}

// close ends the holder.
func (n *sessionNetwork) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.holder != nil {
		n.holder.end()
		n.holder = nil
	}
}

func newHolder(o Options) (*holder, error) {
	process, conn, err := startKeeper(o, keeper.NetworkName, holderAttributes())
	if err != nil {
		return nil, err
	}
	return &holder{process: process, conn: conn, lines: protocol.Lines{Receive: receiving(conn)}}, nil
}

func (h *holder) end() {
	_ = h.conn.Close()
	_, _ = h.process.Wait()
}

// spawn requests a keeper.
func (h *holder) spawn(throw bool) (keeperLink, error) {
	ours, theirs, err := connected()
	if err != nil {
		return keeperLink{}, err
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
		return keeperLink{}, err
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

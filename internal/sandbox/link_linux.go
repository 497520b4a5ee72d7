package sandbox

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/tool"
)

// link is a keeper and the connection to it.
type link struct {
	keeper   *os.Process // nil in a container
	conn     *net.UnixConn
	instance *instance // nil if there is no container
}

// drop ends the connection, which ends the keeper, and waits for that.
func (l link) drop() {
	_ = l.conn.Close()
	if l.instance != nil {
		l.instance.wait()
		return
	}
	_, _ = l.keeper.Wait()
}

// connect gives the command to a keeper: the one that waits, or a new one, in
// a container if there are to be any.
func (b *boxes) connect(k *kept, e ends) error {
	if b.engine != nil {
		return b.board(k, e)
	}
	if l, ok := b.o.Pool.spares.take(k.order.Level); ok {
		k.use(l)
		if k.hand(e) == nil {
			return nil
		}
		k.drop() // it was killed while it waited
	}
	l, err := b.spawn(k.order.Level)
	if err != nil {
		return err
	}
	k.use(l)
	if err := k.hand(e); err != nil {
		k.drop()
		return err
	}
	return nil
}

func (k *kept) use(l link) {
	k.link = l
	k.lines.recv = func(p, oob []byte) (int, int, error) {
		n, oobn, _, _, err := l.conn.ReadMsgUnix(p, oob)
		return n, oobn, err
	}
}

// spawn starts the keeper. It gets nothing of us but its end of the
// connection.
func (b *boxes) spawn(level tool.Level) (link, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return link{}, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "keeper"), os.NewFile(uintptr(fds[1]), "keeper")
	defer ours.Close()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return link{}, err
	}
	defer null.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return link{}, err
	}
	keeper, err := os.StartProcess(b.o.Self, []string{keeperName}, &os.ProcAttr{
		Dir: "/", Env: []string{}, Files: []*os.File{null, null, null, theirs}, Sys: keeperAttributes(level),
	})
	if err != nil {
		_ = conn.Close()
		return link{}, err
	}
	return link{keeper: keeper, conn: conn.(*net.UnixConn)}, nil
}

func keeperAttributes(level tool.Level) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if level != tool.BoxWorkspace {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWNET
	uid, gid := os.Geteuid(), os.Getegid()
	inner := [2]int{uid, gid}
	if uid == 0 {
		inner = [2]int{boxUser, boxUser}
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inner[0], HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inner[1], HostID: gid, Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
	return attr
}

package sandbox

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// link is a keeper and the connection to it.
type link struct {
	pid      int         // of the keeper; 0: it has none here, as in a container
	keeper   *os.Process // nil if it is no child of this process
	handle   int         // then it tells of the end of the keeper; not in a container
	conn     *net.UnixConn
	instance *instance // nil if there is no container
}

// drop ends the connection, which ends the keeper, and waits for that.
func (l link) drop() {
	_ = l.conn.Close()
	switch {
	case l.instance != nil:
		l.instance.wait()
	case l.keeper != nil:
		_, _ = l.keeper.Wait()
	default:
		fds := []unix.PollFd{{Fd: int32(l.handle), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		_ = unix.Close(l.handle)
	}
}

// forget leaves a keeper to itself that goes on.
func (l link) forget() {
	if l.keeper != nil {
		_ = l.keeper.Release()
		return
	}
	_ = unix.Close(l.handle)
}

// connect gives the command to a keeper: the one that waits, or a new one, in
// a container if there are to be any.
func (b *boxes) connect(k *kept, e ends) error {
	if b.engine != nil {
		return b.board(k, e)
	}
	for {
		l, waited, err := b.keeper(k.order)
		if err != nil {
			return err
		}
		k.use(l)
		if err = k.hand(e); err == nil {
			return nil
		}
		k.drop()
		if !waited {
			return err
		}
		// It was killed while it waited.
	}
}

// keeper returns one for an order, and whether it has waited for that.
func (b *boxes) keeper(o order) (l link, waited bool, err error) {
	if o.Scene {
		return b.network.take(b.o.Self, o.Throw != "")
	}
	if l, ok := b.o.Pool.spares.take(); ok {
		return l, true, nil
	}
	l, err = b.spawn()
	return l, false, err
}

// restock starts a keeper for the next command like this one.
func (b *boxes) restock(o order) {
	if o.Scene {
		b.network.restock(b.o.Self)
		return
	}
	b.o.Pool.spares.restock(b.spawn)
}

func (k *kept) use(l link) {
	k.link, k.lines.recv = l, receiving(l.conn)
}

// receiving reads from our end of a connection.
func receiving(conn *net.UnixConn) func(p, oob []byte) (int, int, error) {
	return func(p, oob []byte) (int, int, error) {
		n, oobn, _, _, err := conn.ReadMsgUnix(p, oob)
		return n, oobn, err
	}
}

// spawn starts a keeper that has no namespaces of its own.
func (b *boxes) spawn() (link, error) {
	process, conn, err := startKeeper(b.o.Self, keeperName, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return link{}, err
	}
	return link{pid: process.Pid, keeper: process, conn: conn}, nil
}

// startKeeper starts a keeper or a holder. It gets nothing of us but its end of
// the connection.
func startKeeper(self, name string, attr *syscall.SysProcAttr) (*os.Process, *net.UnixConn, error) {
	conn, theirs, err := connected()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	defer null.Close()
	process, err := os.StartProcess(self, []string{name}, &os.ProcAttr{
		Dir: "/", Env: keeperVars(), Files: []*os.File{null, null, null, theirs}, Sys: attr,
	})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return process, conn, nil
}

// connected makes both ends of a connection.
func connected() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "keeper")
	defer file.Close()
	theirs = os.NewFile(uintptr(fds[1]), "keeper")
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return conn.(*net.UnixConn), theirs, nil
}

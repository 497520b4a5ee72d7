package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/keeper"
	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// keeperLink is a keeper and the connection to it.
type keeperLink struct {
	pid         int         // of the keeper; 0 means none in this namespace, as in a container
	keeper      *os.Process // nil if it is not a child of this process
	handle      int         // then it signals the end of the keeper; not in a container
	conn        *net.UnixConn
	instance    *instance // nil if there is no container
	lines       *protocol.Lines
	number      int      // of its current or last command
	walls       string   // of its box, for all its commands or the last one; empty means none
	temp        string   // temporary files of all its commands; empty means each command has its own
	undoEarlier []func() // each removes something that was made for this box
}

func newLink(conn *net.UnixConn) keeperLink {
	return keeperLink{conn: conn, lines: &protocol.Lines{Receive: receiving(conn)}}
}

// next returns the next report about the command. It skips late reports about the previous one.
func (l keeperLink) next() (r protocol.Report, err error) {
	for {
		if err = l.lines.Next(&r); err != nil || r.N == l.number {
			return r, err
		}
		r = protocol.Report{}
	}
}

// drop closes the connection, which ends the keeper, and waits for that.
func (l keeperLink) drop() {
	l.disconnect()
	l.waitAndClean()
}

// disconnect closes the connection, and removes files made for the keeper's box.
func (l keeperLink) disconnect() {
	_ = l.conn.Close()
	for _, f := range l.undoEarlier {
		f()
	}
}

// waitAndClean waits for the end of the keeper. A killed one has left its temporary files.
func (l keeperLink) waitAndClean() {
	l.wait()
	if l.temp != "" {
		_ = os.RemoveAll(l.temp)
	}
}

// wait waits for the end of the keeper.
func (l keeperLink) wait() {
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

// forget detaches a keeper that continues.
func (l keeperLink) forget() {
	if l.keeper != nil {
		_ = l.keeper.Release()
		return
	}
	_ = unix.Close(l.handle)
}

// giveToKeeper gives the command to a waiting or a new keeper, in a container if configured.
func (b *boxes) giveToKeeper(k *supervised, e WaitForEnd) error {
	if b.engine != nil {
		if err := b.startContainer(k); err != nil {
			return err
		}
		return k.startCommand(e, false)
	}
	for {
		l, waited, err := b.takeKeeper(k)
		if err != nil {
			return fmt.Errorf("start keeper: %w", err)
		}
		k.useKeeper(l)
		if err = k.startCommand(e, waited); !errors.Is(err, errUnfit) {
			return err
		}
	}
}

// useKeeper assigns a keeper to the command. An existing box that matches is reused.
func (k *supervised) useKeeper(l keeperLink) {
	k.order.Stands = l.number > 0 && k.walls != "" && k.walls == l.walls
	if l.temp != "" {
		k.order.Temp = l.temp
	}
	l.temp, l.walls = k.order.Temp, k.walls
	k.keeperLink = l
}

// errUnfit says that a waiting keeper can't be used, and that the command was not started.
var errUnfit = errors.New("the keeper can't be used")

// startCommand lets the keeper start the command. On failure it drops the keeper.
func (k *supervised) startCommand(e WaitForEnd, waited bool) error {
	k.number++
	var first protocol.Report
	err := k.sendOrder(e)
	handed := err == nil
	if handed {
		first, err = k.next()
	}
	if err == nil && first.Op != protocol.OpStarted {
		err = k.refusal(first)
	}
	if err == nil {
		k.leader = first.Pid
		return nil
	}
	k.drop()
	// The keeper was killed while waiting, with the order unread, or its state has changed.
	if waited && (!handed || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, tool.ErrNoBox)) {
		return errUnfit
	}
	return err
}

// takeKeeper returns a keeper for the command, and whether it was a waiting one.
func (b *boxes) takeKeeper(k *supervised) (l keeperLink, waited bool, err error) {
	if k.order.Level != tool.BoxNone && !k.order.Alone() {
		k.walls = b.fingerprint(k.order)
	}
	if l, ok := b.waiting.take(k.kind(), k.walls); ok {
		return l, true, nil
	}
	if k.order.Isolated {
		l, err = b.network.spawn(b.o, k.order.Overlays())
		return l, false, err
	}
	l, err = b.startPlainKeeper()
	return l, false, err
}

// startPlainKeeper starts a keeper without namespaces.
func (b *boxes) startPlainKeeper() (keeperLink, error) {
	process, conn, err := startKeeper(b.o, keeper.Name, &syscall.SysProcAttr{Setsid: true})
	if err != nil {
		return keeperLink{}, err
	}
	l := newLink(conn)
	l.pid, l.keeper = process.Pid, process
	return l, nil
}

// startKeeper starts a keeper or a holder, as the leader of a process group. It inherits only its end of the
// connection.
func startKeeper(o Options, name string, attr *syscall.SysProcAttr) (*os.Process, *net.UnixConn, error) {
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
	process, err := os.StartProcess(o.Self, []string{name}, &os.ProcAttr{
		Dir: "/", Env: keeper.Environ(), Files: []*os.File{null, null, null, theirs}, Sys: attr,
	})
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	if own, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil && o.Nice > 0 { // the kernel returns 20 minus nice
		_ = unix.Setpriority(unix.PRIO_PGRP, process.Pid, min(19, 20-own+o.Nice)) // all its threads, and everything it starts
	}
	return process, conn, nil
}

// receiving returns a function that reads from our end of a connection.
func receiving(conn *net.UnixConn) func(p, oob []byte) (int, int, error) {
	return func(p, oob []byte) (int, int, error) {
		n, oobn, _, _, err := conn.ReadMsgUnix(p, oob)
		return n, oobn, err
	}
}

// connected creates a connection and returns both ends.
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

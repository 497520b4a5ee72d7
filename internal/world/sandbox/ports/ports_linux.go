package ports

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/inspan/inspan/internal/world/sandbox/protocol"
	"github.com/inspan/inspan/tool"
)

// Listening ports of a kept command in its session's network can be reached at the same port of the machine's
// loopback addresses. A socket belongs to the network in which it was created, wherever it is bound, so inspan
// creates sockets in the machine's network and gives them to the keeper. The keeper binds one to each port that its
// family listens on, accepts connections there, and connects to the port in the box. Connections only go inwards:
// only the keeper, not the command, has sockets of the machine's network.

const (
	maxConnections = 256
	portsEvery     = 500 * time.Millisecond
	dialTimeout    = 10 * time.Second
)

// Ports are the listening ports of a keeper's family, offered on the machine.
type Ports struct {
	mu        sync.Mutex
	four, six []int // unused sockets of the machine's network
	list      []tool.Port
	open      []net.Listener
	said      io.Writer     // receives ports that are found later; may be nil
	busy      chan struct{} // holds a value for each connection; nil means nothing is offered
}

// Give passes sockets of the machine's network, for IPv4 and IPv6.
func (p *Ports) Give(four, six []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.four, p.six, p.busy = four, six, make(chan struct{}, maxConnections)
}

// Offered reports whether sockets were given.
func (p *Ports) Offered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.four != nil || p.open != nil
}

// Follow looks for ports until the family is gone.
func (p *Ports) Follow(gone <-chan struct{}) {
	tick := time.NewTicker(portsEvery)
	defer tick.Stop()
	for {
		p.look()
		select {
		case <-gone:
			return
		case <-tick.C:
		}
	}
}

// look offers new ports of the family, and returns all of them. A port stays offered until the family has
// ended. One that was in use is tried again.
func (p *Ports) look() []tool.Port {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy == nil {
		return nil
	}
	for _, port := range p.fresh() {
		offered := tool.Port{Number: port}
		if err := p.offer(port); err != nil {
			offered.Error = err.Error()
		}
		if slices.Contains(p.list, offered) {
			continue
		}
		p.list = append(slices.DeleteFunc(p.list, func(o tool.Port) bool { return o.Number == port }), offered)
		if p.said != nil {
			_, _ = fmt.Fprintf(p.said, "[inspan: %s]\n", offered)
		}
	}
	return slices.Clone(p.list)
}

// Report writes ports that are found from now on to a writer. It returns the earlier ones.
func (p *Ports) Report(to io.Writer) []tool.Port {
	list := p.look()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = to
	return list
}

// fresh lists listening ports of the family that are not offered.
func (p *Ports) fresh() (out []int) {
	for _, l := range listeners() {
		port := int(l.address.Port())
		known := slices.Contains(out, port) || slices.ContainsFunc(p.list, func(o tool.Port) bool { return o.Number == port && o.Error == "" })
		if !known && heldHere(l.socket) {
			out = append(out, port)
		}
	}
	return out
}

// offer listens on a port of the machine. It fails if another process uses the port.
func (p *Ports) offer(port int) error {
	if len(p.four) == 0 {
		return errors.New("a command has " + strconv.Itoa(protocol.MaxPorts) + " ports at most")
	}
	l, err := listen(&p.four, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}})
	if err != nil {
		switch {
		case errors.Is(err, syscall.EADDRINUSE):
			return errors.New("another program of this machine has it")
		case errors.Is(err, syscall.EACCES):
			return errors.New("this machine leaves it to administrators")
		}
		return err
	}
	p.serve(l, port)
	if len(p.six) > 0 {
		if l, err := listen(&p.six, &unix.SockaddrInet6{Port: port, Addr: netip.IPv6Loopback().As16()}); err == nil {
			p.serve(l, port)
		}
	}
	return nil
}

func (p *Ports) serve(l net.Listener, port int) {
	p.open = append(p.open, l)
	go accept(l, port, p.busy)
}

// Close closes the ports, before the end of the family is reported.
func (p *Ports) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.open {
		_ = l.Close() // its error doesn't matter
	}
	p.busy = nil
}

// listen listens with the first of some sockets. If it can't be bound, it remains for another port.
func listen(list *[]int, at unix.Sockaddr) (net.Listener, error) {
	fd := (*list)[0]
	if err := unix.Bind(fd, at); err != nil {
		return nil, err
	}
	*list = (*list)[1:]
	file := os.NewFile(uintptr(fd), "port")
	defer file.Close()
	if err := unix.Listen(fd, 128); err != nil {
		return nil, err
	}
	return net.FileListener(file)
}

// accept accepts connections until the port is closed.
func accept(l net.Listener, port int, busy chan struct{}) {
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(portsEvery) // possibly too many open files
			continue
		}
		select {
		case busy <- struct{}{}:
			go func() {
				defer func() { <-busy }()
				forward(conn, port)
			}()
		default:
			_ = conn.Close()
		}
	}
}

// forward connects a client with the process of the family that listens on a port now. Other processes of the
// session are not connected.
func forward(client net.Conn, port int) {
	defer func() { _ = client.Close() }()
	server := dial(port)
	if server == nil {
		return
	}
	defer func() { _ = server.Close() }()
	done := make(chan struct{})
	go func() {
		defer close(done)
		copyHalf(server, client)
	}()
	copyHalf(client, server)
	<-done
}

func dial(port int) net.Conn {
	for _, l := range listeners() {
		if int(l.address.Port()) != port || !heldHere(l.socket) {
			continue
		}
		for _, address := range l.addresses() {
			if conn, err := net.DialTimeout("tcp", address.String(), dialTimeout); err == nil {
				return conn
			}
		}
	}
	return nil
}

// copyHalf copies until one side closes its writing half, and passes that on.
func copyHalf(to, from net.Conn) {
	_, err := io.Copy(to, from)
	if half, ok := to.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite() // it may be gone
		return
	}
	_ = to.Close()
	_ = from.Close()
}

package testkit

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
)

// Proxy is a proxy between clients and a cluster, or another server. It cuts the connection of one request, or
// all, or drops data.
type Proxy struct {
	listener net.Listener
	dial     func() (net.Conn, error)
	work     sync.WaitGroup

	mu    sync.Mutex
	drops chan struct{} // closed when data passes again; nil means it does
	cut   *Cut
	conns map[net.Conn]bool
	shut  bool // refuses connections, as across a network partition
}

// Cut decides the fate of the first request that contains Mark.
type Cut struct {
	Mark   string
	Asked  int           // bytes of the request that reach the server; -1: all
	Answer int           // bytes of the answer that reach the client
	Done   chan struct{} // closed when the connection is cut
	once   sync.Once
}

func (c *Cut) done() { c.once.Do(func() { close(c.Done) }) }

// NewProxy starts a proxy for a cluster. Close it after use.
func NewProxy(c *Cluster) (*Proxy, error) { return NewProxyTo("127.0.0.1", "unix", c.Socket()) }

// NewProxyTo starts a proxy on an address of this machine for any server. Close it after use.
func NewProxyTo(on, network, address string) (*Proxy, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(on, "0"))
	if err != nil {
		return nil, err
	}
	dial := func() (net.Conn, error) { return net.Dial(network, address) }
	p := &Proxy{listener: l, dial: dial, conns: map[net.Conn]bool{}}
	p.work.Go(p.serve)
	return p, nil
}

// Address returns the address where it listens.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// URL returns the URL of a database behind the proxy.
func (p *Proxy) URL(database string) string {
	return "postgres://test@" + p.Address() + "/" + database + "?sslmode=disable"
}

// Drop makes it pass nothing on, and close nothing either, until it is called with false: as across a network
// partition. Then pending data arrives, as TCP sends it again.
func (p *Proxy) Drop(drops bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case drops && p.drops == nil:
		p.drops = make(chan struct{})
	case !drops && p.drops != nil:
		close(p.drops)
		p.drops = nil
	}
}

// pass waits until bytes get through.
func (p *Proxy) pass() {
	p.mu.Lock()
	drops := p.drops
	p.mu.Unlock()
	if drops != nil {
		<-drops
	}
}

// Arm selects one request to cut.
func (p *Proxy) Arm(mark string, asked, answer int) *Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = &Cut{Mark: mark, Asked: asked, Answer: answer, Done: make(chan struct{})}
	return p.cut
}

// Part cuts all connections, and lets none through until it is called with false.
func (p *Proxy) Part(parted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut = parted; parted {
		for conn := range p.conns {
			_ = conn.Close()
		}
	}
}

// Close cuts all connections, and waits for their end.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.Drop(false)
	p.Part(true)
	p.work.Wait()
	return err
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "proxy:", err)
			return
		}
		server, err := p.dial()
		if err != nil || !p.add(client, server) {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		p.work.Go(func() { p.join(client, server) })
	}
}

func (p *Proxy) add(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return !p.shut
}

// join passes bytes on until one side ends.
func (p *Proxy) join(client, server net.Conn) {
	both := func() { _ = errors.Join(client.Close(), server.Close()) }
	var hit marked
	var group sync.WaitGroup
	group.Go(func() { defer both(); p.up(client, server, &hit) })
	group.Go(func() { defer both(); p.down(server, client, &hit) })
	group.Wait()
	if cut := hit.get(); cut != nil { // its request may have come on the previous connection
		cut.done()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, client)
	delete(p.conns, server)
}

// marked is the state of the cut for a connection.
type marked struct {
	mu  sync.Mutex
	cut *Cut // nil means its request is not cut
}

func (p *marked) get() *Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cut
}

// cancelRequest is the start of a connection that asks the server to cancel a statement. None gets through: a
// statement whose connection was cut continues.
const cancelRequest = "\x00\x00\x00\x10\x04\xd2\x16\x2e"

// up passes on the client's data.
func (p *Proxy) up(client, server net.Conn, hit *marked) {
	buf := make([]byte, 1<<20)
	for {
		n, err := client.Read(buf)
		if err != nil || bytes.HasPrefix(buf[:n], []byte(cancelRequest)) {
			return
		}
		cut := p.take(buf[:n])
		if cut != nil {
			hit.mu.Lock()
			hit.cut = cut
			hit.mu.Unlock()
		}
		if cut != nil && cut.Asked >= 0 {
			_, _ = server.Write(buf[:min(cut.Asked, n)])
			cut.done()
			return
		}
		p.pass()
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
		if cut != nil && cut.Answer < 0 { // the client is gone before there is an answer
			cut.done()
			return
		}
	}
}

func (p *Proxy) take(said []byte) *Cut {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cut == nil || !bytes.Contains(said, []byte(p.cut.Mark)) {
		return nil
	}
	cut := p.cut
	p.cut = nil
	return cut
}

// down passes on the server's data.
func (p *Proxy) down(server, client net.Conn, hit *marked) {
	buf := make([]byte, 1<<20)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if cut := hit.get(); cut != nil && cut.Asked < 0 && cut.Answer >= 0 {
			_, _ = client.Write(buf[:min(cut.Answer, n)])
			cut.done()
			return
		}
		p.pass()
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

package fake

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Pipe returns a transport whose every connection ends at h, in memory, so that it can be used in a synctest
// bubble. Hosts and ports are ignored. It is closed with the test.
func Pipe(t testing.TB, h http.Handler) *http.Transport {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: h}
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(l) })
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return l.dial(ctx) },
	}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		_ = server.Close()
		done.Wait()
	})
	return tr
}

// NoPipe returns a transport that never gets a connection.
func NoPipe(t testing.TB) *http.Transport {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-never
			return nil, net.ErrClosed
		},
	}
}

// listener hands connections from dial to Accept.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

package netguard

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// tunnel carries bytes between two connections. An end of one direction is passed on while the other direction
// stays open.
type tunnel struct {
	down, up net.Conn // the process and the host
	idle     time.Duration
}

// run returns when both directions have ended, nothing moved for the idle time, or ctx is done. Early was
// already read from the process.
func (t *tunnel) run(ctx context.Context, early []byte) {
	settle := onDone(ctx, t.cut)
	defer settle()
	t.touch()
	var upward sync.WaitGroup
	upward.Go(func() { t.pump(t.up, io.MultiReader(bytes.NewReader(early), t.down)) })
	t.pump(t.down, t.up)
	upward.Wait()
}

// pump copies one direction. On an error it also ends the other one.
func (t *tunnel) pump(dst net.Conn, src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		t.touch()
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				t.cut()
				return
			}
		}
		if err == io.EOF { //nolint:errorlint // io.Reader returns EOF unwrapped
			closeWrite(dst)
			return
		}
		if err != nil {
			t.cut()
			return
		}
	}
}

// touch restarts the idle time, for both directions.
func (t *tunnel) touch() {
	at := time.Now().Add(t.idle)
	_ = t.down.SetDeadline(at) // a closed connection reports that when used
	_ = t.up.SetDeadline(at)
}

func (t *tunnel) cut() {
	shut(t.down)
	shut(t.up)
}

// closeWrite ends one direction of a connection, or both if it can't be half-closed.
func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // the other direction detects errors
		return
	}
	shut(c)
}

// shut closes a closer whose error doesn't matter.
func shut(c io.Closer) { c.Close() }

// onDone runs f when ctx is done. The returned function cancels that, and waits for f if it is running.
func onDone(ctx context.Context, f func()) (settle func()) {
	ran := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ran)
		f()
	})
	return func() {
		if !stop() {
			<-ran
		}
	}
}

// idleConn fails when it is idle for a while.
type idleConn struct {
	net.Conn
	idle time.Duration
}

func (c *idleConn) Read(p []byte) (int, error) {
	_ = c.SetDeadline(time.Now().Add(c.idle))
	return c.Conn.Read(p)
}

func (c *idleConn) Write(p []byte) (int, error) {
	_ = c.SetDeadline(time.Now().Add(c.idle))
	return c.Conn.Write(p)
}

// limited is a listener that closes connections beyond a number.
type limited struct {
	net.Listener
	slots chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.slots <- struct{}{}:
			return &slotConn{Conn: conn, free: sync.OnceFunc(func() { <-l.slots })}, nil
		default:
			shut(conn)
		}
	}
}

// slotConn releases its slot when it is closed.
type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	c.free()
	return c.Conn.Close()
}

// CloseWrite ends the direction to the process.
func (c *slotConn) CloseWrite() error {
	closeWrite(c.Conn)
	return nil
}

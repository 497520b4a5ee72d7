package mcp

import (
	"errors"
	"io"
	"sync"
)

// maxWaiting is how much may wait for a server to read it, in bytes.
const maxWaiting = 64 << 20

// An outbox is the standard input of a server. Writing never waits for the server
// to read.
type outbox struct {
	mu     sync.Mutex
	more   *sync.Cond
	buf    []byte
	closed bool
}

func newOutbox() *outbox {
	o := &outbox{}
	o.more = sync.NewCond(&o.mu)
	return o
}

// Read implements [io.Reader]. It waits for something to read, or for Close.
func (o *outbox) Read(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf) == 0 && !o.closed {
		o.more.Wait()
	}
	if len(o.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, o.buf)
	if o.buf = o.buf[n:]; len(o.buf) == 0 {
		o.buf = nil
	}
	return n, nil
}

// Write implements [io.Writer].
func (o *outbox) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0, errors.New("it is ending")
	}
	if len(o.buf)+len(data) > maxWaiting {
		return 0, errors.New("it does not read what it is sent")
	}
	o.buf = append(o.buf, data...)
	o.more.Signal()
	return len(data), nil
}

// Close ends the input once all of it is read.
func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.more.Signal()
	return nil
}

// A tail keeps the end of what a server says beside the protocol.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

const maxTail = 4 << 10 // bytes

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, p[max(0, len(p)-maxTail):]...)
	if n := len(t.buf) - maxTail; n > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

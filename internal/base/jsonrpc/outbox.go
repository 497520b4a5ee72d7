package jsonrpc

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxQueued bounds the queued data, in bytes; beyond it senders wait.
const maxQueued = 8 << 20

// Outbox writes lines in order from a single goroutine, so that a client which does not read blocks no sender
// forever.
type Outbox struct {
	w      io.Writer
	broken chan struct{} // closed when writing is no longer possible

	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	size    int
	hurried bool // senders no longer wait for room
	closed  bool
	err     error
	done    chan struct{}
}

// NewOutbox returns an outbox. Call its [Outbox.Finish].
func NewOutbox(w io.Writer) *Outbox {
	o := &Outbox{w: w, broken: make(chan struct{}), done: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.write()
	return o
}

// Put queues a message, takes ownership of it and writes it on its own line. It waits while too much is queued;
// when the connection is closed it drops the message instead.
func (o *Outbox) Put(body []byte) {
	body = append(body, '\n')
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > maxQueued && !o.hurried && o.err == nil {
		o.changed.Wait()
	}
	if o.err != nil || o.closed || o.size > maxQueued {
		return
	}
	o.lines = append(o.lines, body)
	o.size += len(body)
	o.changed.Broadcast()
}

func (o *Outbox) write() {
	defer close(o.done)
	for {
		o.mu.Lock()
		for len(o.lines) == 0 && !o.closed {
			o.changed.Wait()
		}
		if len(o.lines) == 0 {
			o.mu.Unlock()
			return
		}
		line := o.lines[0]
		o.lines = o.lines[1:]
		o.mu.Unlock()
		_, err := o.w.Write(line)
		o.mu.Lock()
		o.size -= len(line)
		if err != nil {
			o.err = fmt.Errorf("write to the client: %w", err)
			close(o.broken)
		}
		o.changed.Broadcast()
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Err returns the reason why writing is no longer possible; nil while it is.
func (o *Outbox) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Broken returns a channel that is closed when writing is no longer possible.
func (o *Outbox) Broken() <-chan struct{} { return o.broken }

// Hurry makes senders no longer wait for room.
func (o *Outbox) Hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	o.changed.Broadcast()
}

// Finish writes the rest, for at most patience.
func (o *Outbox) Finish(patience time.Duration) error {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	select {
	case <-o.done:
		return nil // a failure was reported when it occurred
	case <-time.After(patience):
		return errors.New("the client does not read what is written to it")
	}
}

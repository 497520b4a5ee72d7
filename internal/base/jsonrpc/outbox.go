package jsonrpc

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// maxQueued is how much may wait to be written, in bytes, before those who send wait
// too.
const maxQueued = 8 << 20

// Outbox writes lines in the order in which they are put in, by one goroutine, so
// that a client which does not read holds up nobody for ever.
type Outbox struct {
	w      io.Writer
	broken chan struct{} // closed when nothing can be written any more

	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	size    int
	hurried bool // nobody waits for room any more
	closed  bool
	err     error
	done    chan struct{}
}

// NewOutbox returns an outbox, whose [Outbox.Finish] is to be called.
func NewOutbox(w io.Writer) *Outbox {
	o := &Outbox{w: w, broken: make(chan struct{}), done: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	go o.write()
	return o
}

// Put adds a message, which it takes over and which gets a line of its own. It waits while too much is queued; when
// the conversation is over the message is dropped instead.
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

// Err is why nothing can be written any more; nil while it can.
func (o *Outbox) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Broken is closed when nothing can be written any more.
func (o *Outbox) Broken() <-chan struct{} { return o.broken }

// Hurry lets nobody wait for room any more.
func (o *Outbox) Hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	o.changed.Broadcast()
}

// Finish writes what is left, unless that takes longer than patience.
func (o *Outbox) Finish(patience time.Duration) error {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	select {
	case <-o.done:
		return nil // a failure was told when it came
	case <-time.After(patience):
		return errors.New("the client does not read what is written to it")
	}
}

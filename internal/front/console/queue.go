package console

import (
	"cmp"
	"io"
	"sync"
	"time"
)

// A pipe that no one reads and a stopped terminal must not keep a run from handling a signal, or from ending when
// its time is over. So a run prints through a queue, in one order for both streams. As long as someone reads, each
// piece is written before the run continues.

// patience is how long a run waits for a reader that takes nothing.
const patience = 2 * time.Second

// queue writes in the background. Make one with newQueue, and end it.
type queue struct {
	patience time.Duration

	mu      sync.Mutex
	more    *sync.Cond
	waiting []piece
	written int                 // pieces
	stands  bool                // no one reads, so the run doesn't wait
	failed  map[io.Writer]error // why a stream takes no more
}

// piece is the text of one write. The last one of a queue has no stream.
type piece struct {
	to   io.Writer
	text []byte
	done chan struct{} // closed when it is written
}

func newQueue(patience time.Duration) *queue {
	q := &queue{patience: patience, failed: map[io.Writer]error{}}
	q.more = sync.NewCond(&q.mu)
	go q.write()
	return q
}

// write writes the pieces in order.
func (q *queue) write() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for {
		for len(q.waiting) == 0 {
			q.stands = false
			q.more.Wait()
		}
		p := q.waiting[0]
		q.waiting = q.waiting[1:]
		if p.to != nil && q.failed[p.to] == nil {
			q.mu.Unlock()
			_, err := p.to.Write(p.text)
			q.mu.Lock()
			q.failed[p.to] = err
		}
		q.written++
		close(p.done)
		if p.to == nil {
			return
		}
	}
}

// put queues a piece, and waits until it is written while someone reads. It returns the error of the piece's
// stream.
func (q *queue) put(p piece) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, p)
	q.more.Signal()
	if q.stands {
		return nil
	}
	q.mu.Unlock()
	closedBy(q.patience, p.done)
	q.mu.Lock()
	select {
	case <-p.done:
	default:
		q.stands = true
	}
	return q.failed[p.to]
}

// end waits until everything is written, at most until the deadline, and after that as long as someone reads. A
// zero deadline means none. It reports whether everything was written.
func (q *queue) end(deadline time.Time) bool {
	last := piece{done: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, last)
	q.more.Signal()
	q.mu.Unlock()
	if deadline.IsZero() {
		<-last.done
		return true
	}
	if closedBy(time.Until(deadline), last.done) {
		return true
	}
	for before := -1; ; {
		if closedBy(q.patience, last.done) {
			return true
		}
		q.mu.Lock()
		now := q.written
		q.mu.Unlock()
		if now == before {
			return false
		}
		before = now
	}
}

// closedBy reports whether a channel is closed in time.
func closedBy(most time.Duration, closed <-chan struct{}) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	select {
	case <-closed:
		return true
	case <-late.C:
		return false
	}
}

// queuedStream is a stream whose pieces go through a queue.
type queuedStream struct {
	io.Writer
	queue *queue
}

// Write implements [io.Writer].
func (w queuedStream) Write(p []byte) (int, error) {
	if err := w.queue.put(piece{w.Writer, append([]byte(nil), p...), make(chan struct{})}); err != nil {
		return 0, err
	}
	return len(p), nil
}

// throughQueue sends output through a queue until the returned function is called. That returns the exit code
// of a run that ended with a result; it differs if the output was not taken within the time of the run. A
// person who answers at the terminal reads there, so then nothing is queued.
func (c *Console) throughQueue() (end func(r Result, limit time.Duration) int) {
	if c.Person != nil {
		return func(r Result, _ time.Duration) int { return r.ExitCode }
	}
	began, out, errs, width, q := time.Now(), c.Out, c.Err, c.Width, newQueue(cmp.Or(c.patience, patience))
	c.Out, c.Err = queuedStream{out, q}, queuedStream{errs, q}
	c.Width = func(w io.Writer) int {
		if w, ok := w.(queuedStream); ok && width != nil {
			return width(w.Writer)
		}
		return 0
	}
	return func(r Result, limit time.Duration) int {
		defer func() { c.Out, c.Err, c.Width = out, errs, width }()
		var deadline time.Time
		switch {
		case r.ExitCode == ExitCancelled || r.ExitCode == ExitMaxTime:
			deadline = time.Now()
		case limit > 0:
			deadline = began.Add(limit)
		}
		if !q.end(deadline) && r.ExitCode == ExitDone {
			return ExitMaxTime
		}
		return r.ExitCode
	}
}

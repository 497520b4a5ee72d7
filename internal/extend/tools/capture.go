package tools

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

const (
	maxOutput  = 30_000    // bytes of output the model is shown at a time
	keptHead   = 64 << 10  // bytes kept of the start of an output
	keptTail   = 128 << 10 // bytes kept of its end
	maxSpilled = 256 << 20 // bytes of an output that are stored
	spillChunk = 256 << 10 // bytes handed to the store at a time, about
)

// A capture takes the output of a process. It holds a bounded head and tail in
// memory; once there is more than both hold, all of it goes to a blob too, as
// clean text. Write is called by one goroutine, the rest is safe for all.
type capture struct {
	blobs tool.Blobs // nil means output beyond the memory limit is lost

	mu    sync.Mutex
	head  []byte
	ring  []byte // the last bytes after head, as a ring once it is full
	next  int    // where in ring the next byte goes
	total int64

	more     chan struct{} // closed by the next Write; nil means nothing waits for it
	watchers []*watcher

	spill *spill // of the writing goroutine until finish is called
}

// Write implements [io.Writer]. It never fails.
func (o *capture) Write(p []byte) (int, error) {
	o.mu.Lock()
	overflow := o.spill == nil && o.total+int64(len(p)) > keptHead+keptTail
	var before []byte
	if overflow && o.blobs != nil {
		before = append(append(before, o.head...), o.tail()...)
	}
	o.keep(p)
	o.notify(p)
	o.mu.Unlock()
	if overflow && o.blobs != nil {
		o.spill = startSpill(o.blobs)
		o.spill.write(before)
	}
	if o.spill != nil {
		o.spill.write(p)
	}
	return len(p), nil
}

// keep stores p in head and ring. O.mu is held.
func (o *capture) keep(p []byte) {
	o.total += int64(len(p))
	if room := keptHead - len(o.head); room > 0 {
		n := min(room, len(p))
		o.head = append(o.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > keptTail {
		p = p[len(p)-keptTail:]
	}
	if room := keptTail - len(o.ring); room > 0 {
		n := min(room, len(p))
		o.ring = append(o.ring, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(o.ring[o.next:], p)
		o.next = (o.next + n) % keptTail
		p = p[n:]
	}
}

// tail returns the ring in order. O.mu is held.
func (o *capture) tail() []byte {
	return append(bytes.Clone(o.ring[o.next:]), o.ring[:o.next]...)
}

// since returns the output from an offset on, as far as it is kept: all of it in head, or with a gap of dropped
// bytes before tail. It also returns the current end of the output.
func (o *capture) since(offset int64) (head, tail []byte, dropped, end int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept(offset)
}

// kept is since. O.mu is held.
func (o *capture) kept(offset int64) (head, tail []byte, dropped, end int64) {
	if offset < int64(len(o.head)) {
		head = bytes.Clone(o.head[offset:])
	}
	tail = o.tail()
	start := o.total - int64(len(tail))
	if from := max(offset, int64(len(o.head))); from > start {
		tail = tail[min(from-start, int64(len(tail))):]
		start = from
	}
	dropped = start - max(offset, int64(len(o.head)))
	if dropped <= 0 {
		return append(head, tail...), nil, 0, o.total
	}
	return head, tail, dropped, o.total
}

// text returns the shown form of the output from an offset on, whether that is the whole of it, and where it
// ends.
func (o *capture) text(offset int64) (shown string, whole bool, end int64) {
	head, tail, dropped, end := o.since(offset)
	said := clean(legible(head))
	if dropped > 0 {
		said = clean(legible(text.TrimEnd(head))) + gap(dropped) + clean(legible(text.TrimStart(tail)))
	}
	a, b, cut := text.CutMiddle(said, maxOutput)
	if cut == 0 {
		return said, dropped == 0, end
	}
	if dropped > 0 && !strings.Contains(a+b, gap(dropped)) {
		cut += int(dropped)
	}
	return a + gap(int64(cut)) + b, false, end
}

func gap(n int64) string { return fmt.Sprintf("\n[… %s left out …]\n", size(n)) }

// finish is called after the last Write. It returns the name of the blob that holds the output, empty if there
// is none, and whether that is all of it. Discard says that the output is no longer needed.
func (o *capture) finish(discard bool) (blob string, complete bool, err error) {
	if o.spill != nil {
		return o.spill.finish(discard)
	}
	_, whole, _ := o.text(0)
	if whole || o.blobs == nil || discard {
		return "", false, nil
	}
	all, _, _, _ := o.since(0)
	blob, err = o.blobs.Put(context.Background(), strings.NewReader(clean(all)))
	return blob, true, err
}

// spill streams clean output into a blob. One piece is stored while the next one is cleaned.
type spill struct {
	cleaner cleaner
	buf     []byte        // clean output that is not being written yet
	full    chan<- []byte // takes it; nil when the blob is as large as it may be
	free    <-chan []byte // gives a buffer back for each one taken
	left    int           // bytes that still may go to it
	unsaid  error         // why the store must drop it; set before full is closed
	done    chan struct{} // closed when the store is finished; name and err are set before
	name    string
	err     error
}

func startSpill(blobs tool.Blobs) *spill {
	r, w := io.Pipe()
	full, free := make(chan []byte), make(chan []byte, 2)
	free <- nil
	s := &spill{full: full, free: free, left: maxSpilled, done: make(chan struct{})}
	go func() {
		for buf := range full {
			_, _ = w.Write(buf) // an error is that of the store, which finish returns
			free <- buf[:0]
		}
		w.CloseWithError(s.unsaid)
	}()
	go func() {
		defer close(s.done)
		// Output may go on after the call that started it, so the context of
		// a call does not fit here. Finish ends the pipe.
		s.name, s.err = blobs.Put(context.Background(), r)
		r.CloseWithError(io.ErrClosedPipe) // a store that gives up must not hold the process
	}()
	return s
}

func (s *spill) write(p []byte) {
	if s.full == nil {
		return
	}
	more := p[:min(len(p), s.left)]
	s.left -= len(more)
	s.buf = s.cleaner.feed(s.buf, more)
	if len(more) < len(p) {
		s.end()
	} else if len(s.buf) >= spillChunk {
		s.flush()
	}
}

func (s *spill) flush() {
	s.full <- s.buf
	s.buf = <-s.free
}

// end has the store keep what came so far.
func (s *spill) end() {
	s.buf = s.cleaner.flush(s.buf)
	s.flush()
	close(s.full)
	s.full = nil
}

func (s *spill) finish(discard bool) (blob string, complete bool, err error) {
	complete = s.full != nil
	if complete {
		if discard {
			s.unsaid = context.Canceled
		}
		s.end()
	}
	<-s.done
	return s.name, complete, s.err
}

package keep

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
)

// Errors of an [Input]. The words continue the name of the program.
var (
	ErrClosed = errors.New("it is ending")
	ErrFull   = errors.New("it does not read what it is sent")
)

// An Input is the standard input of a program that is written while the program runs. Writing never waits for
// the program, so code that handles the program's output can respond to it. It is safe for concurrent use;
// [NewInput] creates one.
type Input struct {
	max    int
	mu     sync.Mutex
	more   *sync.Cond
	buf    []byte
	closed bool
}

// NewInput returns an Input that buffers at most limit bytes.
func NewInput(limit int) *Input {
	in := &Input{max: limit}
	in.more = sync.NewCond(&in.mu)
	return in
}

// Read implements [io.Reader]. It waits for data, or for Close.
func (in *Input) Read(p []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.buf) == 0 && !in.closed {
		in.more.Wait()
	}
	if len(in.buf) == 0 {
		return 0, io.EOF
	}
	n := copy(p, in.buf)
	if in.buf = in.buf[n:]; len(in.buf) == 0 {
		in.buf = nil // the next one may be small
	}
	return n, nil
}

// Write implements [io.Writer]. It accepts all of the data or, with [ErrClosed] or [ErrFull], none.
func (in *Input) Write(data []byte) (int, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		return 0, ErrClosed
	}
	if len(in.buf)+len(data) > in.max {
		return 0, ErrFull
	}
	in.buf = append(in.buf, data...)
	in.more.Broadcast()
	return len(data), nil
}

// Close implements [io.Closer]: no more data is accepted, and the input ends once all of it is read. It never
// fails, and may be called again.
func (in *Input) Close() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	in.more.Broadcast()
	return nil
}

// usualTail is the default limit of a Tail, in bytes.
const usualTail = 4 << 10

// A Tail keeps the last Limit bytes of the written data, 4 KiB if that is 0. It is safe for concurrent use.
type Tail struct {
	Limit int

	mu  sync.Mutex
	buf []byte
}

// Write implements [io.Writer]. It never fails.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	most := cmp.Or(t.Limit, usualTail)
	t.buf = append(t.buf, p[max(0, len(p)-most):]...)
	if n := len(t.buf) - most; n > 0 {
		t.buf = t.buf[:copy(t.buf, t.buf[n:])]
	}
	return len(p), nil
}

// Text returns the kept data. It may begin in the middle of a character.
func (t *Tail) Text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// A Head keeps the first Limit bytes of the written data and discards the rest, so that the writer is never
// blocked. It is safe for concurrent use.
type Head struct {
	Limit int

	mu   sync.Mutex
	buf  []byte
	more bool // data was discarded
}

// Write implements [io.Writer]. It never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := min(len(p), max(0, h.Limit-len(h.buf)))
	h.buf = append(h.buf, p[:n]...)
	h.more = h.more || n < len(p)
	return len(p), nil
}

// Bytes returns the kept data, and whether there was more.
func (h *Head) Bytes() (data []byte, more bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.buf, h.more
}

// Reading returns a reader of r that returns the error of ctx once ctx is done.
func Reading(ctx context.Context, r io.Reader) io.Reader { return reading{ctx, r} }

type reading struct {
	ctx context.Context
	r   io.Reader
}

// Read implements [io.Reader].
func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

package mcp

import (
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
)

// What is shown of the beginning and of the end of what a server said, in bytes. The
// error of a program is mostly on top of where it was, or at the end.
const (
	headShown = 500
	tailShown = 400
)

// ends keeps the beginning and the end of what is written to it. Safe for concurrent use.
type ends struct {
	mu   sync.Mutex
	head []byte
	tail keep.Tail
	all  int
}

// Write implements [io.Writer]. It never fails.
func (e *ends) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all += len(p)
	n := min(len(p), headShown-len(e.head))
	e.head = append(e.head, p[:n]...)
	_, err := e.tail.Write(p[n:])
	return len(p), err
}

// text is what is kept; what stands between is marked.
func (e *ends) text() (head, tail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	head, tail = string(e.head), e.tail.Text()
	if e.all > headShown+tailShown {
		return head + " ... ", tail[max(0, len(tail)-tailShown):]
	}
	return head, tail
}

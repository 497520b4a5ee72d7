package mcp

import (
	"sync"

	"github.com/inspan/inspan/internal/base/keep"
)

// Bytes shown of the beginning and the end of a server's output. A program's error is usually at the top of the
// stack trace, or at the end.
const (
	headShown = 500
	tailShown = 400
)

// ends keeps the beginning and the end of the data written to it. Safe for concurrent use.
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

// text returns the kept data and marks the gap.
func (e *ends) text() (head, tail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	head, tail = string(e.head), e.tail.Text()
	if e.all > headShown+tailShown {
		return head + " ... ", tail[max(0, len(tail)-tailShown):]
	}
	return head, tail
}

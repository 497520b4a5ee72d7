package custom

import (
	"bytes"
	"fmt"
	"strings"
	"sync"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	keptTail = 64 << 10 // bytes kept of the end of an output that is too long
	maxLine  = 4 << 10  // bytes of a line of progress
	maxTold  = 1000     // lines of progress of one call
	maxLast  = 300      // characters of the last line of an error
)

// output keeps the beginning of a program's output and, if it is too long, its end. It never blocks the
// program.
type output struct {
	most int    // bytes kept of the beginning
	full func() // called when there is more; may be nil

	mu    sync.Mutex
	head  []byte
	tail  []byte
	total int64
}

// Write implements [io.Writer]. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.total += int64(len(p))
	n := min(len(p), o.most-len(o.head))
	o.head = append(o.head, p[:n]...)
	if n < len(p) {
		o.tail = lastOf(o.tail, p[n:], keptTail)
		if o.full != nil {
			o.full()
		}
	}
	return len(p), nil
}

// lastOf appends to the last bytes of something. It may keep twice as many as requested, so as not to move them
// each time.
func lastOf(tail, p []byte, most int) []byte {
	p = p[max(0, len(p)-most):]
	if len(tail)+len(p) > 2*most {
		tail = append(tail[:0], tail[len(tail)+len(p)-most:]...)
	}
	return append(tail, p...)
}

// get returns the beginning, and how many bytes followed it.
func (o *output) get() (head []byte, more int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.head, o.total - int64(len(o.head))
}

// text returns the output for the model.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail[max(0, len(o.tail)-keptTail):]
	dropped := o.total - int64(len(o.head)+len(tail))
	if dropped == 0 {
		return text.Printed(string(o.head) + string(tail))
	}
	return text.Printed(string(o.head)) + fmt.Sprintf("\n[... %d bytes left out; they are not kept ...]\n", dropped) +
		text.Printed(string(text.TrimStart(tail)))
}

// lines passes on a program's standard error line by line, and keeps the end of it.
type lines struct {
	tell func(line string) // may be nil

	mu   sync.Mutex
	line []byte
	tail []byte
	told int
}

// Write implements [io.Writer]. It never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = lastOf(l.tail, p, maxErrors)
	for rest := p; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		l.line = append(l.line, line[:min(len(line), max(0, maxLine-len(l.line)))]...)
		if ended {
			l.flush()
		}
		rest = after
	}
	return len(p), nil
}

// flush passes on the line so far. The caller holds l.mu.
func (l *lines) flush() {
	text := text.Printed(string(l.line))
	l.line = l.line[:0]
	if text == "" || l.tell == nil || l.told > maxTold {
		return
	}
	if l.told++; l.told > maxTold {
		text = "[the rest is not shown]"
	}
	l.tell(text + "\n")
}

// text returns the end of the whole output.
func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flush()
	if cut := len(l.tail) - maxErrors; cut > 0 {
		return text.Printed(string(text.TrimStart(l.tail[cut:])))
	}
	return text.Printed(string(l.tail))
}

// last returns the last line of a text.
func last(s string) string {
	return text.Clip(strings.TrimSpace(s[strings.LastIndexByte(s, '\n')+1:]), maxLast)
}

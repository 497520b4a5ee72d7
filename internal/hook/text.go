package hook

import (
	"sync"

	"github.com/inspan/inspan/internal/text"
)

// maxOutput is how much of each output of a hook is taken.
const maxOutput = 64 << 10

// output takes what a hook writes. It keeps the first part and lets the rest go
// by, so that the hook is never held up.
type output struct {
	mu   sync.Mutex
	data []byte
	more bool // than was kept
}

// Write implements [io.Writer]. It never fails.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := min(len(p), maxOutput-len(o.data))
	o.data = append(o.data, p[:n]...)
	o.more = o.more || n < len(p)
	return len(p), nil
}

func (o *output) get() (data []byte, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data, o.more
}

// text is the output as text, with a word where it was cut.
func (o *output) text() string {
	data, more := o.get()
	out := text.Printed(string(data))
	if more {
		out += "\n[the rest is cut: it is more than 64 KiB]"
	}
	return out
}

// brief is text in one short line.
func brief(s string) string { return text.Clip(text.Flat(text.Printed(s)), 60) }

// first is the first line of a text.
func first(s string) string {
	return text.Clip(text.FirstLine(s), 300)
}

package hook

import (
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
)

// maxOutput is how much of each output of a hook is taken.
const maxOutput = 64 << 10

// saidBy is an output as text, with a word where it was cut.
func saidBy(o *keep.Head) string {
	data, more := o.Bytes()
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

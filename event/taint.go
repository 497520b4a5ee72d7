package event

import (
	"slices"

	"github.com/inspan/inspan/tool"
)

// Taint says of words that they come from a session which has seen text that
// nobody here has written, or what is the person's own beyond the workspace. Both
// go over to whoever hears them.
type Taint struct {
	Untrusted bool `json:"untrusted,omitempty"`
	Private   bool `json:"private,omitempty"`
}

// Outside reports whether a body tells of text that nobody here has written: a call
// that reaches out, or words and results that come from where such text was seen.
// From there on all that the session says may hold some of it.
func Outside(b Body) bool {
	switch b := b.(type) {
	case Judged:
		return slices.ContainsFunc(b.Effects, func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External })
	case Ended:
		return b.Untrusted
	case Said:
		return b.Untrusted
	case Steered:
		return b.Untrusted
	case Added:
		return b.Untrusted
	case Returned:
		return b.Untrusted
	case StepEnded:
		return b.Untrusted
	}
	return false
}

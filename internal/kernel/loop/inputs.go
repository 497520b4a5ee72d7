package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Key returns the key that the sending program has given an input; empty if none.
func Key(b event.Body) string {
	switch b := b.(type) {
	case event.Said:
		return b.Message
	case event.Steered:
		return b.Message
	case event.Decided:
		return b.Message
	case event.Cancelled:
		return b.Message
	}
	return ""
}

// Outside reports whether a body brings text by strangers: a call that reaches outside, or words and results
// from a session that has seen such text. From there on everything the session says may contain some of it.
func Outside(b event.Body) bool {
	switch b := b.(type) {
	case event.Judged:
		return slices.ContainsFunc(b.Effects, func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External })
	case event.Ended:
		return b.Untrusted
	case event.Said:
		return b.Untrusted
	case event.Steered:
		return b.Untrusted
	case event.Added:
		return b.Untrusted
	case event.Returned:
		return b.Untrusted
	case event.StepEnded:
		return b.Untrusted
	}
	return false
}

package event

import (
	"slices"

	"github.com/inspan/inspan/tool"
)

// Taint says that words come from a session that has seen text by strangers, or private data from beyond the
// workspace. Both spread to every session that reads the words.
type Taint struct {
	Untrusted bool `json:"untrusted,omitempty"` // it may repeat text by strangers
	Private   bool `json:"private,omitempty"`   // it may repeat private data from beyond the workspace
}

// Outside reports whether a body brings text by strangers: a call that reaches outside, or words and results
// from a session that has seen such text. From there on everything the session says may contain some of it.
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

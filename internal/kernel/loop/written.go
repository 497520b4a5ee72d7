package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// mostWritten is how many tools written by its model a session may have.
const mostWritten = 32

// Written is a tool that the model has written.
type Written struct {
	tool.Proposal
	Seq uint64 `json:"seq"` // of the event that proposed it
}

// wrote records a tool that a call proposed. A tool with the same name is replaced, so the list of tools only
// grows at its end.
func (s *State) wrote(b event.Ended, seq uint64) {
	if b.Proposal == nil || b.Outcome != event.OutcomeOK {
		return
	}
	now, list := Written{*b.Proposal, seq}, slices.Clone(s.Written)
	if i := slices.IndexFunc(list, func(w Written) bool { return w.Name == now.Name }); i >= 0 {
		list[i] = now
	} else if len(list) < mostWritten {
		list = append(list, now)
	}
	s.Written = list
}

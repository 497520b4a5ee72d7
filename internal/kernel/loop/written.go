package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// mostWritten is how many tools of its model a session has; one more is not taken.
const mostWritten = 32

// Written is a tool that the model has written.
type Written struct {
	tool.Proposal
	Seq uint64 `json:"seq"` // of the event that proposed it
}

// wrote takes a tool that a call has proposed. One with a name that is there takes the place of the
// other, so that the list of tools only ever grows at its end.
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

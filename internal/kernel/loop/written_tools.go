package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// maxWrittenTools bounds the tools that the model of a session may write.
const maxWrittenTools = 32

// Written is a tool that the model has written.
type Written struct {
	tool.Proposal
	Seq uint64 `json:"seq"` // of the event that proposed it
}

// recordProposal records a tool that a call proposed. It replaces a tool of the same name in its position, so the list
// only grows at its end.
func (s *State) recordProposal(b event.Ended, seq uint64) {
	if b.Proposal == nil || b.Outcome != event.OutcomeOK {
		return
	}
	written, list := Written{*b.Proposal, seq}, slices.Clone(s.WrittenTools)
	if i := slices.IndexFunc(list, func(w Written) bool { return w.Name == written.Name }); i >= 0 {
		list[i] = written
	} else if len(list) < maxWrittenTools {
		list = append(list, written)
	}
	s.WrittenTools = list
}

package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
)

// mostLasting is how many lasting results a session keeps at once; the oldest is dropped first.
const mostLasting = 12

// Lasting is a result that the model works by for longer, such as instructions that it asked for.
type Lasting struct {
	Name string `json:"name"`
	Call string `json:"call"`
	Text string `json:"text"`
}

// lasts keeps the result of a call that lasts, replacing an earlier one with its name.
func (s *State) lasts(b event.Ended) {
	if b.Lasting == "" || b.Outcome != event.OutcomeOK || b.Again {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(s.Lasting), func(l Lasting) bool { return l.Name == b.Lasting })
	kept = append(kept, Lasting{Name: b.Lasting, Call: b.Call, Text: b.Parts.Text()})
	s.Lasting = kept[max(0, len(kept)-mostLasting):]
}

func (s *State) isLasting(call string) bool {
	return slices.ContainsFunc(s.Lasting, func(l Lasting) bool { return l.Call == call })
}

package loop

import (
	"slices"

	"github.com/inspan/inspan/event"
)

// maxLasting bounds the lasting results of a session. The oldest is dropped first.
const maxLasting = 12

// Lasting is a result that is never pruned and survives compaction, such as instructions that the model asked for.
type Lasting struct {
	Name string `json:"name"`
	Call string `json:"call"`
	Text string `json:"text"`
}

// keepLasting stores a result that was marked as lasting. It replaces an earlier one of the same name.
func (s *State) keepLasting(b event.Ended) {
	if b.Lasting == "" || b.Outcome != event.OutcomeOK || b.Again {
		return
	}
	kept := slices.DeleteFunc(slices.Clone(s.Lasting), func(l Lasting) bool { return l.Name == b.Lasting })
	kept = append(kept, Lasting{Name: b.Lasting, Call: b.Call, Text: b.Parts.Text()})
	s.Lasting = kept[max(0, len(kept)-maxLasting):]
}

func (s *State) isLasting(call string) bool {
	return slices.ContainsFunc(s.Lasting, func(l Lasting) bool { return l.Call == call })
}

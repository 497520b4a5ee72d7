package loop

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Results leave more in the state than their text: these parts of them outlive the conversation.

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

// storeValues stores a call's values for later calls; null deletes a value. It copies the map, which a copied state
// may share.
func (s *State) storeValues(values map[string]json.RawMessage) {
	if len(values) == 0 {
		return
	}
	store := maps.Clone(s.Store)
	if store == nil {
		store = map[string]json.RawMessage{}
	}
	for name, value := range values {
		if store[name] = value; string(value) == "null" {
			delete(store, name)
		}
	}
	s.Store = store
}

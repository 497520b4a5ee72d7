package loop

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// minReference is the minimum size, in bytes, of a repeated result that is replaced by a reference.
const minReference = 1000

// messageIndex saves searching the whole conversation each turn. Each message is indexed once. Code that replaces
// messages, the system prompt or the tools must reset it.
type messageIndex struct {
	messages   int                     // how many messages are indexed, from the first
	tokens     int                     // their estimated tokens
	fixed      int                     // those of the system prompt and the tools; 0 if they were not counted yet
	calls      map[string]llm.Call     // by id
	results    map[string][]llm.Result // by callKey: results that a reference may replace
	lastDigest partialDigest
}

// update indexes new messages.
func (v *messageIndex) update(messages []llm.Message) {
	if v.calls == nil || v.messages > len(messages) {
		*v = messageIndex{fixed: v.fixed, calls: map[string]llm.Call{}, results: map[string][]llm.Result{}}
	}
	for _, m := range messages[v.messages:] {
		v.tokens += m.Tokens()
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llm.Call:
				v.calls[p.ID] = p
			case llm.Result:
				if !p.Error && len(p.Parts.Text()) >= minReference {
					key := callKey(v.calls[p.CallID])
					v.results[key] = append(v.results[key], p)
				}
			}
		}
	}
	v.messages = len(messages)
}

// callKey is equal for calls of the same tool with the same arguments.
func callKey(c llm.Call) string { return c.Name + "\x00" + string(c.Args) }

// HasCall reports whether the conversation has a call with this id.
func (s *State) HasCall(id string) bool {
	_, ok := s.index.calls[id]
	return ok
}

// ReferToEarlier replaces a result by a reference if the model can still see exactly this result of an identical
// call. A result that differs, or that was compacted or pruned, is sent in full.
func (s *State) ReferToEarlier(end event.Ended) event.Ended {
	text := end.Parts.Text()
	if end.Outcome != event.OutcomeOK || len(text) < minReference || end.Parts.Images() > 0 {
		return end
	}
	earlier := s.earlierSame(end)
	if earlier == "" {
		return end
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	end.Again = true
	end.Parts = llm.Say(fmt.Sprintf("%s%q (%d lines, from %.80q). It holds.", unchangedPrefix, earlier, strings.Count(text, "\n")+1, first))
	return end
}

// earlierSame returns the id of an identical call with the same result; empty if there is none.
func (s *State) earlierSame(end event.Ended) string {
	this, ok := s.index.calls[end.Call]
	if !ok {
		return ""
	}
	for _, r := range s.index.results[callKey(this)] {
		if r.CallID != end.Call && reflect.DeepEqual(r.Parts, end.Parts) {
			return r.CallID
		}
	}
	return ""
}

package loop

import (
	"reflect"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// leastAgain is the smallest result, in bytes, that is replaced by a reference when repeated.
const leastAgain = 1000

// sight indexes the conversation, so that each turn need not search it: its approximate tokens, its calls, and
// the results that a later call may repeat. Each message is indexed once, when it is folded in. Replacing
// messages, or anything before them, resets it.
type sight struct {
	messages int // how many messages were indexed, from the first on
	tokens   int // their tokens by our estimate
	calls    map[string]llm.Call
	results  map[string][]llm.Result // by call: results that are long enough and not errors
	digest   digested                // the last digest
}

// look indexes the messages that are new.
func (v *sight) look(messages []llm.Message) {
	if v.calls == nil || v.messages > len(messages) {
		*v = sight{calls: map[string]llm.Call{}, results: map[string][]llm.Result{}}
	}
	for _, m := range messages[v.messages:] {
		v.tokens += m.Tokens()
		for _, part := range m.Parts {
			switch p := part.(type) {
			case llm.Call:
				v.calls[p.ID] = p
			case llm.Result:
				if !p.Error && len(p.Parts.Text()) >= leastAgain {
					key := called(v.calls[p.CallID])
					v.results[key] = append(v.results[key], p)
				}
			}
		}
	}
	v.messages = len(messages)
}

// called is equal for calls of the same tool with the same arguments.
func called(c llm.Call) string { return c.Name + "\x00" + string(c.Args) }

// Called reports whether a call of the conversation has this id.
func (s *State) Called(id string) bool {
	_, ok := s.sight.calls[id]
	return ok
}

// Again replaces a result by a reference if the very same call has brought it before and the model can still
// see that. The conversation is the cache: if a write changes the result, it is a different one; results that
// were compacted or cut short are given again.
func (s *State) Again(end event.Ended) event.Ended {
	text := end.Parts.Text()
	if end.Outcome != event.OutcomeOK || len(text) < leastAgain || end.Parts.Images() > 0 {
		return end
	}
	before := s.same(end)
	if before == "" {
		return end
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	end.Again = true
	end.Parts = llm.Say(standsAbove(before, strings.Count(text, "\n")+1, first))
	return end
}

// same returns the id of the same call with the same result; empty if there is none.
func (s *State) same(end event.Ended) string {
	this, ok := s.sight.calls[end.Call]
	if !ok {
		return ""
	}
	for _, r := range s.sight.results[called(this)] {
		if r.CallID != end.Call && reflect.DeepEqual(r.Parts, end.Parts) {
			return r.CallID
		}
	}
	return ""
}

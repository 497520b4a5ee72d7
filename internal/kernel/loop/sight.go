package loop

import (
	"reflect"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// leastAgain is how many bytes a result has at least that is not given twice.
const leastAgain = 1000

// sight knows of the conversation what would else have to be looked for at each turn: about
// how many tokens it has, its calls, and the results that a later call may bring again. Each
// message is looked at once, when it is folded in. Whatever replaces messages, or what stands
// before them, makes it void.
type sight struct {
	messages int // that were looked at, from the first on
	tokens   int // of those, by our own estimate
	calls    map[string]llm.Call
	results  map[string][]llm.Result // by what was called: those that are no errors, and long enough
	digest   digested                // as it was asked for last
}

// look takes in the messages that it has not seen.
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

// called is the same for calls of the same tool with the same arguments.
func called(c llm.Call) string { return c.Name + "\x00" + string(c.Args) }

// Called reports whether a call of the conversation has an id.
func (s *State) Called(id string) bool {
	_, ok := s.sight.calls[id]
	return ok
}

// Again makes a line of a result that the very same call has brought before, if
// the model still sees that. The conversation is the cache: a write that changes
// what the call brings makes the result another one, and what was compacted or
// cut short is given anew.
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

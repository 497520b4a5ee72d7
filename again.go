package inspan

import (
	"reflect"
	"strings"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
)

// leastAgain is how many bytes a result has at least that is not given twice.
const leastAgain = 1000

// view is what the model sees of calls while those of one reply run. It is looked
// through once, when it is first needed. Safe for concurrent use.
type view struct {
	messages []llm.Message

	once    sync.Once
	calls   map[string]llm.Call
	results map[string][]llm.Result // that are no errors, by what was called
}

func (v *view) look() {
	v.calls, v.results = map[string]llm.Call{}, map[string][]llm.Result{}
	for _, m := range v.messages {
		for _, c := range m.Parts.Calls() {
			v.calls[c.ID] = c
		}
	}
	for _, m := range v.messages {
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok && !r.Error {
				key := called(v.calls[r.CallID])
				v.results[key] = append(v.results[key], r)
			}
		}
	}
}

// called is the same for calls of the same tool with the same arguments.
func called(c llm.Call) string { return c.Name + "\x00" + string(c.Args) }

// again makes a line of a result that the very same call has brought before, if
// the model still sees that. The conversation is the cache: a write that changes
// what the call brings makes the result another one, and what was compacted or
// cut short is given anew.
func (v *view) again(end event.Ended) event.Ended {
	text := end.Parts.Text()
	if end.Outcome != event.OutcomeOK || len(text) < leastAgain || end.Parts.Images() > 0 {
		return end
	}
	before := v.same(end)
	if before == "" {
		return end
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	end.Again = true
	end.Parts = llm.Say(loop.Unchanged(before, strings.Count(text, "\n")+1, first))
	return end
}

// same returns the id of the same call with the same result; empty if there is none.
func (v *view) same(end event.Ended) string {
	v.once.Do(v.look)
	this, ok := v.calls[end.Call]
	if !ok {
		return ""
	}
	for _, r := range v.results[called(this)] {
		if r.CallID != end.Call && reflect.DeepEqual(r.Parts, end.Parts) {
			return r.CallID
		}
	}
	return ""
}

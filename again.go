package inspan

import (
	"bytes"
	"reflect"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
)

// leastAgain is how many bytes a result has at least that is not given twice.
const leastAgain = 1000

// again makes a line of a result that the very same call has brought before, if
// the model still sees that. The conversation is the cache: a write that changes
// what the call brings makes the result another one, and what was compacted or
// cut short is given anew. It may run beside the driver.
func (d *driver) again(end event.Ended) event.Ended {
	text := end.Parts.Text()
	if end.Outcome != event.OutcomeOK || len(text) < leastAgain || end.Parts.Images() > 0 {
		return end
	}
	d.mu.Lock()
	messages := d.state.Messages // only ever appended to, or replaced
	d.mu.Unlock()
	before := inView(messages, end)
	if before == "" {
		return end
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	end.Again = true
	end.Parts = llm.Say(loop.Unchanged(before, strings.Count(text, "\n")+1, first))
	return end
}

// inView returns the id of the same call with the same result that messages hold;
// empty if there is none.
func inView(messages []llm.Message, end event.Ended) string {
	calls := map[string]llm.Call{}
	for _, m := range messages {
		for _, c := range m.Parts.Calls() {
			calls[c.ID] = c
		}
	}
	this, ok := calls[end.Call]
	if !ok {
		return ""
	}
	for _, m := range messages {
		for _, part := range m.Parts {
			r, ok := part.(llm.Result)
			if !ok || r.Error || r.CallID == end.Call {
				continue
			}
			if c := calls[r.CallID]; c.Name == this.Name && bytes.Equal(c.Args, this.Args) && reflect.DeepEqual(r.Parts, end.Parts) {
				return r.CallID
			}
		}
	}
	return ""
}

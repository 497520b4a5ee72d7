package inspan

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/inspan/inspan/event"
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
	if !inView(messages, end) {
		return end
	}
	text = strings.TrimSpace(text)
	first, _, _ := strings.Cut(text, "\n")
	end.Again = true
	end.Parts = llm.Say(fmt.Sprintf("Unchanged: this very call brought the same before, to the letter, and that result still stands above (%s, from %.80q). It holds.",
		counted(strings.Count(text, "\n")+1, "line", "lines"), first))
	return end
}

// inView reports whether messages hold the same call with the same result.
func inView(messages []llm.Message, end event.Ended) bool {
	calls := map[string]llm.Call{}
	for _, m := range messages {
		for _, c := range m.Parts.Calls() {
			calls[c.ID] = c
		}
	}
	this, ok := calls[end.Call]
	if !ok {
		return false
	}
	for _, m := range messages {
		for _, part := range m.Parts {
			r, ok := part.(llm.Result)
			if !ok || r.Error || r.CallID == end.Call {
				continue
			}
			if c := calls[r.CallID]; c.Name == this.Name && bytes.Equal(c.Args, this.Args) && reflect.DeepEqual(r.Parts, end.Parts) {
				return true
			}
		}
	}
	return false
}

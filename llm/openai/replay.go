package openai

import (
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// The Opaque of reasoning from the Responses API is a list of what has to go
// back: reasoning items as they came, and a mark for each item that came with
// them. Where a model names phases without having thought, the list has marks
// only, and the reasoning has no text.

// mark is what a later request needs of an item beside its content.
type mark struct {
	Type   string `json:"type"`              // "message" or "function_call"
	ID     string `json:"id,omitempty"`      // only beside a reasoning item
	Phase  string `json:"phase,omitempty"`   // of a message: "commentary" or "final_answer"
	CallID string `json:"call_id,omitempty"` // of a function_call: what the server called it
}

// recall takes an Opaque apart. What another wire wrote under the same route
// gives nothing.
func recall(opaque json.RawMessage) (thoughts []json.RawMessage, marks []mark) {
	var items []json.RawMessage
	if json.Unmarshal(opaque, &items) != nil {
		return nil, nil
	}
	for _, item := range items {
		var m mark
		switch {
		case json.Unmarshal(item, &m) != nil:
		case m.Type == "reasoning":
			thoughts = append(thoughts, item)
		default:
			marks = append(marks, m)
		}
	}
	return thoughts, marks
}

// nextMessage takes the first mark of a message out of marks, which stay those
// behind it and those of calls.
func nextMessage(marks []mark) (mark, []mark) {
	i := slices.IndexFunc(marks, func(m mark) bool { return m.Type == "message" })
	if i < 0 {
		return mark{}, marks
	}
	return marks[i], append(marks[:i:i], marks[i+1:]...)
}

// assembly builds the parts of a reply out of its items.
type assembly struct {
	route string
	parts llm.Parts
	at    int               // index of the reasoning that keeps the marks; -1: none yet
	kept  []json.RawMessage // its Opaque so far
	ids   bool              // a reasoning item goes back, so that ids must
	need  bool              // something of kept has to go back
}

func newAssembly(route string) assembly { return assembly{route: route, at: -1} }

// thought begins a reasoning part. item is what goes back; nil if it can't.
func (a *assembly) thought(text string, item json.RawMessage) {
	a.seal()
	a.at = len(a.parts)
	a.parts = append(a.parts, llm.Reasoning{Text: text, Route: a.route})
	if item != nil {
		a.kept, a.ids, a.need = []json.RawMessage{item}, true, true
	}
}

func (a *assembly) message(text, id, phase string) {
	if !wire.Visible(text) { // it will not go back
		if text != "" {
			a.parts = append(a.parts, llm.Text{Text: text})
		}
		return
	}
	if a.at < 0 && phase != "" {
		a.thought("", nil)
	}
	a.keep(mark{Type: "message", ID: id, Phase: phase})
	a.parts = append(a.parts, llm.Text{Text: text})
}

func (a *assembly) call(c llm.Call, id string) {
	a.keep(mark{Type: "function_call", ID: id, CallID: c.ID})
	a.parts = append(a.parts, c)
}

// keep adds a mark. One that says nothing holds the place of its message.
func (a *assembly) keep(m mark) {
	if !a.ids {
		m.ID = ""
	}
	if a.at < 0 || m.ID == "" && m.Type != "message" {
		return
	}
	a.need = a.need || m.Phase != ""
	b, _ := json.Marshal(m) // strings always marshal
	a.kept = append(a.kept, b)
}

// seal ends the reasoning part that is open.
func (a *assembly) seal() {
	if a.at >= 0 {
		r, _ := a.parts[a.at].(llm.Reasoning)
		if a.need {
			r.Opaque, _ = json.Marshal(a.kept) // of valid JSON
		}
		a.parts[a.at] = r
	}
	a.at, a.kept, a.ids, a.need = -1, nil, false, false
}

// done returns the parts.
func (a *assembly) done() llm.Parts {
	a.seal()
	return slices.DeleteFunc(a.parts, func(p llm.Part) bool {
		r, ok := p.(llm.Reasoning)
		return ok && r.Text == "" && r.Opaque == nil
	})
}

package openai

import (
	"encoding/json"
	"slices"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// The Opaque of reasoning from the Responses API is a list of the items to send back: reasoning items unchanged,
// and a mark for each item that came with them. If a model names phases without having thought, the list has marks
// only, and the reasoning has no text.

// mark holds the properties of an item, other than its content, that a later request needs.
type mark struct {
	Type   string `json:"type"`              // "message" or "function_call"
	ID     string `json:"id,omitempty"`      // only with a reasoning item
	Phase  string `json:"phase,omitempty"`   // of a message: "commentary" or "final_answer"
	CallID string `json:"call_id,omitempty"` // of a function_call: the server's own id
}

// recall splits an Opaque. An Opaque of another wire under the same route gives nothing.
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

// nextMessage removes the first mark of a message from marks; those after it and those of calls stay.
func nextMessage(marks []mark) (mark, []mark) {
	i := slices.IndexFunc(marks, func(m mark) bool { return m.Type == "message" })
	if i < 0 {
		return mark{}, marks
	}
	return marks[i], append(marks[:i:i], marks[i+1:]...)
}

// assembly builds the parts of a reply from its items.
type assembly struct {
	route string
	parts llm.Parts
	at    int               // index of the reasoning that keeps the marks; -1: none yet
	kept  []json.RawMessage // its Opaque so far
	ids   bool              // a reasoning item goes back, so the ids must too
	need  bool              // something in kept must go back
}

func newAssembly(route string) assembly { return assembly{route: route, at: -1} }

// thought begins a reasoning part. item is the form to send back; nil if there is none.
func (a *assembly) thought(text string, item json.RawMessage) {
	a.seal()
	a.at = len(a.parts)
	a.parts = append(a.parts, llm.Reasoning{Text: text, Route: a.route})
	if item != nil {
		a.kept, a.ids, a.need = []json.RawMessage{item}, true, true
	}
}

func (a *assembly) message(text, id, phase string) {
	if !wire.Visible(text) { // it won't go back
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

// keep adds a mark. An empty one holds the place of its message.
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

// seal ends the open reasoning part.
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

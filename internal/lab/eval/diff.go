package eval

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/store"
)

// Difference compares two sessions, by their events and not by times and ids.
type Difference struct {
	Same    int      `json:"same"` // deeds with which both begin
	Parting *Parting `json:"parting,omitempty"`
}

// Parting is the first deed in which two sessions differ: a call with its arguments, how a call ended, a
// question's answer, a message to the model, an end. Models word the same thing differently, so their words
// count only if all deeds are the same.
type Parting struct {
	Base      Deed `json:"base"`
	Candidate Deed `json:"candidate"`
}

// Deed is one action of a session. Seq is 0 if the session has ended before.
type Deed struct {
	Seq  uint64 `json:"seq"`
	Kind string `json:"kind"` // of the event
	Text string `json:"text"` // in one line
	full string
}

// Diff compares two sessions of a store.
func Diff(ctx context.Context, sessions store.Store, base, candidate string) (Difference, error) {
	a, err := deeds(ctx, sessions, base)
	if err != nil {
		return Difference{}, err
	}
	b, err := deeds(ctx, sessions, candidate)
	if err != nil {
		return Difference{}, err
	}
	if d := part(a.done, b.done); d.Parting != nil {
		return d, nil
	}
	d := part(a.words, b.words)
	d.Same = len(a.done)
	return d, nil
}

func part(a, b []Deed) Difference {
	n := 0
	for n < len(a) && n < len(b) && a[n].Kind == b[n].Kind && a[n].full == b[n].full {
		n++
	}
	d := Difference{Same: n}
	if n < len(a) || n < len(b) {
		d.Parting = &Parting{nth(a, n), nth(b, n)}
	}
	return d
}

func nth(deeds []Deed, n int) Deed {
	if n < len(deeds) {
		return deeds[n]
	}
	return Deed{Text: "(the session has ended)"}
}

// history is a session's deeds, and the words of its model and tools.
type history struct {
	done, words []Deed
	fold        transcript.Fold
}

func deeds(ctx context.Context, sessions store.Store, id string) (*history, error) {
	h := &history{}
	for e, err := range store.Events(ctx, sessions, id) {
		if err != nil {
			return nil, fmt.Errorf("read session %s: %w", id, err)
		}
		for _, item := range h.fold.Apply(e) {
			h.add(e, item)
		}
	}
	return h, nil
}

// add adds what an event did to an item. The setup of a session is not a deed: it is the subject of the comparison.
func (h *history) add(e event.Event, item transcript.Item) {
	switch i := item.(type) {
	case *transcript.Said:
		if i.Seq == e.Seq { // else it was heard, and is there already
			h.do(e, i.Parts.Text())
		}
	case *transcript.Reply:
		if i.State == transcript.Whole {
			h.word(e, i.Parts.Text())
			for _, call := range i.Parts.Calls() {
				h.do(e, call.Name+" "+compacted(call.Args))
			}
		}
	case *transcript.Question:
		if i.Answer != nil {
			name := ""
			if i.Call != nil {
				name = i.Call.Call.Name
			}
			h.do(e, fmt.Sprintf("%s: allow %t %s%s", name, i.Answer.Allow, i.Answer.Reason, i.Answer.Answer))
		}
	case *transcript.Call:
		if i.State != transcript.Over {
			break
		}
		exit := ""
		if i.Ended.Exit != nil {
			exit = fmt.Sprintf(", exit code %d", *i.Ended.Exit)
		}
		h.do(e, fmt.Sprintf("%s: %s%s", i.Call.Name, i.Ended.Outcome, exit))
		h.word(e, i.Ended.Parts.Text())
	case *transcript.Stop:
		h.do(e, strings.TrimSpace(string(i.Stopped.Reason)+" "+string(i.Stopped.Cause)))
	case *transcript.Note:
		switch b := i.Of.(type) {
		case event.Cancelled:
			h.do(e, string(b.Limit)+" "+b.Reason)
		case event.Compacted, event.Rewound:
			h.do(e, b.Kind())
		}
	}
}

// compacted returns JSON with ordered keys and without space. Text that is not JSON stays as it is.
func compacted(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

func (h *history) do(e event.Event, what string)   { h.done = append(h.done, h.deed(e, what)) }
func (h *history) word(e event.Event, what string) { h.words = append(h.words, h.deed(e, what)) }

// shown is the shown length of a deed.
const shown = 200

func (h *history) deed(e event.Event, what string) Deed {
	if root := h.fold.Session.Root; root != "" { // each trial has its own
		what = strings.ReplaceAll(what, root, ".")
	}
	return Deed{Seq: e.Seq, Kind: e.Body.Kind(), Text: text.Short(text.Line(what), shown), full: what}
}

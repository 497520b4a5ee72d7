package tui

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
)

// model folds what a model does.
func (v *view) model(e event.Event) {
	switch b := e.Body.(type) {
	case event.Asked:
		v.start(e.Time) // after a restart, or for what was queued
		v.flushSteered()
	case event.Delta:
		v.delta(b)
	case event.Replied:
		v.replied(b)
	case event.Failed:
		v.endReply(nil, true)
		if why, waits := v.wait(e); waits {
			v.warn(why)
		}
	case event.Routed:
		v.routed(b)
	case event.Healed:
		v.told(b)
	}
}

func (v *view) delta(b event.Delta) {
	if b.Void {
		v.endReply(nil, true)
	}
	if b.Reasoning != "" {
		v.thought += b.Reasoning
		v.thought = v.thought[max(0, len(v.thought)-2000):]
	}
	if b.Call != nil {
		if b.Call.Name != "" {
			v.draft = draft{name: b.Call.Name}
		}
		v.draft.bytes += len(b.Call.Args)
	}
	if b.Text == "" {
		return
	}
	v.thought = ""
	if v.reply == nil {
		v.reply = &block{kind: replyBlock, open: true}
		v.add(v.reply)
	}
	v.reply.written.WriteString(b.Text)
}

// endReply closes the reply that is being written, with what it came to if that
// is known. A void one does not count.
func (v *view) endReply(whole *string, void bool) {
	v.thought, v.draft = "", draft{}
	if v.reply == nil {
		return
	}
	v.reply.open, v.reply.void = false, void
	v.reply.text = v.reply.written.String()
	if whole != nil {
		v.reply.text = *whole
	}
	v.reply = nil
}

func (v *view) replied(b event.Replied) {
	text := b.Parts.Text()
	if v.reply == nil && strings.TrimSpace(text) != "" {
		v.add(&block{kind: replyBlock, text: text})
	}
	v.endReply(&text, false)
	if strings.TrimSpace(text) != "" {
		v.last = text
	}
	for _, c := range b.Parts.Calls() {
		v.calls[c.ID] = c
	}
	v.turns, v.runTurns = v.turns+1, v.runTurns+1
	v.cost, v.runCost = v.cost+b.Cost, v.runCost+b.Cost
	v.unpriced = v.unpriced || b.Unpriced
	v.used, v.prompt = v.used.Add(b.Usage), b.Usage
}

func (v *view) routed(b event.Routed) {
	v.endReply(nil, true)
	switch {
	case b.From != "":
		v.told(b)
	case b.Route+b.Rule != v.answeredBy:
		v.answeredBy = b.Route + b.Rule
		v.told(b)
	}
}

// call folds what becomes of a call.
func (v *view) call(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		v.judged[b.Call] = b
		v.cost += b.Cost
		v.calls[b.Call] = words.Judged(v.calls[b.Call], b)
	case event.Waiting:
		v.waiting = append(v.waiting, b)
	case event.Decided:
		v.decided(b)
	case event.Started:
		v.unwait(b.Call)
		v.running = slices.DeleteFunc(v.running, func(r *running) bool { return r.call.ID == b.Call })
		v.running = append(v.running, &running{call: v.calls[b.Call], since: e.Time})
	case event.Ended:
		v.cost += b.Cost
		v.endedCall(b)
	}
}

// children folds what becomes of sessions that work for this one.
func (v *view) children(e event.Event) {
	switch b := e.Body.(type) {
	case event.Spawned:
		v.leave(b.Child)
		v.crew = append(v.crew, &child{b, e.Time})
		if b.Background {
			v.told(b)
		}
	case event.Raised:
		v.raised = slices.DeleteFunc(v.raised, func(r inspan.Question) bool { return r.ID == b.ID && r.Of != b.Of })
		if !slices.ContainsFunc(v.raised, func(r inspan.Question) bool { return r.ID == b.ID }) {
			v.raised = append(v.raised, inspan.Question{Raised: b, Seq: e.Seq})
		}
	case event.Returned:
		if c := v.leave(b.Child); c != nil && c.Background {
			v.told(b)
		}
		v.cost += b.Cost
		v.unpriced = v.unpriced || b.Unpriced
		v.used = v.used.Add(b.Usage)
	}
}

// leave takes a child off, with what it has asked.
func (v *view) leave(id string) (was *child) {
	v.raised = slices.DeleteFunc(v.raised, func(r inspan.Question) bool { return r.Child == id })
	v.crew = slices.DeleteFunc(v.crew, func(c *child) bool {
		if c.Child == id {
			was = c
		}
		return c.Child == id
	})
	return was
}

func (v *view) decided(b event.Decided) {
	v.raised = slices.DeleteFunc(v.raised, func(r inspan.Question) bool {
		return b.On(r.ID, r.Seq)
	})
	if v.unwait(b.Call) && b.Allow && (b.Scope != event.ScopeOnce || b.Answer != "") {
		v.note(allowed(b, v.calls[b.Call].Name))
	}
}

func (v *view) unwait(call string) (waited bool) {
	n := len(v.waiting)
	v.waiting = slices.DeleteFunc(v.waiting, func(w event.Waiting) bool { return w.Call == call })
	return len(v.waiting) < n
}

func (v *view) endedCall(b event.Ended) {
	v.unwait(b.Call)
	v.raised = slices.DeleteFunc(v.raised, func(r inspan.Question) bool { return r.Child == "" && r.Call == b.Call })
	v.running = slices.DeleteFunc(v.running, func(r *running) bool { return r.call.ID == b.Call })
	if b.Todo != nil {
		v.todo = b.Todo
	}
	for _, f := range b.Files {
		if f.Diff != "" {
			v.changes = append(v.changes, change{f.Path, f.Diff})
		}
	}
	v.done++
	if c := v.calls[b.Call]; b.Outcome == event.OutcomeOK && background(c) {
		v.jobs = append(v.jobs, words.Subject(c))
	}
	v.ended = &block{kind: callBlock, call: v.calls[b.Call], end: b, bad: b.Outcome != event.OutcomeOK}
	v.add(v.ended)
	delete(v.calls, b.Call)
	delete(v.judged, b.Call)
}

// background reports whether a call only starts something.
func background(c llm.Call) bool {
	var args struct {
		Background bool `json:"background"`
	}
	return json.Unmarshal(c.Args, &args) == nil && args.Background
}

// raising is the question of a child to decide on next, and whether there is one.
func (v *view) raising(decided []event.Body) (inspan.Pending, bool) {
	i := slices.IndexFunc(v.raised, func(r inspan.Question) bool { return !decides(decided, r.ID) })
	if i < 0 {
		return inspan.Pending{}, false
	}
	return inspan.Asked(v.raised[i]), true
}

// decides reports whether a call is decided on.
func decides(decided []event.Body, call string) bool {
	return slices.ContainsFunc(decided, func(b event.Body) bool { d, ok := b.(event.Decided); return ok && d.Call == call })
}

// asking is the call to decide on next, behind those that are decided on already,
// and whether there is one.
func (v *view) asking(decided []event.Body) (inspan.Pending, bool) {
	i := slices.IndexFunc(v.waiting, func(w event.Waiting) bool { return !decides(decided, w.Call) })
	if i < 0 {
		return inspan.Pending{}, false
	}
	w := v.waiting[i]
	j := v.judged[w.Call]
	c := v.calls[w.Call]
	c.ID, c.Name = w.Call, cmp.Or(c.Name, "a call")
	return inspan.Pending{Call: c, Effects: j.Effects, Reason: j.Reason, Preview: w.Preview, Rules: w.Rules, Until: w.Until}, true
}

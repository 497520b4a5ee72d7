package inspan

import (
	"cmp"
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// reconsider answers the calls that wait and that run unasked in the mode which somebody has just
// switched to. All others go on waiting: those that the mode would ask about, or deny, and those
// that would do something else in it than what was asked about.
func reconsider(ctx context.Context, d *driver) error {
	watched, done := d.interruptible(ctx)
	defer done()
	var out []event.Body
	for _, c := range d.state.Waiting() {
		out = append(out, lets(watched, d, c)...)
	}
	if err := ctx.Err(); err != nil || len(out) == 0 {
		return err
	}
	return d.record(ctx, out...)
}

// lets judges a call that waits again, and returns the decision on it if it may run unasked.
func lets(ctx context.Context, d *driver, c loop.Call) (out []event.Body) {
	name := cmp.Or(c.Tool, c.Name)
	found, ok := d.tools[name]
	if !ok || asks(c.Effects) {
		return nil
	}
	t := trial{driver: d, tool: found, judged: event.Judged{Call: c.ID, Caller: found.Calls}}
	t.call = d.call(llm.Call{ID: c.ID, Name: name, Args: c.Args}, c.Args)
	if t.call.Parent = c.Parent; name != c.Name {
		t.call.As = c.Name
	}
	first, err := t.examine(ctx)
	if err != nil {
		return nil // the question stands
	}
	v, _, _ := t.verdict(ctx, first)
	if v.Cost > 0 {
		t.judged.Action, t.judged.By, t.judged.Reason = v.Action, v.By, v.Reason
		t.judged.Cost, t.judged.Route, t.judged.Consulted = v.Cost, v.Route, v.Consulted
		out = append(out, t.judged)
	}
	if v.Action != tool.Allow || v.Args != nil || t.unknown || !t.same(c.Effects) {
		return out
	}
	return append(out, event.Decided{Call: c.ID, Question: c.Asked, Allow: true, By: "the user", Rule: v.By})
}

// same reports whether the call does what it was judged by before: that is what will hold it.
func (t *trial) same(before []tool.Effect) bool {
	now := t.redacted(event.Judged{Effects: t.judged.Effects}).(event.Judged).Effects
	return sameEffects(before, now)
}

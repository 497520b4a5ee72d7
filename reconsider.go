package inspan

import (
	"cmp"
	"context"
	"fmt"

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
	if asks(c.Effects) {
		return nil
	}
	t, first, err := examined(ctx, d, c)
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

// examined is the judging, once more, of a call that was judged before, as far as [trial.examine] goes.
func examined(ctx context.Context, d *driver, c loop.Call) (t *trial, first tool.Verdict, err error) {
	name := cmp.Or(c.Tool, c.Name)
	found, ok := d.tools[name]
	if !ok {
		return nil, first, fmt.Errorf("there is no tool %q", name)
	}
	t = &trial{driver: d, tool: found, judged: event.Judged{Call: c.ID, Caller: found.Calls}}
	t.call = d.call(llm.Call{ID: c.ID, Name: name, Args: c.Args}, c.Args)
	if t.call.Parent = c.Parent; name != c.Name {
		t.call.As = c.Name
	}
	first, err = t.examine(ctx)
	return t, first, err
}

// strayed tells the model why a call is not run: its verdict was on another directory than it would run
// in by now, and there it would do something else. Empty: it may run. Nothing else is looked at again, as
// what a call reaches is held to its verdict while it runs.
func strayed(ctx context.Context, d *driver, c loop.Call) string {
	if c.Caller || c.Cwd == "" || c.Cwd == d.state.Cwd {
		return ""
	}
	if t, _, err := examined(ctx, d, c); err == nil && t.same(c.Effects) {
		return ""
	}
	return fmt.Sprintf("Not run: it was judged for the directory %s, and a call beside it has changed that to %s since, "+
		"where it would do something else. If that is what you want, call it again.", c.Cwd, d.state.Cwd)
}

// same reports whether the call does what it was judged by before: that is what will hold it.
func (t *trial) same(before []tool.Effect) bool {
	now := t.redacted(event.Judged{Effects: t.judged.Effects}).(event.Judged).Effects
	return sameEffects(before, now)
}

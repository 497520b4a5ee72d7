package inspan

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/secret"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxRounds = 5                // how often hooks may make one run go on
	endTime   = 10 * time.Second // for the hooks at the end of a session
)

// hear asks a hook.
func hear(ctx context.Context, h tool.Hook, p tool.Point) (out tool.Outcome, err error) {
	defer caught("the hook", nil, &err)
	return h.At(ctx, p)
}

// moment is one at which hooks are asked.
type moment struct {
	*driver
	tool.Point
}

// outcome asks the hooks what should come of it. Their outcomes become one: the strictest
// action, and all texts. Bodies are notes of those that failed.
func (m moment) outcome(ctx context.Context) (sum tool.Outcome, bodies []event.Body) {
	m.Session, m.Who, m.Root, m.Mode = m.state.Session, m.actor(), m.state.Root, m.state.Mode
	for _, h := range m.agent.Hooks {
		out, err := hear(ctx, h, m.Point)
		if err != nil {
			bodies = append(bodies, event.Note{Topic: "hook", Text: fmt.Sprintf("a hook at %s failed: %v", m.Moment, err)})
		}
		if out.Action == tool.Deny && sum.Action != tool.Deny {
			sum.Action, sum.By, sum.Reason = out.Action, out.By, out.Reason
		}
		if out.Text != "" {
			sum.Text = strings.TrimPrefix(sum.Text+"\n\n"+saidBy(out), "\n\n")
		}
	}
	return sum, bodies
}

// saidBy is what a hook puts before the model.
func saidBy(out tool.Outcome) string {
	by := out.By
	if by == "" {
		by = "a hook"
	}
	return fmt.Sprintf("[%s says; it is not the person:]\n%s", by, strings.TrimSpace(out.Text))
}

// come asks the hooks, and decides what they want. If that is not stored, they are to be
// asked again.
func (m moment) come(ctx context.Context) (stored bool, err error) {
	bodies, err := m.wants(ctx)
	if err != nil || len(bodies) == 0 {
		return err == nil, err
	}
	return m.decide(ctx, bodies...)
}

// wants is what hooks want.
func (m moment) wants(ctx context.Context) ([]event.Body, error) {
	if len(m.agent.Hooks) == 0 {
		return nil, nil
	}
	watched, done := m.interruptible(ctx)
	out, bodies := m.outcome(watched)
	done()
	if out.Action == tool.Deny || out.Text != "" || m.Moment == tool.PromptSaid {
		bodies = append(bodies, event.Hooked{Moment: m.Moment, By: out.By, Action: out.Action, Reason: out.Reason, Text: out.Text})
	}
	return bodies, ctx.Err()
}

// started is what hooks want when a driver joins a session.
func (d *driver) started(ctx context.Context) []event.Body {
	if len(d.agent.Hooks) == 0 {
		return nil
	}
	p := tool.Point{Moment: tool.SessionStart, Why: "resumed"}
	if len(d.state.Messages) == 0 {
		p.Why = "new"
	}
	out, bodies := moment{d, p}.outcome(ctx)
	if out.Text != "" {
		bodies = append(bodies, event.Hooked{Moment: p.Moment, Text: out.Text})
	}
	return bodies
}

// heard has hooks see what the person said before a model does.
func (d *driver) heard(ctx context.Context) error {
	_, err := moment{d, tool.Point{Moment: tool.PromptSaid, Text: d.state.Run.Heard}}.come(ctx)
	return err
}

// stop ends the run, unless it was done and a hook wants another round.
func (d *driver) stop(ctx context.Context, stopped event.Stopped) error {
	run := d.state.Run
	if stopped.Reason == event.ReasonDone && run.Rounds < maxRounds {
		end := moment{d, tool.Point{Moment: tool.RunStop, Why: string(stopped.Reason), Text: lastWords(d.state), Rounds: run.Rounds}}
		stored, err := end.come(ctx)
		if err != nil || !stored {
			return err
		}
	}
	if err := d.missed(ctx); err != nil {
		return err
	}
	now, still := d.state.Next().(loop.Stop)
	if !still {
		return nil
	}
	bodies, err := d.calls.left(ctx)
	if err == nil {
		_, err = d.decide(ctx, append(bodies, now.Stopped)...)
	}
	return err
}

// lastWords is what the model said last.
func lastWords(st *loop.State) string {
	for i := len(st.Messages) - 1; i >= 0; i-- {
		if m := st.Messages[i]; m.Role == llm.Assistant {
			return m.Parts.Text()
		}
	}
	return ""
}

// beforeCompact lets hooks say what a compaction is to keep, or that there is to
// be none.
func (d *driver) beforeCompact(ctx context.Context, c loop.Compact) (focus string, kept event.Kept, err error) {
	if len(d.agent.Hooks) == 0 {
		return c.Focus, kept, nil
	}
	watched, done := d.interruptible(ctx)
	out, notes := moment{d, tool.Point{Moment: tool.BeforeCompact, Text: c.Focus, Why: string(c.Why)}}.outcome(watched)
	done()
	if out.Action == tool.Deny {
		kept = event.Kept{Why: c.Why, Reason: out.By + ": " + out.Reason}
	}
	if err = ctx.Err(); err == nil && len(notes) > 0 {
		err = d.record(ctx, notes...)
	}
	return strings.TrimSpace(d.vault.Redact(c.Focus + "\n" + out.Text)), kept, err
}

// over tells hooks that a session is closed.
func over(hooks []tool.Hook, st Status) error {
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	var errs []error
	for _, h := range hooks {
		_, err := hear(ctx, h, tool.Point{Moment: tool.SessionEnd, Session: st.Session, Who: st.Who, Root: st.Root, Mode: st.Mode})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hookJudge is a hook that judges calls.
type hookJudge struct{ hook tool.Hook }

// Judge implements [tool.Judge].
func (h hookJudge) Judge(ctx context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
	out, err := hear(ctx, h.hook, tool.Point{
		Moment:  tool.BeforeCall,
		Session: c.Session, Who: c.Who, Root: c.Env.Root, Mode: c.Mode, Call: c, Effects: effects,
	})
	v := tool.Verdict{Action: out.Action, By: out.By, Reason: out.Reason, Args: out.Args, Grant: true}
	if out.Text != "" {
		v.Text = saidBy(out)
	}
	return v, err
}

// hooked lets hooks see what a call brought, add to it or put something else in
// its place.
// Like judges they see placeholders in the place of secrets.
func hooked(hooks []tool.Hook, vault *secret.Vault) func(tool.Tool) tool.Tool {
	return func(t tool.Tool) tool.Tool {
		if len(hooks) == 0 {
			return t
		}
		run := t.Run
		t.Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			res, err := run(ctx, c)
			if t.Calls && stopped(ctx, err) {
				return res, err // it has not ended
			}
			seen := *c
			seen.Args, seen.Cwd = mapTexts(c.Args, vault.Redact), vault.Redact(c.Cwd)
			seen.Seen = func(path string) (string, bool) { return c.Seen.Digest(vault.Resolve(path)) }
			for _, h := range hooks {
				res, err = afterCall(ctx, h, &seen, res, err)
			}
			return res, err
		}
		return t
	}
}

func afterCall(ctx context.Context, h tool.Hook, c *tool.Call, res tool.Result, failed error) (tool.Result, error) {
	p := tool.Point{Moment: tool.AfterCall, Session: c.Session, Who: c.Who, Root: c.Env.Root, Mode: c.Mode, Call: c, Result: &res}
	if failed != nil {
		p.Failed = failed.Error()
	}
	out, err := hear(ctx, h, p)
	if out.Result != nil {
		// What was done stays known, whatever the model is told of it.
		res.Parts = out.Result.Parts
		if failed != nil {
			failed = errors.New("it failed; see above")
		}
	}
	if err != nil {
		out.Text = strings.TrimSpace(out.Text + "\n(a hook failed: " + err.Error() + ")")
	}
	if out.Text != "" {
		res.Parts = onNewLine(res.Parts, saidBy(out))
	}
	return res, failed
}

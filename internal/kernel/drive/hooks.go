package drive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

const (
	maxRounds   = 5                // how often hooks may make a run continue
	closeWithin = 10 * time.Second // the time for hooks at the end of a session
)

// hooks asks the agent's hooks at the moments of a session. Hooks also wrap tools (package wrap) and judge calls
// ([hookJudge]).
type hooks struct {
	cfg     *Config
	journal *journal
	who     func() tool.Actor
}

// ask asks every hook, and combines the first denial with the texts of all. The notes report hooks that failed.
func (h *hooks) ask(ctx context.Context, p tool.Point) (sum tool.Outcome, notes []event.Body) {
	state := h.journal.state
	p.Session, p.Who, p.Root, p.Mode = state.Session, h.who(), state.Root, state.Mode
	for _, hook := range h.cfg.Hooks {
		out, err := wrap.Hear(ctx, hook, p)
		if err != nil {
			notes = append(notes, event.Note{Topic: "hook", Text: fmt.Sprintf("a hook at %s failed: %v", p.Moment, err)})
		}
		if out.Action == tool.Deny && sum.Action != tool.Deny {
			sum.Action, sum.By, sum.Reason = out.Action, out.By, out.Reason
		}
		if out.Text != "" {
			sum.Text = strings.TrimPrefix(sum.Text+"\n\n"+wrap.SaidBy(out), "\n\n")
		}
	}
	return sum, notes
}

// askInterruptibly is like ask, but returns when the run is interrupted.
func (h *hooks) askInterruptibly(ctx context.Context, p tool.Point) (tool.Outcome, []event.Body, error) {
	watched, done := h.journal.interruptible(ctx)
	out, notes := h.ask(watched, p)
	done()
	return out, notes, ctx.Err()
}

// outcomes asks the hooks, and returns the events that store their outcome.
func (h *hooks) outcomes(ctx context.Context, p tool.Point) ([]event.Body, error) {
	if len(h.cfg.Hooks) == 0 {
		return nil, nil
	}
	out, bodies, err := h.askInterruptibly(ctx, p)
	if out.Action == tool.Deny || out.Text != "" || p.Moment == tool.PromptSaid {
		bodies = append(bodies, event.Hooked{Moment: p.Moment, By: out.By, Action: out.Action, Reason: out.Reason, Text: out.Text})
	}
	return bodies, err
}

// decide asks the hooks and stores their outcome. If it is not stored, the hooks must be asked again.
func (h *hooks) decide(ctx context.Context, p tool.Point) (stored bool, err error) {
	bodies, err := h.outcomes(ctx, p)
	if err != nil || len(bodies) == 0 {
		return err == nil, err
	}
	return h.journal.decide(ctx, bodies...)
}

// sessionStart asks the hooks when a session is opened or resumed, and returns the events that store their outcome.
func (h *hooks) sessionStart(ctx context.Context) []event.Body {
	if len(h.cfg.Hooks) == 0 {
		return nil
	}
	p := tool.Point{Moment: tool.SessionStart, Why: "resumed"}
	if len(h.journal.state.Messages) == 0 {
		p.Why = "new"
	}
	out, bodies := h.ask(ctx, p)
	if out.Text != "" {
		bodies = append(bodies, event.Hooked{Moment: p.Moment, Text: out.Text})
	}
	return bodies
}

// lastReply returns the text of the model's last reply.
func lastReply(st *loop.State) string {
	for i := len(st.Messages) - 1; i >= 0; i-- {
		if m := st.Messages[i]; m.Role == llm.Assistant {
			return m.Parts.Text()
		}
	}
	return ""
}

// beforeCompact lets hooks add to the focus of a compaction, or prevent it. If they prevent it, kept has a reason.
func (h *hooks) beforeCompact(ctx context.Context, c loop.Compact) (focus string, kept event.Kept, err error) {
	if len(h.cfg.Hooks) == 0 {
		return c.Focus, kept, nil
	}
	out, notes, err := h.askInterruptibly(ctx, tool.Point{Moment: tool.BeforeCompact, Text: c.Focus, Why: string(c.Why)})
	if out.Action == tool.Deny {
		kept = event.Kept{Why: c.Why, Reason: out.By + ": " + out.Reason}
	}
	if err == nil && len(notes) > 0 {
		err = h.journal.record(ctx, notes...)
	}
	return strings.TrimSpace(h.cfg.Secrets.Vault.Redact(c.Focus + "\n" + out.Text)), kept, err
}

// sessionEnd tells hooks that the session is closed.
func (h *hooks) sessionEnd() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	h.journal.mu.Lock()
	state := h.journal.state
	p := tool.Point{Moment: tool.SessionEnd, Session: state.Session, Who: h.who(), Root: state.Root, Mode: state.Mode}
	h.journal.mu.Unlock()
	var errs []error
	for _, hook := range h.cfg.Hooks {
		_, err := wrap.Hear(ctx, hook, p)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// hookJudge makes a hook a judge of calls.
type hookJudge struct{ hook tool.Hook }

// Judge implements [tool.Judge].
func (h hookJudge) Judge(ctx context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
	out, err := wrap.Hear(ctx, h.hook, tool.Point{
		Moment:  tool.BeforeCall,
		Session: c.Session, Who: c.Who, Root: c.Env.Root, Mode: c.Mode, Call: c, Effects: effects,
	})
	v := tool.Verdict{Action: out.Action, By: out.By, Reason: out.Reason, Args: out.Args, Grant: true}
	if out.Text != "" {
		v.Text = wrap.SaidBy(out)
	}
	return v, err
}

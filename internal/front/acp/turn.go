package acp

import (
	"context"
	"errors"
	"strings"
	"sync"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/jsonrpc"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// turn is a prompt in progress. Its methods may be called from any goroutine.
type turn struct {
	runs chan struct{} // closed when run is set
	done chan struct{} // closed at its end

	mu        sync.Mutex
	run       *inspan.Conductor // the run in progress; nil before the first
	cancelled bool              // by the person
	left      bool              // the client is gone, or has closed the session

	// Fields of the goroutine that runs it.
	stopped *event.Stopped
	usage   llm.Usage
}

// begin starts a turn, unless one is in progress.
func (st *session) begin() (*turn, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.closed:
		return nil, missing(st.id)
	case st.turn != nil:
		return nil, busy("session %s is at work on a prompt; %s tells it something meanwhile, session/cancel ends it", st.id, methodSteer)
	}
	st.turn = &turn{runs: make(chan struct{}), done: make(chan struct{})}
	return st.turn, nil
}

func (st *session) end(t *turn) {
	st.mu.Lock()
	st.turn, st.mine = nil, nil
	st.mu.Unlock()
	close(t.done)
}

// cancel interrupts the run on behalf of the person; it may be called again.
func (t *turn) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelled = true
	if t.run != nil {
		t.run.Interrupt(event.Cancelled{By: "the user"})
	}
}

// reapply makes a run that waits for answers apply what was chosen meanwhile.
func (t *turn) reapply() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.run != nil {
		t.run.Rerun()
	}
}

// interruptIfWorking interrupts a working run. A run that waits for a decision is left alone.
func (t *turn) interruptIfWorking() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	if t.run != nil {
		t.run.Detach(event.Cancelled{By: "the user", Reason: "left"})
	}
}

func (t *turn) isOver() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelled || t.left
}

func (a *agent) prompt(p wire.PromptRequest) slowPart {
	st, err := a.session(p.SessionId)
	if err != nil {
		return failWith(err)
	}
	t, err := st.begin()
	if err != nil {
		return failWith(err)
	}
	return func(ctx context.Context) (any, error) {
		defer st.end(t)
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), jsonrpc.ErrWithdrawn) {
				t.cancel()
			}
		})()
		st.driving.Lock()
		defer st.driving.Unlock()
		inputs, err := st.said(p.Prompt)
		if err != nil {
			return nil, err
		}
		return st.runTurn(t, inputs)
	}
}

func (a *agent) cancel(p wire.CancelNotification) slowPart {
	st, err := a.session(p.SessionId)
	if err != nil {
		return failWith(err)
	}
	st.mu.Lock()
	t := st.turn
	st.mu.Unlock()
	if t != nil {
		t.cancel()
	}
	return func(context.Context) (any, error) { return nil, nil }
}

// runTurn runs the session until nothing is left to do, or it needs the person's words. Decisions left from an
// earlier run come first.
func (st *session) runTurn(t *turn, said []event.Body) (any, error) {
	if err := st.reopen(st.ctx); err != nil {
		return nil, unconfigured(err)
	}
	var err error
	if waiting := st.current().Status().Waiting; len(waiting) > 0 {
		if d, ok := asAnswer(waiting, said); ok {
			said = []event.Body{d}
		} else if err = st.drive(t, nil); len(st.current().Status().Waiting) > 0 {
			said = nil
		}
	}
	if err == nil && said != nil {
		err = st.drive(t, said)
	}
	if t.isOver() && (err == nil || errors.Is(err, context.Canceled)) {
		return st.response(t, wire.StopReasonCancelled), nil
	}
	if err != nil {
		return nil, err
	}
	st.tellCommands()
	return st.response(t, stopReason(t.stopped)), nil
}

// drive runs the session, reports its events to the client, and lets the person answer, until the turn is over.
func (st *session) drive(t *turn, inputs []event.Body) error {
	run := &inspan.Conductor{Session: st.current(), AskConcurrently: true, BeforeRun: st.takeDeferred}
	run.OnEvent = func(e event.Event) error {
		switch b := e.Body.(type) {
		case event.Replied:
			t.usage = t.usage.Add(b.Usage)
		case event.Stopped:
			t.stopped = &b
		}
		st.view.apply(e)
		return nil
	}
	run.Ask = func(ctx context.Context, p inspan.Pending) (event.Body, error) { return st.askPending(ctx, t, p) }
	t.mu.Lock()
	over := t.cancelled || t.left
	if !over {
		if t.run == nil {
			close(t.runs)
		}
		t.run = run
	}
	t.mu.Unlock()
	if over {
		return nil
	}
	return run.Run(st.ctx, inputs...)
}

// response answers the prompt.
func (st *session) response(t *turn, reason wire.StopReason) wire.PromptResponse {
	meta := map[string]any{}
	if len(st.current().Status().Waiting) > 0 {
		meta["reason"] = "waiting"
	} else if t.stopped != nil {
		meta["reason"] = string(t.stopped.Reason)
		if t.stopped.Detail != "" {
			meta["detail"] = text.Line(t.stopped.Detail)
		}
	}
	u := t.usage
	out := wire.PromptResponse{StopReason: reason, Meta: map[string]any{"inspan": meta}}
	if u != (llm.Usage{}) {
		out.Usage = &wire.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Prompt() + u.Output,
			CachedReadTokens: &u.CacheRead, CachedWriteTokens: &u.CacheWrite,
		}
	}
	return out
}

// stopReason returns the protocol's word for why a run has stopped. Reasons without a word are stated in the
// conversation, see view.stop.
func stopReason(s *event.Stopped) wire.StopReason {
	if s == nil {
		return wire.StopReasonEndTurn
	}
	switch s.Reason {
	case event.ReasonMaxTokens:
		return wire.StopReasonMaxTokens
	case event.ReasonMaxTurns, event.ReasonBudget, event.ReasonMaxTime, event.ReasonRate:
		return wire.StopReasonMaxTurnRequests
	case event.ReasonRefused:
		return wire.StopReasonRefusal
	case event.ReasonCancelled:
		return wire.StopReasonCancelled
	}
	return wire.StopReasonEndTurn
}

// asAnswer turns a message into the answer to a question that needs words, if there is one.
func asAnswer(waiting []inspan.Pending, said []event.Body) (event.Body, bool) {
	for _, body := range said {
		s, ok := body.(event.Said)
		text := strings.TrimSpace(s.Parts.Text())
		if !ok || text == "" {
			continue
		}
		for _, p := range waiting {
			if d, problem := words.Answer(p.Call, text); p.IsQuestion && problem == "" {
				return d, true
			}
		}
	}
	return nil, false
}

func (a *agent) steer(ctx context.Context, p steerRequest) (any, error) {
	return a.tell(ctx, p, func(parts llm.Parts) event.Body { return event.Steered{Origin: event.OriginPerson, Parts: parts} })
}

func (a *agent) queue(ctx context.Context, p steerRequest) (any, error) {
	return a.tell(ctx, p, func(parts llm.Parts) event.Body { return event.Said{Parts: parts} })
}

// tell sends a message into a run in progress.
func (a *agent) tell(ctx context.Context, p steerRequest, as func(llm.Parts) event.Body) (any, error) {
	st, err := a.session(wire.SessionId(p.SessionID))
	if err != nil {
		return nil, err
	}
	blocks, err := p.blocks()
	if err != nil {
		return nil, err
	}
	parts, err := st.parts(blocks)
	if err != nil {
		return nil, err
	}
	st.mu.Lock()
	t := st.turn
	st.mu.Unlock()
	none := busy("session %s has no running prompt; start one with session/prompt", p.SessionID)
	if t == nil {
		return nil, none
	}
	select {
	case <-t.runs:
	case <-t.done:
		return nil, none
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t.mu.Lock()
	run := t.run
	t.mu.Unlock()
	st.expectEcho(parts)
	if _, err := run.Send(ctx, as(parts)); errors.Is(err, inspan.ErrRunEnded) {
		return nil, none
	} else if err != nil {
		return nil, err
	}
	return struct{}{}, nil
}

package acp

import (
	"context"
	"errors"
	"strings"
	"sync"

	wire "github.com/coder/acp-go-sdk"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/llm"
)

// turn is a prompt that is worked on. Its methods may be called from any goroutine.
type turn struct {
	ctx  context.Context // of questions to the person; ends when the person cancels
	stop context.CancelFunc
	done chan struct{} // closed at its end

	mu        sync.Mutex
	heard     bool // a run goes on, or has: an interrupt can be sent
	cancelled bool // by the person
	left      bool // the client is gone, or has closed the session

	// Of the goroutine that runs it.
	stopped *event.Stopped
	usage   llm.Usage
	raised  map[string]context.CancelFunc // questions of children that the person is asked
	asking  sync.WaitGroup
}

// begin starts a turn, unless one goes on.
func (st *seat) begin() (*turn, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.closed:
		return nil, missing(st.id)
	case st.turn != nil:
		return nil, busy("session %s is at work on a prompt; %s tells it something meanwhile, session/cancel ends it", st.id, methodSteer)
	}
	t := &turn{done: make(chan struct{}), raised: map[string]context.CancelFunc{}}
	t.ctx, t.stop = context.WithCancel(st.ctx)
	st.turn = t
	return t, nil
}

func (st *seat) end(t *turn) {
	t.stop()
	t.asking.Wait()
	st.mu.Lock()
	st.turn, st.mine = nil, nil
	st.mu.Unlock()
	close(t.done)
}

// hear notes that a run goes on, and interrupts it if that was asked for before.
func (t *turn) hear(st *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.heard && (t.cancelled || t.left) {
		t.interrupt(st)
	}
	t.heard = true
}

// cancel interrupts the run, as the person wants, also once more.
func (t *turn) cancel(st *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancelled = true
	if t.heard {
		t.interrupt(st)
	}
	t.stop()
}

// abandon interrupts a run that goes on. One that waits for a decision is left so.
func (t *turn) abandon(st *seat) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left {
		return
	}
	t.left = true
	if t.heard && len(st.now().Status().Waiting) == 0 {
		t.interrupt(st)
	}
	t.stop()
}

func (t *turn) interrupt(st *seat) {
	body := event.Cancelled{By: "the user"}
	if t.left {
		body.Reason = "left"
	}
	if err := st.send(context.WithoutCancel(st.ctx), body); err != nil {
		st.agent.logf("interrupt %s: %v", st.id, err)
	}
}

func (t *turn) over() (cancelled, left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cancelled, t.left
}

func (a *agent) prompt(p wire.PromptRequest) work {
	st, err := a.seat(p.SessionId)
	if err != nil {
		return failing(err)
	}
	t, err := st.begin()
	if err != nil {
		return failing(err)
	}
	return func(ctx context.Context) (any, error) {
		defer st.end(t)
		defer context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), errWithdrawn) {
				t.cancel(st)
			}
		})()
		st.driving.Lock()
		defer st.driving.Unlock()
		inputs, err := st.said(p.Prompt)
		if err != nil {
			return nil, err
		}
		return st.work(t, inputs)
	}
}

func (a *agent) cancel(p wire.CancelNotification) work {
	st, err := a.seat(p.SessionId)
	if err != nil {
		return failing(err)
	}
	st.mu.Lock()
	t := st.turn
	st.mu.Unlock()
	if t != nil {
		t.cancel(st)
	}
	return func(context.Context) (any, error) { return nil, nil }
}

// work runs the session until it has nothing to do, or waits for words of the person.
func (st *seat) work(t *turn, inputs []event.Body) (any, error) {
	if err := st.changeModel(st.ctx); err != nil {
		return nil, unconfigured(err)
	}
	inputs, asked, err := st.first(t, inputs)
	for again := 0; err == nil && !asked; {
		if err = st.drive(t, append(st.unheld(), inputs...)); err != nil {
			break
		}
		waiting := st.now().Status().Waiting
		cancelled, left := t.over()
		if len(waiting) == 0 || left {
			break
		}
		if inputs = nil; !cancelled { // they are in the log
			inputs, asked, err = st.decide(t, waiting)
		} else if again++; again > 2 {
			break // what was sent to interrupt it did not arrive
		}
	}
	if cancelled, left := t.over(); (cancelled || left) && (err == nil || errors.Is(err, context.Canceled)) {
		return st.response(t, wire.StopReasonCancelled), nil
	}
	if err != nil {
		return nil, err
	}
	st.tellCommands()
	return st.response(t, stopReason(t.stopped)), nil
}

// first puts what an earlier run left to decide before what is said now.
func (st *seat) first(t *turn, said []event.Body) (inputs []event.Body, asked bool, err error) {
	waiting := st.now().Status().Waiting
	if len(waiting) == 0 {
		return said, false, nil
	}
	t.mu.Lock()
	t.heard = true // the run that waits can be interrupted
	t.mu.Unlock()
	if d, ok := answered(waiting, said); ok {
		return []event.Body{d}, false, nil
	}
	decided, asked, err := st.decide(t, waiting)
	if cancelled, _ := t.over(); cancelled {
		return nil, false, err
	}
	return append(decided, said...), asked && len(decided) == 0, err
}

// drive runs the session once, and tells the client what happens.
func (st *seat) drive(t *turn, inputs []event.Body) error {
	var failed error
	for e, err := range st.now().Run(st.ctx, inputs...) {
		if err != nil {
			failed = err
			break
		}
		switch b := e.Body.(type) {
		case event.Claimed:
			t.hear(st) // the inputs are in the log with it
		case event.Replied:
			t.usage = t.usage.Add(b.Usage)
		case event.Stopped:
			t.stopped = &b
		}
		st.view.apply(e)
		st.children(t, e)
	}
	for _, stop := range t.raised {
		stop()
	}
	t.asking.Wait()
	clear(t.raised)
	return failed
}

// response answers the prompt.
func (st *seat) response(t *turn, reason wire.StopReason) wire.PromptResponse {
	meta := map[string]any{}
	if len(st.now().Status().Waiting) > 0 {
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

// stopReason says in the words of the protocol why a run has stopped. What it has no
// word for is said in the conversation, see view.stop.
func stopReason(s *event.Stopped) wire.StopReason {
	if s == nil {
		return wire.StopReasonEndTurn
	}
	switch s.Reason {
	case event.ReasonMaxTokens:
		return wire.StopReasonMaxTokens
	case event.ReasonMaxTurns, event.ReasonBudget, event.ReasonMaxTime:
		return wire.StopReasonMaxTurnRequests
	case event.ReasonRefused:
		return wire.StopReasonRefusal
	case event.ReasonCancelled:
		return wire.StopReasonCancelled
	}
	return wire.StopReasonEndTurn
}

// answered makes what is said the answer to a question that waits for words, if there
// is one.
func answered(waiting []inspan.Pending, said []event.Body) (event.Body, bool) {
	for _, body := range said {
		s, ok := body.(event.Said)
		text := strings.TrimSpace(s.Parts.Text())
		if !ok || text == "" {
			continue
		}
		for _, p := range waiting {
			if d, problem := words.Answer(p.Call, text); p.Asks && problem == "" {
				return d, true
			}
		}
	}
	return nil, false
}

func (a *agent) steer(ctx context.Context, p steerRequest) (any, error) {
	return a.tell(ctx, p, func(parts llm.Parts) event.Body { return event.Steered{Parts: parts} })
}

func (a *agent) queue(ctx context.Context, p steerRequest) (any, error) {
	return a.tell(ctx, p, func(parts llm.Parts) event.Body { return event.Said{Parts: parts} })
}

// tell says something into a run that goes on.
func (a *agent) tell(ctx context.Context, p steerRequest, as func(llm.Parts) event.Body) (any, error) {
	st, err := a.seat(wire.SessionId(p.SessionID))
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
	if !st.works() {
		return nil, busy("nothing goes on in session %s; session/prompt begins something", p.SessionID)
	}
	st.expect(parts)
	return struct{}{}, st.send(ctx, as(parts))
}

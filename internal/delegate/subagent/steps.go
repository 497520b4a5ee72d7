package subagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/workflow"
)

var _ workflow.Agents = (*Team)(nil)

// Clear implements [workflow.Agents].
func (t *Team) Clear(ctx context.Context) error {
	if !t.runs() {
		return fmt.Errorf("%w: %w", inspan.ErrOpenStep, errClosed)
	}
	return t.deferralOf(t.awaitPause(ctx, t.patience))
}

// deferralOf returns the reason why a request could not be sent, in the form that leaves the run open.
func (t *Team) deferralOf(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	stop := event.Stopped{Reason: event.ReasonFailed, Cause: e.Kind, Detail: e.Message}
	if e.Kind == llm.KindBudget {
		if stop.Reason = event.ReasonBudget; t.top().breakerReason() != "" {
			stop.Reason = event.ReasonRate
		}
		stop.Cause = ""
	}
	return &inspan.StopError{Stopped: stop}
}

// breakerReason returns the reason why the breaker has stopped the tree; empty means it has not. This is the top.
func (t *Team) breakerReason() string {
	_, why := t.stoppedBy()
	return why
}

// Work implements [workflow.Agents]: the agent of a step is a child of that step.
func (t *Team) Work(ctx context.Context, job workflow.Job) (workflow.Report, error) {
	if err := t.Clear(ctx); err != nil {
		return workflow.Report{}, err
	}
	in, o, err := t.orderOfJob(job)
	if err != nil {
		return workflow.Report{}, err
	}
	args, err := json.Marshal(in)
	if err != nil {
		return workflow.Report{}, err
	}
	k, err := t.openAs(ctx, job.Step, in, o, args)
	if err != nil {
		return workflow.Report{}, err
	}
	var inputs []event.Body
	switch st := k.session.Status(); {
	case st.Stopped == nil || k.copied:
	case continuesWith(*st.Stopped):
		inputs = []event.Body{event.Said{By: "the workflow", Origin: event.OriginLead}}
	}
	k.untrusted = job.Untrusted
	r := t.waitFor(ctx, k, inputs, job.Progress)
	return t.report(ctx, k, r)
}

// orderOfJob makes an order from a job.
func (t *Team) orderOfJob(job workflow.Job) (in spawnArgs, o Order, err error) {
	in = spawnArgs{
		Task: job.Prompt, Agent: job.Agent, Tools: job.Tools, Model: job.Model, Mode: job.Mode, Turns: job.Budget.Turns,
		Deadline: int(time.Duration(job.Budget.Time).Round(time.Second) / time.Second),
	}
	if job.Call != "" {
		in.Task, in.Model = "call: "+job.Call, script.Provider
	}
	if job.Output != nil {
		if err := json.Unmarshal(job.Output, &in.Result); err != nil {
			return in, o, err
		}
	}
	if o, err = t.order(in); err != nil {
		return in, o, err
	}
	o.step = true
	if job.Budget.Cost > 0 {
		o.Limits.Cost, o.Limited = job.Budget.Cost, true
	}
	if job.Fork != "" {
		if o.fork, err = store.ChildID(t.session.ID(), job.Fork); err != nil {
			return in, o, err
		}
	}
	if job.Call != "" {
		o.Team, o.call = nil, &singleCall{call: llm.Call{Name: job.Call, Args: job.Args}}
	}
	return in, o, nil
}

// Wants reports whether the order names a tool, so that its agent gets even a tool that not every one gets.
func (o Order) Wants(name string) bool {
	return o.call != nil && o.call.call.Name == name || slices.Contains(o.Tools, name) || slices.Contains(o.Role.Tools, name)
}

// continuesWith reports whether a stopped run continues when its parent's run does.
func continuesWith(s event.Stopped) bool {
	switch s.Reason {
	case event.ReasonCancelled, event.ReasonBudget, event.ReasonMaxTokens, event.ReasonRate:
		return true
	case event.ReasonFailed:
		return s.Cause != "" && reaction.To(s.Cause) != reaction.Stop
	}
	return false
}

// report describes how the agent of a step has ended. The error says that it has not, for reasons that are not
// its own.
func (t *Team) report(ctx context.Context, k *child, r event.Returned) (workflow.Report, error) {
	out := workflow.Report{Session: k.id, Text: k.lastWords(), Cost: r.Cost}
	if k.order.result != nil {
		out.Result = k.order.result.returned()
	}
	why := string(r.Reason)
	if r.Detail != "" {
		why += ": " + r.Detail
	}
	st := k.session.Status().Stopped
	switch {
	case ctx.Err() != nil:
		return out, context.Cause(ctx)
	case r.Reason == event.ReasonDone && k.order.call != nil:
		out.Text, out.Failed, out.Lost = k.order.call.outcome()
		return out, nil
	case r.Reason == event.ReasonDone:
		return out, nil
	case r.Reason == "" || st == nil:
		return out, fmt.Errorf("%w: agent %s: %s", inspan.ErrOpenStep, k.label(), r.Detail)
	case r.Reason == event.ReasonRate, r.Reason == event.ReasonFailed && continuesWith(*st):
		return out, &inspan.StopError{Stopped: *st}
	case (r.Reason == event.ReasonBudget || r.Reason == event.ReasonMaxTokens) && t.exhausted() != "":
		return out, &inspan.StopError{Stopped: event.Stopped{Reason: r.Reason, Detail: t.exhausted()}}
	}
	out.Failed = why
	return out, nil
}

// singleCall is one call that a child makes in place of its model's replies.
type singleCall struct {
	call llm.Call

	mu    sync.Mutex
	ended *event.Ended
}

// model returns a model that makes the call.
func (e *singleCall) model() llm.Model {
	return &script.Model{ID: "call", Free: true, Steps: []script.Step{{Parts: llm.Parts{e.call}}, {Parts: llm.Say("It was called.")}}}
}

// observe reads the result of the call from the child's items.
func (e *singleCall) observe(items []transcript.Item) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, item := range items {
		if c, ok := item.(*transcript.Call); ok && c.State == transcript.Over && e.ended == nil {
			end := c.Ended
			e.ended = &end
		}
	}
}

// outcome returns the result of the call, why it has failed, and whether it was interrupted.
func (e *singleCall) outcome() (text, failed string, lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ended == nil:
		return "", "it was not called", false
	case e.ended.Outcome != event.OutcomeOK:
		lost = e.ended.Outcome == event.OutcomeUnknown || e.ended.Outcome == event.OutcomeCancelled
		return e.ended.Parts.Text(), cmp.Or(e.ended.Parts.Text(), string(e.ended.Outcome)), lost
	}
	return e.ended.Parts.Text(), "", false
}

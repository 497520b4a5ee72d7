package workflow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// piecework is a step being performed.
type piecework struct {
	*run
	Step
	frame *frame
	at    scopeOf
	id    string
}

// skip logs that the step is skipped.
func (p piecework) skip(ctx context.Context, why string, passed bool) (any, end) {
	skipped := event.StepEnded{Outcome: event.OutcomeSkipped, Error: why}
	if passed { // by its own condition
		skipped.Result = json.RawMessage(`"` + passedOver + `"`)
	}
	return p.record(ctx, nil, true, func(context.Context) (event.StepEnded, error) { return skipped, nil })
}

const passedOver = "when"

// record performs a step that is to be logged, and returns its result.
func (p piecework) record(ctx context.Context, input any, again bool, do func(context.Context) (event.StepEnded, error)) (any, end) {
	raw, err := json.Marshal(input)
	if err != nil || input == nil {
		raw = nil
	}
	step := event.StepStarted{Step: p.id, Does: string(p.Kind), Title: p.Title, Parent: p.at.parent, Input: raw, Again: again}
	e, err := p.steps.Do(ctx, step, do)
	for errors.Is(err, inspan.ErrPaused) && p.o.Agents != nil {
		if err = p.o.Agents.Clear(ctx); err == nil {
			e, err = p.steps.Do(ctx, step, do)
		}
	}
	if err != nil {
		p.leave(err)
		return nil, end{}
	}
	var value any
	_ = json.Unmarshal(e.Result, &value)
	out := end{outcome: e.Outcome, why: e.Error}
	if e.Outcome == event.OutcomeSkipped {
		out.passed, value = value == passedOver, nil
	}
	return value, out
}

// work is record for a step that needs a work slot. It begins nothing while all work is paused.
func (p piecework) work(ctx context.Context, input any, again bool, do func(context.Context) (event.StepEnded, error)) (any, end) {
	if p.steps.Step(p.id).Ended == nil { // else there is nothing to do
		select {
		case p.slots <- struct{}{}:
			defer func() { <-p.slots }()
		case <-ctx.Done():
			p.leave(context.Cause(ctx))
			return nil, end{}
		}
		if err := p.waitToBegin(ctx); errors.Is(err, errStopped) {
			return p.skip(ctx, err.Error(), false)
		} else if err != nil {
			p.leave(err)
			return nil, end{}
		}
	}
	return p.record(ctx, input, again, do)
}

// waitToBegin waits until work may begin.
func (p piecework) waitToBegin(ctx context.Context) error {
	if err := p.halted(p.at); err != nil {
		return cmp.Or(err, inspan.ErrOpenStep)
	}
	if p.o.Agents == nil {
		return nil
	}
	return p.o.Agents.Clear(ctx)
}

// perform performs the step.
func (p piecework) perform(ctx context.Context) (any, end) {
	switch p.Kind {
	case KindAgent:
		return p.agent(ctx)
	case KindRun:
		return p.command(ctx)
	case KindCheck:
		return p.check(ctx)
	case KindApproval:
		return p.approval(ctx)
	case KindLoop:
		return p.loop(ctx)
	case KindEach:
		return p.each(ctx)
	case KindWorkflow:
		return p.use(ctx)
	case KindTool:
		return p.call(ctx)
	}
	return p.wait(ctx)
}

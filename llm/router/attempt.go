package router

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// attempt is one request on its way through the routes of a decision.
type attempt struct {
	*Model
	decision Decision
	window   int        // see [llm.Routed]
	judged   *llm.Spent // what it took to decide; nil means nothing
	verdict  string     // see [llm.Routed]
	private  string     // what private text the request holds
	tokens   int        // of the request, as estimated
	yield    func(llm.Chunk, error) bool

	best  *llm.Error // the failure so far that leaves the most hope
	last  *llm.Error
	floor int // only a larger window than this helps; 0 means any does
}

// run asks one route after the other.
func (a *attempt) run(ctx context.Context, req llm.Request) {
	for i, name := range slices.Concat(a.decision.Use, a.decision.Reserve) {
		r := a.route(name)
		if a.last != nil {
			tooSmall, reserve := a.floor > 0 && r.Model.Info().Window <= a.floor, i >= len(a.decision.Use)
			if tooSmall || reserve && reaction.To(a.best.Kind) == reaction.Retry { // the same request may succeed a little later
				continue
			}
		}
		if !a.yield(llm.Chunk{Routed: a.routed(r)}, nil) {
			return
		}
		failed := a.ask(ctx, req, r, i+1 < len(a.decision.Use))
		if failed == nil {
			return
		}
		if !a.goesOn(r, failed) {
			a.yield(llm.Chunk{}, a.shorter(failed))
			return
		}
		if ctx.Err() != nil {
			a.yield(llm.Chunk{}, llm.AsError(ctx.Err()))
			return
		}
	}
	a.yield(llm.Chunk{}, a.shorter(a.best))
}

// shorter returns failed with the largest window of the working routes that were skipped because the prompt is
// too long for them, if another route may answer after this failure.
func (a *attempt) shorter(failed *llm.Error) *llm.Error {
	switch reaction.To(failed.Kind) {
	case reaction.Retry, reaction.Await, reaction.Elsewhere:
	default:
		return failed
	}
	e, v := *failed, a.health.View()
	for _, p := range a.decision.Passed {
		info := a.route(p.Route).Model.Info()
		if p.Kind == llm.KindWindow && v.healthy(info.Route()) && info.Window > e.Shorter {
			e.Shorter, e.Used, e.Private = info.Window, a.tokens, a.private
		}
	}
	return &e
}

func (a *attempt) routed(r Route) *llm.Routed {
	out := &llm.Routed{
		Info: r.Model.Info(), Rule: a.decision.Rule, Reason: a.decision.String(),
		Cause: a.last, Window: a.window, Private: a.private, Judge: a.judged, Judged: a.verdict,
	}
	a.judged = nil // it was paid for once
	if a.last != nil {
		out.Reason = "next in line; " + out.Reason
	}
	return out
}

// ask passes the stream of one route on, and returns its failure; nil if it succeeded, or if the caller has
// stopped listening. instead says that another route could answer without a wait.
func (a *attempt) ask(ctx context.Context, req llm.Request, r Route, instead bool) *llm.Error {
	route, began := r.Model.Info().Route(), time.Now()
	answered := false
	for chunk, err := range r.Model.Stream(ctx, req) {
		switch {
		case err != nil:
			return llm.AsError(err)
		case chunk.Retry != nil && instead && chunk.Retry.Cause != nil && chunk.Retry.Cause.RetryAfter > longWait:
			return chunk.Retry.Cause // a wrapper delays the request for longer than it takes to give the route up
		case chunk.Reply != nil:
			answered = true
			a.health.Answered(route, began)
		}
		if !a.yield(chunk, nil) {
			return nil
		}
	}
	if !answered {
		return &llm.Error{Kind: llm.KindStreamCut, Provider: r.Model.Info().Provider, Err: errors.New("the stream ended without a reply")}
	}
	return nil
}

// goesOn records a failure and reports whether to ask the next route.
func (a *attempt) goesOn(r Route, e *llm.Error) bool {
	info := r.Model.Info()
	unhealthy := a.health.Failed(info.Route(), e)
	a.last = e
	if a.best == nil || better(e, a.best) {
		a.best = e
	}
	switch reaction.To(e.Kind) {
	case reaction.Await, reaction.Elsewhere:
		return true
	case reaction.Retry:
		return unhealthy || e.Kind == llm.KindOverloaded
	case reaction.Compact:
		a.floor = max(a.floor, info.Window, e.Limit)
		e.Private = a.private
		return a.floor > 0
	}
	return false
}

// hope ranks failures by the step that may still help: sending the request again soon, sending it again some day,
// sending it in a shorter form, nothing.
func hope(e *llm.Error) int {
	switch reaction.To(e.Kind) {
	case reaction.Retry:
		return 0
	case reaction.Await:
		return 1
	case reaction.Compact:
		return 2
	}
	return 3
}

// better reports whether e leaves more hope than f. Between equals the earlier one counts.
func better(e, f *llm.Error) bool {
	if hope(e) != hope(f) {
		return hope(e) < hope(f)
	}
	return wait(e) < wait(f)
}

// wait returns how long to wait if waiting helps. For an exhausted quota, silence means long.
func wait(e *llm.Error) time.Duration {
	switch {
	case hope(e) > 1:
		return 0
	case hope(e) == 1 && e.RetryAfter == 0:
		return math.MaxInt64
	}
	return e.RetryAfter
}

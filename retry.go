package inspan

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/llm"
)

// Patience is how long one request is tried again. Whoever sits at a terminal
// rather hears soon that it is of no use; where nobody waits, it may take as long
// as it takes the vendor to give a new allowance.
//
// Every wait for a vendor is bounded by it, and by the context: that of a request
// here, and that which a log asks for in [Agent.wait]. Nothing below waits for more
// than a minute; see package limit.
const (
	attendedFor   = time.Minute
	unattendedFor = 15 * time.Minute
	longestAwait  = 25 * time.Hour // for an allowance, when unattended: a day's, and an hour for the clocks

	attendedAttempts   = 8
	unattendedAttempts = 40

	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// retrier sends a request again when that may help. It is the only place that
// retries.
type retrier struct {
	llm.Model
	total    time.Duration // of all waits for one request; 0 or less: it is never sent again
	attempts int
	await    time.Duration // of all waits for an allowance, if that is longer
}

// retrier is how the agent waits for its model.
func (a *Agent) retrier() retrier {
	r := retrier{total: attendedFor, attempts: attendedAttempts}
	if a.Unattended || a.Patient {
		r = retrier{total: unattendedFor, attempts: unattendedAttempts, await: longestAwait}
	}
	if a.RetryFor != 0 {
		r.total, r.await = a.RetryFor, 0
	}
	return r
}

// Patience is how long the agent waits, all together, for one request that fails in such a way.
func (a *Agent) Patience(k llm.Kind) time.Duration { return a.retrier().patience(k) }

// retrying is the wrapper of models that a retrier makes.
func (a *Agent) retrying(m llm.Model) llm.Model {
	r := a.retrier()
	r.Model = m
	return r
}

// patience bounds all waits for one request after failures of a kind.
func (r retrier) patience(k llm.Kind) time.Duration {
	if k.Policy() == llm.PolicyAwait {
		return max(r.total, r.await, 0)
	}
	return max(r.total, 0)
}

// wait is how long the agent waits before it asks. A log may hold a wait that
// was begun with more patience than there is now, or by a version that had no
// bounds. It is cut then: if it is too early, the vendor will say so again.
func (a *Agent) wait(n loop.Ask) time.Duration {
	left := time.Until(n.NotBefore)
	if left > a.Patience(n.Awaits) {
		return 0
	}
	return left
}

// Stream implements [llm.Model]. Each new attempt is announced by a Retry chunk.
func (r retrier) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		waited := map[llm.Policy]time.Duration{}
		renewed := false
		for attempt := 1; ; attempt++ {
			err, open := r.attempt(ctx, req, waited, yield)
			if err == nil || !open {
				return
			}
			policy := err.Kind.Policy()
			wait, again := r.next(attempt, err, waited[policy])
			if policy == llm.PolicyRenew && !renewed {
				wait, again, renewed = 0, true, true
			}
			if !again || ctx.Err() != nil {
				yield(llm.Chunk{}, r.given(err, waited[policy]))
				return
			}
			waited[policy] += wait
			if !yield(llm.Chunk{Retry: &llm.Retry{Attempt: attempt + 1, Wait: wait.Seconds(), Cause: err}}, nil) {
				return
			}
			if keep.Sleep(ctx, wait) != nil {
				yield(llm.Chunk{}, &llm.Error{Kind: llm.KindCancelled, Err: context.Cause(ctx)})
				return
			}
		}
	}
}

// next says whether a request that failed is to be sent again, and when, after
// so much time was spent waiting.
func (r retrier) next(attempt int, err *llm.Error, waited time.Duration) (wait time.Duration, again bool) {
	switch err.Kind.Policy() {
	case llm.PolicyRetry, llm.PolicyAwait:
		wait = pause(attempt, err)
		patience := r.patience(err.Kind)
		if err.Shorter > 0 {
			patience = min(patience, attendedFor)
		}
		return wait, attempt < r.attempts && waited+wait <= patience
	}
	return 0, false
}

// given is the error to give up with: that the prompt is too long, if a model would answer a shorter one.
func (r retrier) given(err *llm.Error, waited time.Duration) *llm.Error {
	if err.Shorter == 0 {
		return r.told(err, waited)
	}
	return &llm.Error{
		Kind: llm.KindWindow, Provider: err.Provider, Used: err.Used, Limit: err.Shorter, Private: err.Private, Err: err,
		Message: fmt.Sprintf("%v; the model that is up takes %d tokens", err, err.Shorter),
	}
}

// told is an error that no other model can help. It says when to try again if that is further
// away than the patience lasts.
func (r retrier) told(err *llm.Error, waited time.Duration) *llm.Error {
	patience := r.patience(err.Kind)
	switch p := err.Kind.Policy(); {
	case p != llm.PolicyRetry && p != llm.PolicyAwait, err.RetryAfter <= max(patience-waited, 0):
		return err
	}
	e := *err
	if e.Message == "" && e.Err != nil {
		e.Message = e.Err.Error()
	}
	when := "try again in " + max(e.RetryAfter.Round(time.Second), time.Second).String()
	if patience > 0 {
		when += " (one request waits at most " + patience.String() + ")"
	}
	e.Message = strings.TrimPrefix(strings.TrimSuffix(e.Message, ".")+"; "+when, "; ")
	return &e
}

// attempt passes one stream on. It returns how it failed, nil if it did not,
// and whether the consumer still listens. What it waits for before it is sent counts as waited, and is
// not waited for if that takes too long.
func (r retrier) attempt(
	ctx context.Context, req llm.Request, waited map[llm.Policy]time.Duration, yield func(llm.Chunk, error) bool,
) (failed *llm.Error, open bool) {
	for chunk, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			return llm.AsError(err), true
		}
		if held := chunk.Retry; held != nil && held.Cause != nil {
			policy, wait := held.Cause.Kind.Policy(), time.Duration(held.Wait*float64(time.Second))
			if waited[policy]+wait > r.patience(held.Cause.Kind) {
				return held.Cause, true
			}
			waited[policy] += wait
		}
		if !yield(chunk, nil) {
			return nil, false
		}
	}
	return nil, true
}

// pause is how long to wait after a failed attempt: as long as the vendor
// asks, or twice as long each time, give or take a quarter.
func pause(attempt int, e *llm.Error) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	wait := min(firstWait<<(attempt-1), longestWait)
	return wait*3/4 + rand.N(wait/2)
}

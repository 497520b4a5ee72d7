package request

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// Bounds on the retries of one request. A person at a terminal wants to know soon that retrying is useless. An
// unattended request may wait until a quota renews.
//
// These bounds and the context limit every wait for a provider: the waits of a request ([Retry.Wrap]) and of a resumed
// log ([Retry.Remaining]). Models below this package wait for at most a minute; see package limit.
const (
	attendedFor   = time.Minute
	unattendedFor = 15 * time.Minute
	longestAwait  = 25 * time.Hour // for a quota, when unattended: a day, and an hour for inexact clocks

	attendedAttempts   = 8
	unattendedAttempts = 40

	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// Retry bounds the retries of a failed request. Its wrapper is the only place that retries.
type Retry struct {
	total    time.Duration // bound on all waits for one request; 0 or less means no retries
	attempts int
	await    time.Duration // bound on all waits for a quota, if that is longer
}

// NewRetry returns the bounds for an agent. Watched means that a person is waiting. Total overrides the bound on the
// waits for one request; 0 means the default, a negative value no retries.
func NewRetry(watched bool, total time.Duration) Retry {
	r := Retry{total: attendedFor, attempts: attendedAttempts}
	if !watched {
		r = Retry{total: unattendedFor, attempts: unattendedAttempts, await: longestAwait}
	}
	if total != 0 {
		r.total, r.await = total, 0
	}
	return r
}

// Patience returns the bound on the sum of all waits for one request after failures of this kind.
func (r Retry) Patience(k llm.Kind) time.Duration {
	if reaction.To(k) == reaction.Await {
		return max(r.total, r.await, 0)
	}
	return max(r.total, 0)
}

// Remaining returns how long to wait before a request that the log asks for. If an earlier driver with larger bounds
// began a wait that exceeds the current bounds, the request is sent at once. If that is too early, the provider will
// say so again.
func (r Retry) Remaining(n loop.Ask) time.Duration {
	left := time.Until(n.NotBefore)
	if left > r.Patience(n.WaitCause) {
		return 0
	}
	return left
}

// Wrap returns the model with retries.
func (r Retry) Wrap(m llm.Model) llm.Model { return retrier{m, r} }

// retrier is a model that sends a failed request again if that may help.
type retrier struct {
	llm.Model
	Retry
}

// Stream implements [llm.Model]. It announces each new attempt with a Retry chunk.
func (r retrier) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		waited := map[reaction.Reaction]time.Duration{}
		renewed := false
		for attempt := 1; ; attempt++ {
			err, open := r.attempt(ctx, req, waited, yield)
			if err == nil || !open {
				return
			}
			react := reaction.To(err.Kind)
			wait, again := r.next(attempt, err, waited[react])
			if react == reaction.Renew && !renewed {
				wait, again, renewed = 0, true, true
			}
			if !again || ctx.Err() != nil {
				yield(llm.Chunk{}, r.final(err, waited[react]))
				return
			}
			waited[react] += wait
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

// next returns whether to send a failed request again, and how long to wait before that, after having waited for a total
// of waited.
func (r retrier) next(attempt int, err *llm.Error, waited time.Duration) (wait time.Duration, again bool) {
	switch reaction.To(err.Kind) {
	case reaction.Retry, reaction.Await:
		wait = pause(attempt, err)
		patience := r.Patience(err.Kind)
		if err.Shorter > 0 {
			patience = min(patience, attendedFor)
		}
		return wait, attempt < r.attempts && waited+wait <= patience
	}
	return 0, false
}

// final returns the error after the last attempt. If another model would answer a shorter prompt, it says that the
// prompt is too long, so that the conversation is compacted.
func (r retrier) final(err *llm.Error, waited time.Duration) *llm.Error {
	if err.Shorter == 0 {
		return r.explained(err, waited)
	}
	return &llm.Error{
		Kind: llm.KindWindow, Provider: err.Provider, Used: err.Used, Limit: err.Shorter, Private: err.Private, Err: err,
		Message: fmt.Sprintf("%v; the model that is up takes %d tokens", err, err.Shorter),
	}
}

// explained adds when to try again, if that is later than the bounds allow to wait.
func (r retrier) explained(err *llm.Error, waited time.Duration) *llm.Error {
	react, patience := reaction.To(err.Kind), r.Patience(err.Kind)
	if react != reaction.Retry && react != reaction.Await || err.RetryAfter <= max(patience-waited, 0) {
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

// attempt passes one stream on. It returns the error of the stream, if any, and whether the consumer still wants more.
// Time in a limiter below counts as waiting. If that would take too long, the attempt fails at once.
func (r retrier) attempt(
	ctx context.Context, req llm.Request, waited map[reaction.Reaction]time.Duration, yield func(llm.Chunk, error) bool,
) (failed *llm.Error, open bool) {
	for chunk, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			return llm.AsError(err), true
		}
		if limited := chunk.Retry; limited != nil && limited.Cause != nil {
			react, wait := reaction.To(limited.Cause.Kind), time.Duration(limited.Wait*float64(time.Second))
			if waited[react]+wait > r.Patience(limited.Cause.Kind) {
				return limited.Cause, true
			}
			waited[react] += wait
		}
		if !yield(chunk, nil) {
			return nil, false
		}
	}
	return nil, true
}

// pause returns how long to wait after a failed attempt: as long as the provider asks, or twice as long each time, plus
// or minus a quarter.
func pause(attempt int, e *llm.Error) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	wait := min(firstWait<<(attempt-1), longestWait)
	return wait*3/4 + rand.N(wait/2)
}

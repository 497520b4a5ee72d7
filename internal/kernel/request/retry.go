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
	"github.com/inspan/inspan/llm"
)

// How long one request is retried. A person at a terminal wants to hear soon that retrying is useless; an
// unattended request may wait until the vendor grants a new allowance.
//
// These bounds and the context limit every wait for a vendor: the waits of a request ([Retry.Wrap]) and of a
// resumed log ([Retry.Remaining]). Nothing below this package waits for more than a minute; see package limit.
const (
	attendedFor   = time.Minute
	unattendedFor = 15 * time.Minute
	longestAwait  = 25 * time.Hour // for an allowance, when unattended: a day, and an hour for inexact clocks

	attendedAttempts   = 8
	unattendedAttempts = 40

	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// Retry says how long a failed request is retried. Its wrapper is the only place that retries.
type Retry struct {
	total    time.Duration // of all waits for one request; 0 or less means it is sent once
	attempts int
	await    time.Duration // of all waits for an allowance, if that is longer
}

// NewRetry returns how long an agent retries. Watched means that a person is waiting. Total overrides the bound
// on the waits for one request; 0 means the default, a negative value no retries.
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
	if k.Policy() == llm.PolicyAwait {
		return max(r.total, r.await, 0)
	}
	return max(r.total, 0)
}

// Remaining returns how long to wait before a request that the log asks for. The log may hold a wait that began
// with more patience than there is now. Such a wait is dropped: if the request comes too early, the vendor says
// so again.
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
				yield(llm.Chunk{}, r.final(err, waited[policy]))
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

// next returns whether and when to send a failed request again, after waiting for so long in total.
func (r retrier) next(attempt int, err *llm.Error, waited time.Duration) (wait time.Duration, again bool) {
	switch err.Kind.Policy() {
	case llm.PolicyRetry, llm.PolicyAwait:
		wait = pause(attempt, err)
		patience := r.Patience(err.Kind)
		if err.Shorter > 0 {
			patience = min(patience, attendedFor)
		}
		return wait, attempt < r.attempts && waited+wait <= patience
	}
	return 0, false
}

// final returns the error to give up with. It says that the prompt is too long if a model would answer a
// shorter one.
func (r retrier) final(err *llm.Error, waited time.Duration) *llm.Error {
	if err.Shorter == 0 {
		return r.explained(err, waited)
	}
	return &llm.Error{
		Kind: llm.KindWindow, Provider: err.Provider, Used: err.Used, Limit: err.Shorter, Private: err.Private, Err: err,
		Message: fmt.Sprintf("%v; the model that is up takes %d tokens", err, err.Shorter),
	}
}

// explained adds when to try again, if that is beyond the patience.
func (r retrier) explained(err *llm.Error, waited time.Duration) *llm.Error {
	patience := r.Patience(err.Kind)
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

// attempt passes one stream on. It returns how the stream failed, or nil, and whether the consumer still
// listens. Time during which a limiter below holds the request counts as waiting; if that takes too long, the
// attempt fails at once.
func (r retrier) attempt(
	ctx context.Context, req llm.Request, waited map[llm.Policy]time.Duration, yield func(llm.Chunk, error) bool,
) (failed *llm.Error, open bool) {
	for chunk, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			return llm.AsError(err), true
		}
		if held := chunk.Retry; held != nil && held.Cause != nil {
			policy, wait := held.Cause.Kind.Policy(), time.Duration(held.Wait*float64(time.Second))
			if waited[policy]+wait > r.Patience(held.Cause.Kind) {
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

// pause returns how long to wait after a failed attempt: as long as the vendor asks, or twice as long each
// time, plus or minus a quarter.
func pause(attempt int, e *llm.Error) time.Duration {
	if e.RetryAfter > 0 {
		return e.RetryAfter
	}
	wait := min(firstWait<<(attempt-1), longestWait)
	return wait*3/4 + rand.N(wait/2)
}

package inspan

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/inspan/inspan/llm"
)

// Patience is how long one request is tried again. Whoever sits at a terminal
// rather hears soon that it is of no use; where nobody waits, it may take as long
// as it takes the vendor to give a new allowance.
const (
	attendedFor   = time.Minute
	unattendedFor = 15 * time.Minute
	longestAwait  = 25 * time.Hour // for an allowance, when unattended: a day's, and an hour for the clocks

	attendedAttempts   = 8
	unattendedAttempts = 40

	firstWait   = 500 * time.Millisecond
	longestWait = 30 * time.Second
)

// retrying sends a request again when that may help. It is the only place that
// retries. total bounds the waits for one request: 0 means what is usual,
// negative never.
func retrying(total time.Duration, unattended bool) func(llm.Model) llm.Model {
	r := retrier{total: attendedFor, attempts: attendedAttempts}
	if unattended {
		r = retrier{total: unattendedFor, attempts: unattendedAttempts, await: longestAwait}
	}
	if total != 0 {
		r.total, r.await = total, 0
	}
	return func(m llm.Model) llm.Model { r.Model = m; return r }
}

type retrier struct {
	llm.Model
	total    time.Duration // of all waits for one request
	attempts int
	await    time.Duration // of one wait for an allowance, beside total
}

// Stream implements [llm.Model]. Each new attempt is announced by a Retry chunk.
func (r retrier) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		left := r.total
		renewed := false
		for attempt := 1; ; attempt++ {
			err, open := r.attempt(ctx, req, yield)
			if err == nil || !open {
				return
			}
			wait, again := r.next(attempt, err, left)
			if err.Kind.Policy() == llm.PolicyRenew && !renewed {
				wait, again, renewed = 0, true, true
			}
			if !again || ctx.Err() != nil {
				yield(llm.Chunk{}, err)
				return
			}
			if err.Kind != llm.KindQuota {
				left -= wait
			}
			if !yield(llm.Chunk{Retry: &llm.Retry{Attempt: attempt + 1, Wait: wait.Seconds(), Cause: err}}, nil) {
				return
			}
			if !sleep(ctx, wait) {
				yield(llm.Chunk{}, llm.AsError(ctx.Err()))
				return
			}
		}
	}
}

// next says whether a request that failed is to be sent again, and when, with
// so much time left for waiting.
func (r retrier) next(attempt int, err *llm.Error, left time.Duration) (wait time.Duration, again bool) {
	wait = pause(attempt, err)
	switch err.Kind.Policy() {
	case llm.PolicyRetry:
		return wait, attempt < r.attempts && wait <= left
	case llm.PolicyAwait:
		return wait, attempt < r.attempts && wait <= max(left, r.await)
	}
	return 0, false
}

// attempt passes one stream on. It returns how it failed, nil if it did not,
// and whether the consumer still listens.
func (r retrier) attempt(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) (failed *llm.Error, open bool) {
	for chunk, err := range r.Model.Stream(ctx, req) {
		if err != nil {
			return llm.AsError(err), true
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

// sleep waits, and reports whether it was left to.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

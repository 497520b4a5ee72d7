package inspan

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/inspan/inspan/llm"
)

const (
	defaultRetryFor = time.Minute
	maxAttempts     = 8
	firstWait       = 500 * time.Millisecond
	longestWait     = 20 * time.Second
)

// retrying sends a request again when that may help, for at most the given
// time in all. It is the only place that retries.
func retrying(total time.Duration) func(llm.Model) llm.Model {
	if total == 0 {
		total = defaultRetryFor
	}
	return func(m llm.Model) llm.Model { return retrier{m, total} }
}

type retrier struct {
	llm.Model
	total time.Duration
}

// Stream implements [llm.Model]. Each new attempt is announced by a Retry chunk.
func (r retrier) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		left := r.total
		for attempt := 1; ; attempt++ {
			err, open := r.attempt(ctx, req, yield)
			if err == nil || !open {
				return
			}
			wait := pause(attempt, err)
			if p := err.Kind.Policy(); p != llm.PolicyRetry && p != llm.PolicyAwait || attempt == maxAttempts || wait > left || ctx.Err() != nil {
				yield(llm.Chunk{}, err)
				return
			}
			left -= wait
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

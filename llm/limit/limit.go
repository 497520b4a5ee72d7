// Package limit holds back what is sent to a model: so many requests and tokens
// a minute, and so much money a day. All sessions that use one key share one
// [Limit] and one [Budget], also those of other processes, through a small file
// each:
//
//	pace := &limit.Limit{Path: "work.pace", Requests: 50, Tokens: 200_000}
//	purse := &limit.Budget{Path: "work.spent", PerDay: 20}
//	m = purse.Model(pace.Model(m))
//
// A request that comes too early waits, and says so by an [llm.Retry] chunk.
// When the vendor asks one session to wait, all of them do. A request that would
// cost beyond the budget is not sent.
package limit

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/inspan/inspan/llm"
)

// Limit is what one key may send. The zero value sets no limit of its own, but
// pauses when the vendor asks for it. The fields are not to be changed once it
// is in use; then it is safe for concurrent use. Do not copy it.
type Limit struct {
	// Path is the file that holds the state, shared by all processes that use
	// the key; its folder is made if need be. Empty: the state is this process's
	// own, and so it is while the file can't be used.
	//
	// If the file is lost or damaged, the state starts anew: at worst a minute's
	// worth is sent too early. On systems without flock(2) processes may
	// overwrite each other's state.
	Path string
	// Requests that may be sent a minute; 0: no limit.
	Requests int
	// Tokens of prompts that may be sent a minute, by an estimate of 3.5 bytes
	// each; 0: no limit. What a cache holds counts too.
	Tokens int

	state record[pace]
}

// pace is the state of a limit. Times are in nanoseconds since 1970.
type pace struct {
	Requests int64    `json:"requests"` // when the next request would come if all came evenly
	Tokens   int64    `json:"tokens"`   // the same for the next token
	Paused   int64    `json:"paused"`   // nothing is sent until then
	Kind     llm.Kind `json:"kind"`     // why
	Written  int64    `json:"written"`
}

// tolerance is how far requests may run ahead of an even pace: a tenth of what
// a minute allows may be sent at once.
const tolerance = int64(6 * time.Second)

// skew is how far clocks may differ. A state from a later time is not believed.
const skew = int64(time.Minute)

// due returns when something that comes now may be sent, and when the next one
// of its kind would be due. next is when it was due itself, and cost the time
// that it takes up.
//
// It is the generic cell rate algorithm in its form as virtual scheduling
// (ITU-T Recommendation I.371, annex A), which does what a bucket of tokens
// does and needs to remember no more than one time.
func due(next, now, cost int64) (start, after int64) {
	return max(now, next-tolerance), max(now, next) + cost
}

// share is the time that n of so many a minute take up.
func share(n, perMinute int) int64 {
	return int64(float64(time.Minute) * float64(n) / float64(perMinute))
}

// Model returns m held to the limit. A request waits as long as the limit or a
// pause demands, after a Retry chunk that says how long. It waits for no
// allowance that is used up (KindQuota), as that may take hours: it fails with
// the vendor's kind and the time that is left, and is not sent.
func (l *Limit) Model(m llm.Model) llm.Model { return limited{m, l} }

type limited struct {
	llm.Model
	limit *Limit
}

// Stream implements [llm.Model].
func (m limited) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if !m.admit(ctx, req, yield) {
			return
		}
		for chunk, err := range m.Model.Stream(ctx, req) {
			if err != nil {
				m.limit.heed(ctx, llm.AsError(err))
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// admit waits until the request may be sent. It reports whether it may; if not
// it has yielded why.
func (m limited) admit(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) bool {
	place := m.limit.queue(ctx, req)
	for ctx.Err() == nil {
		wait, cause := place.left()
		if cause == nil {
			return true
		}
		cause.Provider = m.Info().Provider
		switch {
		case cause.Kind == llm.KindQuota:
			m.limit.leave(ctx, place)
			yield(llm.Chunk{}, cause)
			return false
		case !yield(llm.Chunk{Retry: &llm.Retry{Attempt: 1, Wait: wait.Seconds(), Cause: cause}}, nil):
			m.limit.leave(ctx, place)
			return false
		}
		if sleep(ctx, wait) {
			m.limit.look(ctx, &place)
		}
	}
	m.limit.leave(ctx, place)
	yield(llm.Chunk{}, llm.AsError(ctx.Err()))
	return false
}

// place is a request's place in the queue.
type place struct {
	start            int64 // when it may be sent, pauses aside
	requests, tokens int64 // the time it takes up
	paused           int64
	kind             llm.Kind
}

// longestJitter bounds what is added to a pause.
const longestJitter = time.Minute

// left is how long a request must still wait, and why; nil if it need not. At
// the end of a pause not all come back at once: each waits up to a tenth longer.
func (p place) left() (time.Duration, *llm.Error) {
	now := time.Now().UnixNano()
	wait, pause := time.Duration(p.start-now), time.Duration(p.paused-now)
	if pause > 0 && (pause >= wait || p.kind == llm.KindQuota) {
		pause += rand.N(min(pause/10, longestJitter) + 1)
		if p.kind == llm.KindQuota {
			return pause, &llm.Error{Kind: p.kind, RetryAfter: pause, Message: "an allowance of this key is used up; nothing was sent"}
		}
		return pause, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: pause, Message: "the vendor asked this key to wait"}
	}
	if wait > 0 {
		return wait, &llm.Error{Kind: llm.KindRateLimited, RetryAfter: wait, Message: "held back to keep to the limits of this key"}
	}
	return 0, nil
}

// queue takes the next free place for a request.
func (l *Limit) queue(ctx context.Context, req llm.Request) place {
	var p place
	l.change(ctx, func(s *pace, now int64) {
		p = place{start: now}
		if l.Requests > 0 {
			var start int64
			p.requests = share(1, l.Requests)
			start, s.Requests = due(s.Requests, now, p.requests)
			p.start = max(p.start, start)
		}
		if l.Tokens > 0 {
			var start int64
			p.tokens = share(tokens(req), l.Tokens)
			start, s.Tokens = due(s.Tokens, now, p.tokens)
			p.start = max(p.start, start)
		}
		p.paused, p.kind = s.Paused, s.Kind
	})
	return p
}

// look brings what a place knows of pauses up to date.
func (l *Limit) look(ctx context.Context, p *place) {
	l.change(ctx, func(s *pace, _ int64) { p.paused, p.kind = s.Paused, s.Kind })
}

// leave gives a place back that was not used. Those behind it keep theirs.
func (l *Limit) leave(ctx context.Context, p place) {
	if p.requests == 0 && p.tokens == 0 {
		return
	}
	l.change(context.WithoutCancel(ctx), func(s *pace, _ int64) {
		s.Requests -= p.requests
		s.Tokens -= p.tokens
	})
}

// heed lets all sessions pause if the vendor asks for it. Nobody gets a place
// that falls into the pause.
func (l *Limit) heed(ctx context.Context, e *llm.Error) {
	switch e.Kind {
	case llm.KindRateLimited, llm.KindOverloaded, llm.KindQuota:
	default:
		return
	}
	if e.RetryAfter <= 0 {
		return
	}
	l.change(context.WithoutCancel(ctx), func(s *pace, now int64) {
		until := now + int64(e.RetryAfter)
		if until <= s.Paused {
			return
		}
		s.Paused, s.Kind = until, e.Kind
		s.Requests, s.Tokens = max(s.Requests, until), max(s.Tokens, until)
	})
}

// change changes the shared state, or that of this process if there is no other.
// It may do nothing if ctx has ended.
func (l *Limit) change(ctx context.Context, f func(s *pace, now int64)) {
	do := func(s *pace, known bool) error {
		now := time.Now().UnixNano()
		if !known || s.Written > now+skew {
			*s = pace{}
		}
		before := *s
		if f(s, now); *s != before {
			s.Written = now
		}
		return nil
	}
	if err := l.state.update(ctx, l.Path, do); err != nil && ctx.Err() == nil {
		_ = l.state.update(ctx, "", do) // in memory nothing fails
	}
}

// tokens is about the size of a prompt.
func tokens(req llm.Request) int { return req.Bytes() * 2 / 7 }

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

// Package limit limits the requests and tokens sent to a model in a minute, and the money spent in a day. All
// sessions that use one key share one [Limit] and one [Budget], even in other processes, through a small file each:
//
//	pace := &limit.Limit{Path: "work.pace", Requests: 50, Tokens: 200_000}
//	purse := &limit.Budget{Path: "work.spent", PerDay: 20}
//	m = purse.Model(pace.Model(m))
//
// A request that comes a little too early waits, and reports it in an [llm.Retry] chunk. One that would have to
// wait for more than a minute fails at once with the remaining time, and is not sent: the caller decides
// whether to wait that long. When the vendor asks one session to wait, all of them do, except for one request
// every five minutes, which finds out whether the pause is over. A request that would exceed the budget is not
// sent.
//
// Don't use it for limits of one session: those are fields of the agent. This package limits what many sessions
// spend together.
package limit

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/llm"
)

// Limit limits the requests of one key. The zero value has no limits of its own, but pauses when the vendor
// asks for it. The fields must not be changed once it is in use; then it is safe for concurrent use. Do not
// copy it.
//
// A pause is as long as the vendor asks, but at most an hour, or a day and an hour for an exhausted quota. While it
// lasts, one request every five minutes is still sent, among all processes that share the file. If it is answered,
// the pause is over for everyone; if the vendor asks for another wait, that one counts, so a wrong answer of a
// vendor costs minutes.
type Limit struct {
	// Path is the file with the state, shared by all processes that use the key; its folder is created if
	// needed. Empty, or if the file can't be used: the state is kept in this process only.
	//
	// If the file is lost or damaged, the state starts over: at worst a minute's worth is sent too early. On
	// systems without flock(2), processes may overwrite each other's state.
	Path string
	// Requests that may be sent in a minute; 0 means no limit.
	Requests int
	// Tokens of prompts that may be sent in a minute, estimated at 3.5 bytes each; 0 means no limit. Cached tokens
	// count too.
	Tokens int
	// Unpaused says that pauses of the vendor do not count here. Vendors count per model: with this limit for a
	// key, and another around it for each model, a pause of one model does not stop the others.
	Unpaused bool

	state record[pace]
}

// longestWait is how long a request waits here altogether, for its turn and for the end of a pause. Most limits
// of vendors are per minute, so most pauses end within it.
const longestWait = time.Minute

// Model returns m with the limit applied. A request waits for its turn, or for the end of a pause, if that is
// at most a minute away, after a Retry chunk with the duration. If it is further away, the request is not sent
// and takes no place: the stream fails with KindRateLimited, or KindQuota for an exhausted quota, and with the
// time after which to ask again.
func (l *Limit) Model(m llm.Model) llm.Model { return limited{m, l} }

type limited struct {
	llm.Model
	limit *Limit
}

// Stream implements [llm.Model].
func (m limited) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		place, ok := m.admit(ctx, req, yield)
		if !ok {
			return
		}
		for chunk, err := range m.Model.Stream(ctx, req) {
			switch {
			case err != nil:
				m.limit.heed(ctx, llm.AsError(err), place)
			case place.probe && chunk.Retry == nil && chunk.Routed == nil:
				m.limit.lift(ctx, place)
				place.probe = false
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// admit waits until the request may be sent, and reports whether it may; if not it has yielded the reason.
func (m limited) admit(ctx context.Context, req llm.Request, yield func(llm.Chunk, error) bool) (place, bool) {
	until := time.Now().Add(longestWait)
	p := m.limit.queue(ctx, req)
	for ctx.Err() == nil {
		wait, cause := p.left()
		if cause == nil {
			return p, true
		}
		cause.Provider = m.Info().Provider
		if p.after(until) {
			m.limit.leave(ctx, p)
			yield(llm.Chunk{}, cause)
			return p, false
		}
		if !yield(llm.Chunk{Retry: &llm.Retry{Attempt: 1, Wait: wait.Seconds(), Cause: cause}}, nil) {
			m.limit.leave(ctx, p)
			return p, false
		}
		if keep.Sleep(ctx, wait) == nil {
			m.limit.look(ctx, &p)
		}
	}
	m.limit.leave(ctx, p)
	yield(llm.Chunk{}, &llm.Error{Kind: llm.KindCancelled, Provider: m.Info().Provider, Err: context.Cause(ctx)})
	return p, false
}

// queue takes the next free place for a request. If that is too far away it takes none, and the place gives the
// reason why.
func (l *Limit) queue(ctx context.Context, req llm.Request) place {
	var p place
	l.change(ctx, func(s *pace, now int64) {
		p = place{pause: s.pause}
		after, from := *s, now
		if s.Paused-now > int64(longestWait) && s.Probe <= now {
			p.probe, after.Probe = true, now+int64(probeEvery)
		} else {
			from = max(now, s.Paused)
		}
		l.take(&p, &after, from, req)
		if p.after(time.Unix(0, now).Add(longestWait)) {
			p.probe, p.requests, p.tokens = false, 0, 0
			return
		}
		*s = after
	})
	return p
}

// take computes when a request that comes at a time may be sent, and the state afterwards.
func (l *Limit) take(p *place, s *pace, from int64, req llm.Request) {
	p.start = from
	var start int64
	if l.Requests > 0 {
		p.requests = share(1, l.Requests)
		start, s.Requests = due(s.Requests, from, p.requests)
		p.start = max(p.start, start)
	}
	if l.Tokens > 0 {
		p.tokens = share(tokens(req), l.Tokens)
		start, s.Tokens = due(s.Tokens, from, p.tokens)
		p.start = max(p.start, start)
	}
}

// look updates a place with the current pause.
func (l *Limit) look(ctx context.Context, p *place) {
	l.change(ctx, func(s *pace, _ int64) { p.pause = s.pause })
}

// leave returns an unused place. Those after it keep theirs. An interrupted caller does not wait for this.
func (l *Limit) leave(ctx context.Context, p place) {
	if p.requests == 0 && p.tokens == 0 && !p.probe {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	l.change(ctx, func(s *pace, now int64) {
		s.Requests -= p.requests
		s.Tokens -= p.tokens
		if p.probe {
			s.Probe = now
		}
	})
}

// heed pauses all sessions if the vendor asks for it. The answer to a probe replaces the earlier one.
func (l *Limit) heed(ctx context.Context, e *llm.Error, p place) {
	switch e.Kind {
	case llm.KindRateLimited, llm.KindOverloaded, llm.KindQuota:
	default:
		return
	}
	if e.RetryAfter <= 0 || l.Unpaused || errors.Is(e, errHeld) {
		return
	}
	l.change(context.WithoutCancel(ctx), func(s *pace, now int64) {
		until := now + int64(min(e.RetryAfter, longestPause(e.Kind)))
		news := p.probe && s.Paused == p.Paused
		if news || until > s.Paused {
			s.pause = pause{Paused: until, Kind: e.Kind, Probe: now + int64(probeEvery)}
		}
	})
}

// lift ends the pause in which the vendor has answered a probe.
func (l *Limit) lift(ctx context.Context, p place) {
	l.change(context.WithoutCancel(ctx), func(s *pace, _ int64) {
		if s.Paused == p.Paused {
			s.pause = pause{}
		}
	})
}

// change changes the shared state, or this process's if there is no shared one. It may do nothing if ctx has
// ended.
func (l *Limit) change(ctx context.Context, f func(s *pace, now int64)) {
	do := func(s *pace, known bool) error {
		now := time.Now().UnixNano()
		if !known || s.Written > now+skew {
			*s = pace{}
		}
		before := *s
		s.bound(now)
		if f(s, now); *s != before {
			s.Written = now
		}
		return nil
	}
	if err := l.state.update(ctx, l.Path, do); err != nil && ctx.Err() == nil {
		_ = l.state.update(ctx, "", do) // in memory nothing fails
	}
}

// tokens estimates the size of a prompt.
func tokens(req llm.Request) int { return req.Bytes() * 2 / 7 }

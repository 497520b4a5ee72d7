package limit

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/llm"
)

// Budget is a daily spending limit for one key. Before a request is sent it reserves the most that the request can
// cost, and later returns the rest. If that is more than the others' reservations leave, the request waits for
// them; if nothing else is running, it is sent as long as anything is left, so all processes together exceed the
// limit by at most one request. Once the limit for today is reached, requests fail with KindBudget and are not
// sent.
//
// What counts is the usage reported by completed replies, even if the caller drops them; a model without a known
// price costs nothing. A killed process releases its reservation. The fields must not be changed once it is in use;
// then it is safe for concurrent use. Do not copy it.
type Budget struct {
	// Path is the file with the amount spent, shared by all processes that use the key; its folder is created if
	// needed. Empty means it is kept in this process only. A killed process loses no counted amount; a power
	// failure may lose the file, which then counts as missing. On systems without flock(2), processes may overwrite
	// each other's sums, and don't see each other's reservations.
	Path string
	// PerDay is the most to spend in a day, in US dollars; 0 means no limit. Days are in UTC.
	PerDay float64
	// Seed returns the amount spent today according to another source, such as session logs. It is called once
	// if the file is missing or unreadable; others wait meanwhile. If it fails, the amount is 0. May be nil.
	Seed func(ctx context.Context) (float64, error)

	state record[spent]

	mu   sync.Mutex
	owed float64 // what could not be written yet
	held holding
}

// spent is the state of a budget.
type spent struct {
	Day string  `json:"day"`
	USD float64 `json:"usd"`
}

// Model returns m with the budget applied.
func (b *Budget) Model(m llm.Model) llm.Model {
	if b.PerDay <= 0 {
		return m
	}
	return budgeted{m, b}
}

type budgeted struct {
	llm.Model
	budget *Budget
}

// Stream implements [llm.Model]. A request that waits for others reports it in a Retry chunk.
func (m budgeted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		p := payment{budgeted: m, req: req, info: m.Info()}
		if !p.reserve(ctx, yield) {
			return
		}
		defer p.settle(ctx)
		for chunk, err := range m.Model.Stream(ctx, req) {
			switch {
			case chunk.Routed != nil:
				p.judged(ctx, chunk.Routed)
				p.info = chunk.Routed.Info
				// Nothing has been sent to this one yet.
				if !p.reserve(ctx, yield) {
					return
				}
			case chunk.Reply != nil:
				dollars, _ := p.info.Prices.Bill(time.Now(), chunk.Reply.Used(req))
				p.pay(ctx, dollars)
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// payment is the reservation of a request.
type payment struct {
	budgeted
	req  llm.Request
	info llm.Info // of who answers
	held float64
	runs bool // it has reserved
}

// usualOutput is the assumed maximum length of a reply if it is unknown, in tokens.
const usualOutput = 8192

// most returns the most that the request can cost.
func (p *payment) most() float64 {
	price, _ := p.info.Prices.At(time.Now())
	in, out := p.req.Tokens(), cmp.Or(p.req.MaxOutput, p.info.MaxOutput, usualOutput)
	return max(price.Cost(llm.Usage{Input: in, Output: out}), price.Cost(llm.Usage{CacheWrite: in, Output: out}))
}

// Intervals at which a request waits for those of others.
const (
	firstLook = 20 * time.Millisecond // doubled with each further one
	lastLook  = time.Second
)

// reserve waits until the request may be sent, and reports whether it may; if not it has yielded the reason.
func (p *payment) reserve(ctx context.Context, yield func(llm.Chunk, error) bool) bool {
	most := p.most()
	for look := firstLook; ; look = min(2*look, lastLook) {
		ok, err := p.budget.reserve(ctx, p, most)
		if err != nil {
			p.settle(ctx)
			err.Provider = p.info.Provider
			yield(llm.Chunk{}, err)
			return false
		}
		if ok {
			return true
		}
		if look == firstLook {
			e := &llm.Error{
				Kind: llm.KindBudget, Provider: p.info.Provider,
				Message: "other requests may use up what is left of the day; waiting for them",
			}
			if !yield(llm.Chunk{Retry: &llm.Retry{Attempt: 1, Wait: look.Seconds(), Cause: e}}, nil) {
				return false
			}
		}
		if keep.Sleep(ctx, look) != nil {
			yield(llm.Chunk{}, llm.AsError(context.Cause(ctx)))
			return false
		}
	}
}

// pay counts the cost of a reply and returns the rest of the reservation.
func (p *payment) pay(ctx context.Context, cost float64) {
	p.budget.pay(ctx, cost, p)
}

// settle returns the reservation if there was no reply.
func (p *payment) settle(ctx context.Context) {
	if p.runs {
		p.pay(ctx, 0)
	}
}

// judged counts the cost of choosing a model.
func (p *payment) judged(ctx context.Context, r *llm.Routed) {
	if r.Judge != nil {
		dollars, _ := r.Judge.Info.Prices.Bill(time.Now(), r.Judge.Usage)
		p.budget.pay(ctx, dollars, nil)
	}
}

// reserve lets a request go if possible, and replaces its earlier reservation. The error is for a request that
// must not be sent.
func (b *Budget) reserve(ctx context.Context, p *payment, most float64) (ok bool, failed *llm.Error) {
	if ctx.Err() != nil {
		return false, llm.AsError(ctx.Err())
	}
	err := b.change(ctx, 0, func(s *spent) error {
		others, running, err := b.others()
		if err != nil {
			return err
		}
		others, running = others+b.held.usd, running+b.held.running
		if p.runs {
			others, running = others-p.held, running-1
		}
		switch {
		case s.USD >= b.PerDay:
			failed = &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("$%.4f spent today of $%.4f; the day ends at 00:00 UTC", s.USD, b.PerDay)}
			return nil
		case most > 0 && running > 0 && s.USD+others+most > b.PerDay:
			return p.back() // two that wait for each other would wait forever
		}
		ok = true
		return p.hold(most)
	})
	switch {
	case ctx.Err() != nil:
		return false, llm.AsError(ctx.Err())
	case err != nil:
		return false, &llm.Error{Kind: llm.KindBudget, Message: "can't tell what was spent today: " + err.Error(), Err: err}
	}
	return ok, failed
}

// hold replaces the reservation.
func (p *payment) hold(most float64) error {
	more, runs := most-p.held, 0
	if !p.runs {
		runs = 1
	}
	p.held, p.runs = most, true
	return p.budget.take(runs, more)
}

// back returns the reservation.
func (p *payment) back() error {
	if p == nil || !p.runs {
		return nil
	}
	held := p.held
	p.held, p.runs = 0, false
	return p.budget.take(-1, -held)
}

// pay counts a cost and returns a payment's reservation. An amount that can't be written is written with the
// next one.
func (b *Budget) pay(ctx context.Context, cost float64, p *payment) {
	if cost <= 0 && (p == nil || !p.runs) {
		return
	}
	_ = b.change(context.WithoutCancel(ctx), cost, func(*spent) error { return p.back() })
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = p.back() // if the lock could not be had
}

// change adds to the amount spent today, and calls do with the sum, under the lock of the record.
func (b *Budget) change(ctx context.Context, cost float64, do func(s *spent) error) error {
	b.mu.Lock()
	cost, b.owed = cost+b.owed, 0
	b.mu.Unlock()
	err := b.state.update(ctx, b.Path, func(s *spent, known bool) error {
		if err := b.today(ctx, s, known); err != nil {
			return err
		}
		s.USD += cost
		b.mu.Lock()
		defer b.mu.Unlock()
		return do(s)
	})
	if err != nil {
		b.mu.Lock()
		b.owed += cost
		b.mu.Unlock()
	}
	return err
}

// today moves the state to the current day. A state of a later day came from a wrong clock. The error is that
// of ctx.
func (b *Budget) today(ctx context.Context, s *spent, known bool) error {
	day := time.Now().UTC().Format(time.DateOnly)
	if known && s.Day == day {
		return nil
	}
	fresh := known && s.Day < day
	*s = spent{Day: day}
	if fresh || b.Seed == nil {
		return nil
	}
	usd, err := b.Seed(ctx)
	if err == nil {
		s.USD = max(usd, 0)
	}
	return ctx.Err()
}

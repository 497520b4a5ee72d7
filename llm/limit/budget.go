package limit

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
)

// Budget is what one key may cost. Once so much was spent today that the limit
// is reached, requests fail with KindBudget and are not sent. Calls that are
// under way by then still count: each session may go beyond by one.
//
// What counts is the price of what was used by replies that came to their end;
// a model without a known price costs nothing. The fields are not to be changed
// once it is in use; then it is safe for concurrent use. Do not copy it.
type Budget struct {
	// Path is the file that holds what was spent, shared by all processes that
	// use the key; its folder is made if need be. Empty: it is kept for the life
	// of this process. A process that is killed loses nothing that was counted;
	// a loss of power may lose the file, which then counts as not there. On
	// systems without flock(2) processes may overwrite each other's sums.
	Path string
	// PerDay is the most to spend in a day, in US dollars; 0: no limit. The day
	// is that of UTC.
	PerDay float64
	// Seed says what was spent today as far as is known elsewhere, such as in
	// session logs. It is asked once if the file is not there or can't be
	// understood; others wait meanwhile. If it fails, nothing was spent. May be
	// nil.
	Seed func(ctx context.Context) (float64, error)

	state record[spent]

	mu   sync.Mutex
	owed float64 // what could not be written yet
}

// spent is the state of a budget.
type spent struct {
	Day string  `json:"day"`
	USD float64 `json:"usd"`
}

// Model returns m held to the budget.
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

// Stream implements [llm.Model].
func (m budgeted) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		info := m.Info()
		if err := m.budget.check(ctx); err != nil {
			err.Provider = info.Provider
			yield(llm.Chunk{}, err)
			return
		}
		for chunk, err := range m.Model.Stream(ctx, req) {
			switch {
			case chunk.Routed != nil:
				info = chunk.Routed.Info
			case chunk.Reply != nil:
				price, _ := info.Prices.At(time.Now())
				m.budget.add(ctx, price.Cost(chunk.Reply.Used(req)))
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// check returns the error for a request that must not be sent; nil: it may.
func (b *Budget) check(ctx context.Context) *llm.Error {
	if ctx.Err() != nil {
		return llm.AsError(ctx.Err())
	}
	total, err := b.record(ctx, 0)
	switch {
	case ctx.Err() != nil:
		return llm.AsError(ctx.Err())
	case err != nil:
		return &llm.Error{Kind: llm.KindBudget, Message: "can't tell what was spent today: " + err.Error(), Err: err}
	case total >= b.PerDay:
		return &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf("$%.4f spent today of $%.4f; the day ends at 00:00 UTC", total, b.PerDay)}
	}
	return nil
}

// add counts what a reply has cost. What can't be written is written with the
// next.
func (b *Budget) add(ctx context.Context, cost float64) {
	if cost > 0 {
		_, _ = b.record(context.WithoutCancel(ctx), cost)
	}
}

// record adds to what was spent today and returns the sum.
func (b *Budget) record(ctx context.Context, cost float64) (total float64, err error) {
	b.mu.Lock()
	cost, b.owed = cost+b.owed, 0
	b.mu.Unlock()
	err = b.state.update(ctx, b.Path, func(s *spent, known bool) error {
		if err := b.today(ctx, s, known); err != nil {
			return err
		}
		s.USD += cost
		total = s.USD
		return nil
	})
	if err != nil {
		b.mu.Lock()
		b.owed += cost
		b.mu.Unlock()
	}
	return total, err
}

// today lets the state be that of the current day. A state of a later day is
// that of a clock which went wrong. The error is that of ctx.
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

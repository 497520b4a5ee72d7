package subagent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/models/reaction"
	"github.com/inspan/inspan/llm"
)

// Stops of a whole tree of sessions. Both are stored in the log of the session at the top, and hold until its
// next run:
//
//   - the breaker, when the tree uses more in a minute than it may: no request is sent and nothing begins any more, all work
//     is interrupted, and the run stops with its reason;
//   - a pause, when a vendor says that a quota is used up: the whole tree waits for it.
const (
	interval     = time.Minute
	usualFactor  = 10         // factor of its usual minute that a tree may use in one minute
	usualDollars = 10         // always allowed
	usualTokens  = 10_000_000 // the same for models without a known price
	mostMinutes  = 60         // minutes that determine the usual one
	usualPause   = time.Minute
)

// usage is an amount of tokens and money.
type usage struct {
	event.Rate
	unpriced int64 // those of tokens without a known price
}

func (u usage) add(v usage) usage {
	u.Cost, u.Tokens, u.unpriced = u.Cost+v.Cost, u.Tokens+v.Tokens, u.unpriced+v.unpriced
	return u
}

func (u usage) less(v usage) usage {
	u.Cost, u.Tokens, u.unpriced = max(0, u.Cost-v.Cost), u.Tokens-v.Tokens, u.unpriced-v.unpriced
	return u
}

// meter measures recent usage.
type meter struct {
	last  []usageAt // within the interval, the oldest first
	began time.Time // start of the current minute
	now   usage     // in it
	past  []usage   // in earlier minutes, without idle ones
}

type usageAt struct {
	at time.Time
	usage
}

func (m *meter) count(at time.Time, u usage) {
	if u == (usage{}) {
		return
	}
	m.roll(at)
	m.last = append(m.last, usageAt{at, u})
	m.now = m.now.add(u)
}

// roll drops old entries.
func (m *meter) roll(at time.Time) {
	old := 0
	for old < len(m.last) && at.Sub(m.last[old].at) >= interval {
		old++
	}
	m.last = m.last[old:]
	if m.began.IsZero() {
		m.began = at
	}
	if at.Sub(m.began) < interval {
		return
	}
	if m.now != (usage{}) {
		m.past = append(m.past, m.now)
		m.past = m.past[max(0, len(m.past)-mostMinutes):]
	}
	m.began, m.now = at, usage{}
}

// recent returns the usage within the interval.
func (m *meter) recent(at time.Time) (u usage) {
	m.roll(at)
	for _, l := range m.last {
		u = u.add(l.usage)
	}
	return u
}

// medianOf returns the median of the earlier minutes.
func medianOf[N cmp.Ordered](m *meter, of func(usage) N) (n N) {
	if len(m.past) == 0 {
		return n
	}
	var list []N
	for _, u := range m.past {
		list = append(list, of(u))
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// brake is the state of a stopped tree.
type brake struct {
	run    int    // run of the session at the top for which it holds
	why    string // why the breaker has stopped it; empty means it has not
	paused event.Paused
}

// excessOf returns the reason why the usage is too high; empty if it is not. Input of requests in progress counts,
// because it will be used. The caller holds the lock of the top's budget, and this is the top.
func (t *Team) excessOf(agreed event.Rate) (why string, rate event.Rate) {
	m := &t.budget.meter
	u := m.recent(time.Now()).add(t.budget.sends)
	dollars := max(usualDollars, usualFactor*medianOf(m, func(u usage) float64 { return u.Cost }), 2*agreed.Cost)
	tokens, used := max(usualTokens, usualFactor*medianOf(m, func(u usage) int64 { return u.unpriced }), 2*agreed.Tokens), u.unpriced
	if t.MinuteCost != nil {
		dollars = *t.MinuteCost
	}
	if t.MinuteTokens != nil {
		tokens, used = *t.MinuteTokens, u.Tokens
	}
	switch {
	case dollars > 0 && u.Cost >= dollars:
		why = fmt.Sprintf("$%.2f within a minute by the session and the agents that work for it, of at most $%.2f", u.Cost, dollars)
	case tokens > 0 && used >= tokens:
		why = fmt.Sprintf("%d tokens within a minute by the session and the agents that work for it, of at most %d", used, tokens)
	}
	return why, u.Rate
}

// trip stops the tree if it uses too much, and gives the reason why. The caller holds the lock of the top's budget,
// and this is the top.
func (t *Team) trip(ctx context.Context) string {
	s := t.openSession()
	if s == nil {
		return ""
	}
	b := &t.budget.brake
	if b.why == "" {
		why, rate := t.excessOf(s.Status().Rate)
		if b.why = why; why != "" {
			// If it can't be stored, this process still sends nothing.
			_ = s.Send(context.WithoutCancel(ctx), event.Cancelled{By: "inspan", Reason: why, All: true, Limit: event.ReasonRate, Rate: &rate})
		}
	}
	return b.why
}

// stoppedBy returns the reason that stops the tree. This is the top.
func (t *Team) stoppedBy() (p event.Paused, why string) {
	s := t.openSession()
	if s == nil {
		return p, ""
	}
	st := s.Status()
	t.budget.mu.Lock()
	defer t.budget.mu.Unlock()
	b := &t.budget.brake
	if st.Runs > b.run { // a person has agreed to continue
		if b.why != "" {
			t.budget.meter.last = nil
		}
		*b = brake{run: st.Runs}
	}
	if p = b.paused; st.Paused != nil && st.Paused.Until.After(p.Until) {
		p = *st.Paused
	}
	return p, cmp.Or(st.RateExceeded, b.why)
}

// awaitPause waits while the tree is paused, if that is not longer than the patience for it. The error gives the
// reason why nothing may begin.
func (t *Team) awaitPause(ctx context.Context, patience func(llm.Kind) time.Duration) error {
	for {
		p, why := t.top().stoppedBy()
		left := time.Until(p.Until)
		switch {
		case why != "":
			return &llm.Error{Kind: llm.KindBudget, Message: why}
		case left <= 0:
			return nil
		case patience == nil || left > patience(p.Cause):
			return &llm.Error{Kind: p.Cause, RetryAfter: left, Message: p.Message}
		}
		if keep.Sleep(ctx, min(left, time.Second)) != nil { // it may be lifted earlier
			return llm.AsError(context.Cause(ctx))
		}
	}
}

// pauseForQuota pauses the tree if a request has failed because a quota is used up.
func (t *Team) pauseForQuota(ctx context.Context, e *llm.Error) {
	top := t.top()
	s := top.openSession()
	if s == nil || reaction.To(e.Kind) != reaction.Await {
		return
	}
	now := time.Now()
	p := event.Paused{Until: now.Add(cmp.Or(e.RetryAfter, usualPause)).UTC(), Cause: e.Kind, Message: e.Message}
	if mine := t.openSession(); t != top && mine != nil {
		p.Child = mine.ID()
	}
	top.budget.mu.Lock()
	defer top.budget.mu.Unlock()
	if b := &top.budget.brake; !b.paused.Until.After(now) {
		b.paused = p
		_ = s.Send(context.WithoutCancel(ctx), p) // else it holds only for this process
	}
}

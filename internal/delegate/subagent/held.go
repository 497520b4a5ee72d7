package subagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/safety/guard"
	"github.com/inspan/inspan/llm"
)

// held is a model that is asked only while the limits of the tree are not reached, nobody has
// stopped the tree, and it does not wait for a vendor. A request that could go beyond the limits
// waits for those under way, and one whose prompt alone would is not sent, so that a tree spends at most
// one reply more than it may.
type held struct {
	llm.Model
	team     *Team
	patience func(llm.Kind) time.Duration
}

// hold has all requests of an agent checked first: those of its session, which also write the
// summaries, and those of its reviewer.
func (t *Team) hold(a *inspan.Agent) {
	a.Model = &held{a.Model, t, a.RetryTime}
	for _, j := range a.Judges {
		if r, ok := j.(*guard.Reviewer); ok && r.Model != nil {
			r.Model = &held{r.Model, t, a.RetryTime}
		}
	}
}

// Held is a model whose requests are checked as those of the session are, for what asks one beside
// it.
func (t *Team) Held(m llm.Model) llm.Model { return &held{m, t, t.patience} }

// Stream implements [llm.Model].
func (h *held) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		c := claimed(h.Info(), req)
		if err := h.reserve(ctx, c); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		var used usage
		purse := &h.team.top().purse
		defer func() { purse.back(c, used) }()
		for chunk, err := range h.Model.Stream(ctx, req) {
			switch e := (*llm.Error)(nil); {
			case errors.As(err, &e):
				used = used.add(spent(e.Spent)) // a check has refused the answer
				h.team.refused(ctx, e)
			case chunk.Routed != nil:
				// Nothing has gone out to this one yet, and it may be dearer.
				purse.back(c, spent(chunk.Routed.Judge))
				c = claimed(chunk.Routed.Info, req)
				if err := h.reserve(ctx, c); err != nil {
					c = claim{}
					purse.enter() // for what is given back at the end
					yield(llm.Chunk{}, err)
					return
				}
			case chunk.Reply != nil:
				used = used.add(c.priced(chunk.Reply.Used(req)))
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// claim is what a request can cost.
type claim struct {
	info  llm.Info
	most  float64
	least float64 // if all of the prompt is in the vendor's cache, and nothing comes back
	sends usage   // it uses that in any case, if it comes so far
}

func claimed(info llm.Info, req llm.Request) claim {
	c := claim{info: info}
	in := llm.Usage{Input: req.Tokens()}
	c.sends = c.priced(in)
	c.least = c.sends.Cost
	if price, _ := info.Prices.At(time.Now()); price.CacheRead > 0 {
		c.least = c.priced(llm.Usage{CacheRead: in.Input}).Cost
	}
	in.Output = cmp.Or(req.MaxOutput, info.MaxOutput, usualOutput)
	c.most = c.priced(in).Cost
	return c
}

// priced is what tokens of the model are, also in money.
func (c claim) priced(u llm.Usage) usage {
	dollars, known := c.info.Prices.Bill(time.Now(), u)
	out := usage{}
	out.Cost, out.Tokens = dollars, total(u)
	if !known {
		out.unpriced = out.Tokens
	}
	return out
}

// spent is what was spent, if anything was.
func spent(s *llm.Spent) usage {
	if s == nil {
		return usage{}
	}
	return claim{info: s.Info}.priced(s.Usage)
}

// usualOutput is the most that a reply is taken to hold where that is not known, in tokens.
const usualOutput = 8192

// purse is what requests of a tree of sessions have spent and may spend.
type purse struct {
	mu      sync.Mutex
	running int
	held    float64       // that those which run may cost at most
	spent   float64       // at least, also by replies that no session has counted yet
	change  chan struct{} // closed when one comes back; nil: nobody waits

	meter meter
	sends usage // by those that run
	brake brake
}

// reserve waits until a request may be sent. One that nothing runs beside is sent as long as its prompt
// reaches no limit.
func (h *held) reserve(ctx context.Context, c claim) error {
	t := h.team
	for {
		if err := t.clear(ctx, h.patience); err != nil {
			return err
		}
		if why := t.exhausted(); why != "" {
			return &llm.Error{Kind: llm.KindBudget, Message: why}
		}
		wait, err := t.admit(ctx, c)
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return llm.AsError(context.Cause(ctx))
		}
	}
}

// admit lets a request go, or returns what is closed when it is worth asking again.
func (t *Team) admit(ctx context.Context, c claim) (wait <-chan struct{}, err error) {
	p := &t.top().purse
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := t.top().tripped(ctx); why != "" {
		return nil, &llm.Error{Kind: llm.KindBudget, Message: why}
	}
	switch {
	case p.running == 0 && !t.fits(c.least):
		return nil, &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf(
			"the limit of money of the session and the agents that work for it is reached: the next request alone costs $%.4f or more", c.least)}
	case p.running > 0 && !t.fits(p.held+c.most):
		if p.change == nil {
			p.change = make(chan struct{})
		}
		return p.change, nil
	}
	p.running++
	p.held += c.most
	p.sends = p.sends.add(c.sends)
	return nil, nil
}

// enter counts a request that has reserved nothing.
func (p *purse) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
}

// back returns what a request has reserved, and tells what it has used.
func (p *purse) back(c claim, used usage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.held = max(0, p.held-c.most)
	p.sends = p.sends.less(c.sends)
	p.spent += used.Cost
	p.meter.count(time.Now(), used)
	if p.change != nil {
		close(p.change)
		p.change = nil
	}
}

// fits reports whether the sessions from this one up have so much left. The purse of the top
// is locked.
func (t *Team) fits(more float64) bool {
	for at := t; at != nil; at = at.up {
		limits, ok := at.limits()
		if !ok || limits.Cost == 0 {
			continue
		}
		cost, _ := at.spent()
		if at.up == nil {
			at.purse.spent = max(at.purse.spent, cost)
			cost = at.purse.spent
		}
		if cost+more > limits.Cost {
			return false
		}
	}
	return true
}

// top is the team of the session that works for no other.
func (t *Team) top() *Team {
	for t.up != nil {
		t = t.up
	}
	return t
}

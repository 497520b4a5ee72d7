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

// limitedModel is a model that gets requests only while the limits of the tree are not reached, the tree is not
// stopped, and it does not wait for a vendor. A request that could exceed the limits waits for those in
// progress, and one whose prompt alone would is not sent. So a tree exceeds its limits by at most one reply.
type limitedModel struct {
	llm.Model
	team     *Team
	patience func(llm.Kind) time.Duration
}

// limitModel makes all requests of an agent be checked first: those of its session, which also write the summaries,
// and those of its reviewer.
func (t *Team) limitModel(a *inspan.Agent) {
	a.Model = &limitedModel{a.Model, t, a.RetryTime}
	for _, j := range a.Judges {
		if r, ok := j.(*guard.Reviewer); ok && r.Model != nil {
			r.Model = &limitedModel{r.Model, t, a.RetryTime}
		}
	}
}

// WithLimits returns a model whose requests are checked like those of the session, for requests outside of its
// conversation.
func (t *Team) WithLimits(m llm.Model) llm.Model { return &limitedModel{m, t, t.patience} }

// Stream implements [llm.Model].
func (h *limitedModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		c := costOf(h.Info(), req)
		if err := h.reserve(ctx, c); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		var used usage
		budget := &h.team.top().budget
		defer func() { budget.settle(c, used) }()
		for chunk, err := range h.Model.Stream(ctx, req) {
			switch e := (*llm.Error)(nil); {
			case errors.As(err, &e):
				used = used.add(spent(e.Spent)) // a check has refused the reply
				h.team.pauseForQuota(ctx, e)
			case chunk.Routed != nil:
				// Nothing was sent to this model yet, and it may be more expensive.
				budget.settle(c, spent(chunk.Routed.Judge))
				c = costOf(chunk.Routed.Info, req)
				if err := h.reserve(ctx, c); err != nil {
					c = claim{}
					budget.countUnreserved() // for the release at the end
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

// claim is the possible cost of a request.
type claim struct {
	info  llm.Info
	most  float64
	least float64 // if the whole prompt is in the vendor's cache, and the reply is empty
	sends usage   // it uses that in any case, if it is sent
}

func costOf(info llm.Info, req llm.Request) claim {
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

// priced adds the price of the model to tokens.
func (c claim) priced(u llm.Usage) usage {
	dollars, known := c.info.Prices.Bill(time.Now(), u)
	out := usage{}
	out.Cost, out.Tokens = dollars, totalUsage(u)
	if !known {
		out.unpriced = out.Tokens
	}
	return out
}

// spent returns the usage, if there is any.
func spent(s *llm.Spent) usage {
	if s == nil {
		return usage{}
	}
	return claim{info: s.Info}.priced(s.Usage)
}

// usualOutput is the assumed size of a reply whose limit is unknown, in tokens.
const usualOutput = 8192

// sharedBudget is the money that requests of a tree of sessions have spent and may spend.
type sharedBudget struct {
	mu      sync.Mutex
	running int
	held    float64       // largest possible cost of those in progress
	spent   float64       // at least, including replies that no session has counted yet
	change  chan struct{} // closed when one returns; nil means nothing waits

	meter meter
	sends usage // by those in progress
	brake brake
}

// reserve waits until a request may be sent. If no other is in progress, it is sent as long as its prompt
// reaches no limit.
func (h *limitedModel) reserve(ctx context.Context, c claim) error {
	t := h.team
	for {
		if err := t.awaitPause(ctx, h.patience); err != nil {
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

// admit admits a request, or returns a channel that is closed when it makes sense to ask again.
func (t *Team) admit(ctx context.Context, c claim) (wait <-chan struct{}, err error) {
	p := &t.top().budget
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := t.top().trip(ctx); why != "" {
		return nil, &llm.Error{Kind: llm.KindBudget, Message: why}
	}
	switch {
	case p.running == 0 && !t.hasRoomFor(c.least):
		return nil, &llm.Error{Kind: llm.KindBudget, Message: fmt.Sprintf(
			"the limit of money of the session and the agents that work for it is reached: the next request alone costs $%.4f or more", c.least)}
	case p.running > 0 && !t.hasRoomFor(p.held+c.most):
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

// countUnreserved counts a request that has reserved nothing.
func (p *sharedBudget) countUnreserved() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
}

// settle releases the reservation of a request, and records its usage.
func (p *sharedBudget) settle(c claim, used usage) {
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

// hasRoomFor reports whether the sessions from this one up have so much left. The caller holds the lock of the top's
// budget.
func (t *Team) hasRoomFor(more float64) bool {
	for at := t; at != nil; at = at.up {
		limits, ok := at.limits()
		if !ok || limits.Cost == 0 {
			continue
		}
		cost, _ := at.spent()
		if at.up == nil {
			at.budget.spent = max(at.budget.spent, cost)
			cost = at.budget.spent
		}
		if cost+more > limits.Cost {
			return false
		}
	}
	return true
}

// top returns the team of the session that works for no other.
func (t *Team) top() *Team {
	for t.up != nil {
		t = t.up
	}
	return t
}

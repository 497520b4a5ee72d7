package subagent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
)

// held is a model that is asked only while the limits of the tree are not reached. A request
// that could go beyond them waits for those under way, so that a tree spends at most one
// request more than it may.
type held struct {
	llm.Model
	team *Team
}

// Stream implements [llm.Model].
func (h *held) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		price, most := worst(h.Info(), req)
		if err := h.team.reserve(ctx, most); err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		cost, purse := 0.0, &h.team.top().purse
		defer func() { purse.back(most, cost) }()
		for chunk, err := range h.Model.Stream(ctx, req) {
			switch e := (*llm.Error)(nil); {
			case errors.As(err, &e) && e.Spent != nil: // a check has refused the answer
				cost += dollars(e.Spent)
			case chunk.Routed != nil:
				// Nothing has gone out to this one yet, and it may be dearer.
				purse.back(most, dollars(chunk.Routed.Judge))
				price, most = worst(chunk.Routed.Info, req)
				if err := h.team.reserve(ctx, most); err != nil {
					purse.enter() // for what is given back at the end
					most = 0
					yield(llm.Chunk{}, err)
					return
				}
			case chunk.Reply != nil:
				cost += price.Cost(chunk.Reply.Used(req))
			}
			if !yield(chunk, err) {
				return
			}
		}
	}
}

// worst is the price of a model, and the most that a request to it can cost.
func worst(info llm.Info, req llm.Request) (price llm.Price, most float64) {
	price, _ = info.Prices.At(time.Now())
	return price, price.Cost(llm.Usage{Input: req.Tokens(), Output: cmp.Or(req.MaxOutput, info.MaxOutput, usualOutput)})
}

// dollars is what was spent, if anything was.
func dollars(s *llm.Spent) float64 {
	if s == nil {
		return 0
	}
	price, _ := s.Info.Prices.At(time.Now())
	return price.Cost(s.Usage)
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
}

// reserve waits until a request that costs so much at most may be sent. One that nothing
// runs beside is sent as long as no limit is reached.
func (t *Team) reserve(ctx context.Context, most float64) error {
	for {
		if why := t.exhausted(); why != "" {
			return &llm.Error{Kind: llm.KindBudget, Message: why}
		}
		wait, err := t.admit(most)
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
func (t *Team) admit(most float64) (wait <-chan struct{}, err error) {
	p := &t.top().purse
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.running == 0 && !t.fits(0): // by a reply that no session has counted yet
		return nil, &llm.Error{Kind: llm.KindBudget, Message: "the limit of money of the session and the agents that work for it is reached"}
	case p.running > 0 && !t.fits(p.held+most):
		if p.change == nil {
			p.change = make(chan struct{})
		}
		return p.change, nil
	}
	p.running++
	p.held += most
	return nil, nil
}

// enter counts a request that has reserved nothing.
func (p *purse) enter() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running++
}

// back returns what a request has reserved, and tells what it has cost.
func (p *purse) back(most, cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.held = max(0, p.held-most)
	p.spent += cost
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

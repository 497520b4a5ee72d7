package corpus

import (
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
)

// purse is the money of one call. A request is sent only if its largest possible cost is left, including those
// in progress.
type purse struct {
	set    *Set
	info   llm.Info
	priced bool
	most   float64 // dollars
	whose  string  // the limit's name

	mu       sync.Mutex
	settled  *sync.Cond // a request has ended
	spent    float64
	claimed  float64 // by requests in progress
	flying   int     // number of these
	requests int
}

// purse opens the purse of a call that may spend a budget; nil: the default.
func (s *Set) purse(info llm.Info, budget *float64) (*purse, error) {
	_, priced := info.Prices.At(time.Now())
	p := &purse{set: s, info: info, priced: priced, most: usualBudget, whose: "the budget of the call"}
	limited := budget != nil
	if limited {
		if p.most = *budget; p.most <= 0 {
			return nil, fmt.Errorf("budget is %v, which pays for nothing; leave it out for %v dollar", p.most, usualBudget)
		}
	}
	p.settled = sync.NewCond(&p.mu)
	if s.Left != nil {
		if left, bounded := s.Left(); bounded {
			s.mu.Lock()
			left -= s.held
			s.mu.Unlock()
			if limited = true; left < p.most {
				p.most, p.whose = max(left, 0), "what is left of the session's limit"
			}
		}
	}
	if limited && !priced {
		return nil, fmt.Errorf("a budget needs the price of %s; set it in the settings", info.Route())
	}
	return p, nil
}

// claim is the largest cost of one request.
type claim struct {
	purse *purse
	most  float64
}

// claim reserves the largest cost of a request, as soon as that is left. It returns an error if that will never
// be so.
func (p *purse) claim(req llm.Request) (claim, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.priced {
		if p.requests++; p.requests > freeRequests {
			return claim{}, fmt.Errorf("%d requests are the most of a call to a model whose price is not known", freeRequests)
		}
		p.flying++
		return claim{p, 0}, nil
	}
	most := priceOf(p.info, llm.Usage{Input: req.Tokens(), Output: req.MaxOutput})
	for p.flying > 0 && p.spent+p.claimed+most > p.most {
		p.settled.Wait() // requests in progress mostly cost less than they could
	}
	if p.spent+most > p.most {
		return claim{}, fmt.Errorf("%s of $%.4f does not suffice: $%.4f is spent, and the next request can cost $%.4f",
			p.whose, p.most, p.spent, most)
	}
	p.requests, p.flying, p.claimed = p.requests+1, p.flying+1, p.claimed+most
	p.hold(most)
	return claim{p, most}, nil
}

// hold reserves money that other calls of the session then can't spend.
func (p *purse) hold(dollars float64) {
	p.set.mu.Lock()
	p.set.held += dollars
	p.set.mu.Unlock()
}

// settle records the usage of a request.
func (c claim) settle(info llm.Info, used llm.Usage) {
	cost := priceOf(info, used)
	c.purse.mu.Lock()
	defer c.purse.mu.Unlock()
	c.purse.flying, c.purse.claimed, c.purse.spent = c.purse.flying-1, c.purse.claimed-c.most, c.purse.spent+cost
	c.purse.hold(cost - c.most)
	c.purse.settled.Broadcast()
}

// spentSoFar returns the money spent.
func (p *purse) spentSoFar() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent
}

// close returns the money spent. From now on it counts as the session's.
func (p *purse) close() float64 {
	spent := p.spentSoFar()
	p.hold(-spent)
	return spent
}

func priceOf(info llm.Info, used llm.Usage) float64 {
	dollars, _ := info.Prices.Bill(time.Now(), used)
	return dollars
}

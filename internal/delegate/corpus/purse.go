package corpus

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// purse is the money of one call. A request is sent only if its largest possible cost is left, including those
// in progress. The same holds for tokens, if they are limited.
type purse struct {
	set        *Set
	limited    bool
	most       float64 // dollars
	whose      string  // the limit's name
	mostTokens int     // 0 means not limited

	mu       sync.Mutex
	settled  *sync.Cond // a request has ended
	spent    bill
	claimed  bill // by requests in progress
	flying   int  // number of these
	requests int  // to models without a known price
	closed   bool // its money is the session's
}

// bill is the cost of requests.
type bill struct {
	dollars float64
	tokens  int
}

func (b *bill) add(c bill, sign int) {
	b.dollars, b.tokens = b.dollars+float64(sign)*c.dollars, b.tokens+sign*c.tokens
}

// purse opens the purse of a call that may spend a budget; nil means the default.
func (s *Set) purse(info llm.Info, budget *float64) (*purse, error) {
	p := &purse{set: s, most: usualBudget, whose: "the budget of the call", limited: budget != nil}
	if p.limited {
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
			if p.limited = true; left < p.most {
				p.most, p.whose = max(left, 0), "what is left of the session's limit"
			}
		}
	}
	_, err := p.priced(info)
	return p, err
}

// priced reports whether the price of a model is known. A budget needs it.
func (p *purse) priced(info llm.Info) (bool, error) {
	_, priced := info.Prices.At(time.Now())
	if p.limited && !priced {
		return false, fmt.Errorf("a budget needs the price of %s; set it in the settings", info.Route())
	}
	return priced, nil
}

// claim is the largest cost of one request.
type claim struct {
	purse *purse
	info  llm.Info
	most  bill
	bill  *bill // what it cost, with the attempts before it; read it only after they have ended
}

// claim reserves the largest cost of a request, as soon as that is left. It returns an error if that will never
// be so.
func (p *purse) claim(info llm.Info, req llm.Request) (claim, error) {
	priced, err := p.priced(info)
	if err != nil {
		return claim{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	most := bill{tokens: req.Tokens() + req.MaxOutput}
	if priced {
		most.dollars = priceOf(info, llm.Usage{Input: req.Tokens(), Output: req.MaxOutput})
	} else if p.requests++; p.requests > freeRequests {
		return claim{}, fmt.Errorf("%d requests are the most of a call to a model whose price is not known", freeRequests)
	}
	fits := func(open bill) bool {
		return (!priced || p.spent.dollars+open.dollars+most.dollars <= p.most) &&
			(p.mostTokens == 0 || p.spent.tokens+open.tokens+most.tokens <= p.mostTokens)
	}
	for p.flying > 0 && !fits(p.claimed) {
		p.settled.Wait() // requests in progress mostly cost less than they could
	}
	switch {
	case fits(bill{}):
	case priced && p.spent.dollars+most.dollars > p.most:
		return claim{}, fmt.Errorf("%s of $%.4f does not suffice: $%.4f is spent, and the next request can cost $%.4f",
			p.whose, p.most, p.spent.dollars, most.dollars)
	default:
		return claim{}, fmt.Errorf("the limit of %d tokens does not suffice: %d are spent, and the next request can take %d",
			p.mostTokens, p.spent.tokens, most.tokens)
	}
	p.flying++
	p.claimed.add(most, 1)
	p.hold(most.dollars)
	return claim{p, info, most, &bill{}}, nil
}

// hold reserves money that other calls of the session then can't spend.
func (p *purse) hold(dollars float64) {
	p.set.mu.Lock()
	p.set.held += dollars
	p.set.mu.Unlock()
}

// settle records the usage of a request.
func (c claim) settle(info llm.Info, used llm.Usage) {
	cost := bill{priceOf(info, used), used.Input + used.Output + used.CacheRead + used.CacheWrite}
	c.bill.add(cost, 1)
	c.purse.mu.Lock()
	defer c.purse.mu.Unlock()
	c.purse.flying--
	c.purse.claimed.add(c.most, -1)
	c.purse.spent.add(cost, 1)
	if !c.purse.closed { // a request that was stopped with its program may end later
		c.purse.hold(cost.dollars - c.most.dollars)
	}
	c.purse.settled.Broadcast()
}

// spentSoFar returns the money spent.
func (p *purse) spentSoFar() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent.dollars
}

// close returns the money spent. From now on it counts as the session's.
func (p *purse) close() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.hold(-p.spent.dollars - p.claimed.dollars)
	return p.spent.dollars
}

func priceOf(info llm.Info, used llm.Usage) float64 {
	dollars, _ := info.Prices.Bill(time.Now(), used)
	return dollars
}

// purses are those of running programs, by the id of their call.
type purses struct {
	mu     sync.Mutex
	byCall map[string]*purse
}

// purseOf returns the purse of the program that has made a call. It may spend what the session has left, or the usual
// budget if the session has no limit.
func (s *Set) purseOf(c *tool.Call, info llm.Info) (*purse, error) {
	s.purses.mu.Lock()
	defer s.purses.mu.Unlock()
	if p := s.purses.byCall[c.Parent]; p != nil {
		return p, nil
	}
	var budget *float64
	if s.Left != nil {
		if left, bounded := s.Left(); bounded && left > 0 {
			budget = &left
		}
	}
	p, err := s.purse(info, budget)
	if err != nil {
		return nil, err
	}
	if s.Limits.Tokens > 0 {
		var left past
		if raw, ok := c.Store[programStore]; ok {
			if err := json.Unmarshal(raw, &left); err != nil {
				return nil, err
			}
		}
		p.mostTokens = max(1, s.Limits.Tokens-left.Tokens)
	}
	if s.purses.byCall == nil {
		s.purses.byCall = map[string]*purse{}
	}
	s.purses.byCall[c.Parent] = p
	return p, nil
}

// closePurse ends the purse of a program, and returns the tokens that were spent.
func (s *Set) closePurse(call string) (tokens int) {
	s.purses.mu.Lock()
	defer s.purses.mu.Unlock()
	p := s.purses.byCall[call]
	if p == nil {
		return 0
	}
	delete(s.purses.byCall, call)
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spent.tokens
}

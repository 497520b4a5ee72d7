package mcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/tool"
)

// patience ends a call that takes too long. The time that a person takes to answer
// what its server asks does not count.
type patience struct {
	call  *tool.Call
	whole time.Duration
	live  context.Context //nolint:containedctx // ends with the call
	end   context.CancelFunc

	asking sync.Mutex // held while the person is asked: one question at a time

	mu     sync.Mutex
	timer  *time.Timer
	pauses int
	asks   int
	over   bool
	spent  float64 // US dollars, on a model that the server asked
}

// begin notes a call, after whose time cancel is called.
func (c *client) begin(call *tool.Call, whole time.Duration, cancel func()) *patience {
	if whole <= 0 {
		whole = callTime
	}
	p := &patience{call: call, whole: whole, timer: time.AfterFunc(whole, cancel)}
	p.live, p.end = context.WithCancel(context.Background())
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, p)
	return p
}

// over forgets a call that has ended, and tells what was spent for it in US dollars.
func (c *client) over(p *patience) (spent float64) {
	c.mu.Lock()
	c.calls = slices.DeleteFunc(c.calls, func(o *patience) bool { return o == p })
	c.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.timer.Stop()
	p.end()
	return p.spent
}

// ask puts a question of the server before the person, for as long as the call goes
// on.
func (p *patience) ask(ctx context.Context, question string, options []string) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	p.asks++
	much := p.asks > maxAsks || p.over
	p.mu.Unlock()
	if much {
		return "", errors.New("the server asks too much, or too late")
	}
	ctx, cancel := p.within(ctx)
	defer cancel()
	return p.call.Ask(ctx, question, options)
}

// within is ctx, done with the call at the latest.
func (p *patience) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.live, cancel)
	return ctx, func() { stop(); cancel() }
}

// whom is the call that a question of the server belongs to: servers do not say
// so, and the one begun last is most likely. Nil: none goes on that can ask.
func (c *client) whom() *patience {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range slices.Backward(c.calls) {
		if p.call.Ask != nil {
			return p
		}
	}
	return nil
}

// again gives the whole time again, as there was a sign of life.
func (p *patience) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pauses == 0 && !p.over {
		p.timer.Reset(p.whole)
	}
}

// pause lets no time pass until the function it returns is called. Then the whole
// time is there again.
func (p *patience) pause() (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pauses++
	p.timer.Stop()
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pauses--; p.pauses == 0 && !p.over {
			p.timer.Reset(p.whole)
		}
	}
}

// pay counts what was spent for the call, in US dollars.
func (p *patience) pay(cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += cost
}

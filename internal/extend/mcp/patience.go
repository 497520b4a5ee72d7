package mcp

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/tool"
)

// patience ends a call that takes too long. The time in which a person answers the server's questions does not
// count.
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

// begin records a call. Cancel is called when its time is over.
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

// over forgets a call that has ended, and returns its cost in US dollars.
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

// ask asks the person a server's question while the call is running.
func (p *patience) ask(ctx context.Context, question string, options []string) (string, error) {
	p.asking.Lock()
	defer p.asking.Unlock()
	p.mu.Lock()
	p.asks++
	much := p.asks > maxAsks || p.over
	p.mu.Unlock()
	if much {
		return "", errors.New("the server asks too often, or too late")
	}
	ctx, cancel := p.within(ctx)
	defer cancel()
	return p.call.Ask(ctx, question, options)
}

// within returns a ctx that also ends with the call.
func (p *patience) within(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(p.live, cancel)
	return ctx, func() { stop(); cancel() }
}

// whom returns the call that a server's question belongs to: servers do not say, and the newest call is the most
// likely. Nil means no running call can ask.
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

// again restarts the time limit after a sign of life.
func (p *patience) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pauses == 0 && !p.over {
		p.timer.Reset(p.whole)
	}
}

// pause stops the time limit until the returned function is called, which restarts it.
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

// pay adds to the cost of the call, in US dollars.
func (p *patience) pay(cost float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += cost
}

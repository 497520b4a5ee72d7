package wiretest

import (
	"net/http"
	"sync"

	"github.com/inspan/inspan/harnesstest"
)

// Player plays turns to a model under test: a fake vendor answers with it. A is an answer in the vendor's form.
type Player[A any] struct {
	render func(harnesstest.Turn) A
	out    A

	mu       sync.Mutex
	turns    []harnesstest.Turn
	requests []string
}

// Play returns a player of turns, one a request, in order. Out is the answer when there are no more.
func Play[A any](turns []harnesstest.Turn, render func(harnesstest.Turn) A, out A) *Player[A] {
	return &Player[A]{render: render, out: out, turns: turns}
}

// Answer returns the next turn in the vendor's form.
func (p *Player[A]) Answer(_ *http.Request, body []byte) A {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, string(body))
	if len(p.turns) == 0 {
		return p.out
	}
	turn := p.turns[0]
	p.turns = p.turns[1:]
	return p.render(turn)
}

// Requests returns the requests so far, as sent.
func (p *Player[A]) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

package subagent

import (
	"context"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// question is one of a child that the session's log holds, or will.
type question struct {
	kid *kid
	id  string // what the child calls it
}

// settle puts the calls of a child that wait before whoever answers for the
// session, and returns once one of them is decided, or late.
func (t *Team) settle(k *kid, waiting []inspan.Pending) error {
	var until time.Time
	for _, p := range waiting {
		if !p.Until.IsZero() && (until.IsZero() || p.Until.Before(until)) {
			until = p.Until
		}
		t.put(k, event.Raised{
			ID: p.Call.ID, Tool: p.Call.Name, Args: p.Call.Args, Effects: p.Effects,
			Reason: p.Reason, Preview: p.Preview, Rules: p.Rules, Until: p.Until,
		})
	}
	var late <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-k.woken:
	case <-late:
	case <-k.ctx.Done():
		return context.Cause(k.ctx)
	case <-k.stopping: // its run is to end in order
	}
	return nil
}

// raise passes a question on that a child of the child has raised.
func (t *Team) raise(k *kid, r event.Raised) {
	r.Agent = k.order.Role.Name + " › " + r.Agent
	t.put(k, r)
}

// put has a question in the session's log, once, and remembers whose it is.
func (t *Team) put(k *kid, r event.Raised) {
	q := question{k, r.ID}
	r.ID, r.Child, r.Call = short(k.id)+"/"+r.ID, k.id, ""
	if r.Agent == "" {
		r.Agent = k.order.Role.Name
	}
	t.mu.Lock()
	if k.raised[r.ID] { // it stands there, or its answer is on its way to the child
		t.mu.Unlock()
		return
	}
	k.raised[r.ID] = true
	earlier, done := t.decided[r.ID]
	delete(t.decided, r.ID)
	if !done {
		t.asked[r.ID] = q
	}
	t.mu.Unlock()
	if done {
		t.pass(q, earlier)
		return
	}
	// One that stands there already from before a crash is not noted twice.
	_ = t.session.Send(k.ctx, r)
}

// answer takes a decision from the session's log to the child that it is about.
func (t *Team) answer(d event.Decided) {
	t.mu.Lock()
	q, ok := t.asked[d.Call]
	delete(t.asked, d.Call)
	if !ok {
		t.decided[d.Call] = d
	}
	t.mu.Unlock()
	if ok {
		t.pass(q, d)
	}
}

// takeAnswered are the questions whose answer the child sees when it runs next.
func (t *Team) takeAnswered(k *kid) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen := k.answered
	k.answered = map[string]bool{}
	return seen
}

// forget lets questions be put again: a child that waits for an answer it has seen
// has made another call of that id.
func (t *Team) forget(k *kid, seen map[string]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range seen {
		delete(k.raised, id)
	}
}

func (t *Team) pass(q question, d event.Decided) {
	id := d.Call
	d.Call = q.id
	_ = q.kid.session.Send(q.kid.ctx, d)
	t.mu.Lock()
	q.kid.answered[id] = true // now that it is in the child's log
	t.mu.Unlock()
	select {
	case q.kid.woken <- struct{}{}:
	default: // it is to look again anyway
	}
}

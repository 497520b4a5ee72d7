package subagent

import (
	"context"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// asking names a question of a child: by the number of its event in the child's log, so
// that no other question ever has the name.
type asking struct {
	child string
	of    uint64
}

// question is one of a child that the session's log holds, or will. An answer is passed
// on to the very question that it was given to. Guarded by the team's lock.
type question struct {
	of       uint64 // its number in the child's log
	kid      *kid   // nil: the child does not work yet, since the program was started
	call     string // what the child calls it
	id       string // what the session's log calls it
	seq      uint64 // its number there; 0: it is on its way
	decision *event.Decided
	passed   bool // the decision is in the child's log, or on its way there
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
			ID: p.Call.ID, Of: p.Question, Tool: p.Call.Name, Args: p.Call.Args, Effects: p.Effects,
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

// raise passes a question on that stands open in the child's log: of a child of the child,
// or of a call of its own.
func (t *Team) raise(k *kid, r event.Raised) {
	for _, open := range k.session.Status().Raised {
		if open.ID == r.ID {
			r.Of, r.Agent = open.Seq, k.order.Role.Name+" › "+r.Agent
			t.put(k, r)
		}
	}
}

// put has a question in the session's log, once, and remembers whose it is. If it was
// decided while the child did not work, the child is told.
func (t *Team) put(k *kid, r event.Raised) {
	name := asking{k.id, r.Of}
	t.mu.Lock()
	q, known := t.question(name)
	q.kid, q.call = k, r.ID
	t.mu.Unlock()
	t.pass(q)
	if known {
		return
	}
	r.ID, r.Child, r.Call = short(k.id)+"/"+r.ID, k.id, ""
	if r.Agent == "" {
		r.Agent = k.order.Role.Name
	}
	_ = deliver(k.ctx, t.session, r) // or the child has ended
}

// question is the one of a name, and whether it was known before. t.mu is held.
func (t *Team) question(name asking) (q *question, known bool) {
	if q, known = t.questions[name]; !known {
		q = &question{of: name.of}
		t.questions[name] = q
	}
	return q, known
}

// heard takes note of what the session's log tells of questions.
func (t *Team) heard(e event.Event) {
	switch b := e.Body.(type) {
	case event.Raised:
		t.raised(e.Seq, b)
	case event.Decided:
		if q := t.decided(b); q != nil {
			t.pass(q)
		}
	}
}

// raised takes note of the number of a question. The first counts: the same question that
// is raised again changes nothing.
func (t *Team) raised(seq uint64, b event.Raised) {
	if b.Child == "" || b.Of == 0 { // a call of the session asks, or version 0.1 did
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q, _ := t.question(asking{b.Child, b.Of})
	if q.seq == 0 {
		q.id, q.seq = b.ID, seq
	}
}

// decided finds the question that a decision is on; nil if it is on none that is open.
func (t *Team) decided(d event.Decided) *question {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found *question
	for _, q := range t.questions {
		if q.seq > 0 && q.decision == nil && d.On(q.id, q.seq) && (found == nil || q.seq > found.seq) {
			found = q
		}
	}
	if found != nil {
		found.decision = &d
	}
	return found
}

// pass takes a decision to the child that asked, once there are both.
func (t *Team) pass(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.kid == nil || q.decision == nil || q.passed || t.closed {
		return
	}
	q.passed = true
	k, d := q.kid, *q.decision
	d.Call, d.Question = q.call, q.of
	t.wg.Go(func() {
		_ = deliver(k.ctx, k.session, d)
		select {
		case k.woken <- struct{}{}:
		default: // it is to look again anyway
		}
	})
}

// deliver appends to the log of a session until that succeeds or ctx ends: what is told once
// must not be lost to a disk that is full for a while.
func deliver(ctx context.Context, s *inspan.Session, body event.Body) error {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := s.Send(ctx, body)
		if err == nil || ctx.Err() != nil {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// How long deliver waits before it tries again.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 5 * time.Second
	mostDelivery = 2 * time.Minute // for how long a child that has ended tries to tell of it
)

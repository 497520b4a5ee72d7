package subagent

import (
	"context"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/view/words"
)

// questionKey identifies a question of a child: by the number of its event in the child's log, so that it is unique.
type questionKey struct {
	child string
	of    uint64
}

// question is a question of a child that is in the session's log, or will be. An answer is passed on to exactly
// the question that it answers. Guarded by the team's lock.
type question struct {
	of       uint64         // its number in the child's log
	child    *child         // nil means the child has not worked since the program was started
	put      inspan.Pending // in the child's form
	id       string         // its id in the session's log
	seq      uint64         // its number there; 0 means not yet known
	decision *event.Decided
	passed   bool // the decision is in the child's log, or being written there
}

// recordQuestion records a question of a child, about one of its calls or one of its own children's, in the session's
// log. A question that is already there is not recorded again. If it was decided while the child did not work, the
// child gets the decision now.
func (t *Team) recordQuestion(ctx context.Context, k *child, p inspan.Pending) {
	name := questionKey{k.id, p.Question}
	t.mu.Lock()
	q, known := t.question(name)
	q.child, q.put = k, p
	t.mu.Unlock()
	t.passDecision(q)
	if known {
		return
	}
	r := p.Raised()
	calls := p.Calls() // a set is one question of the parent, which has no ids for its calls
	for i := range calls {
		calls[i].ID = ""
	}
	r.Reason, r.Preview = words.Asking(p.Root, p.Reason, p.Preview, calls)
	r.ID = short(k.id) + "." + strings.ReplaceAll(p.Call.ID, "/", ".") // needs no escaping in a URL
	r.Child, r.Agent = k.id, strings.TrimSuffix(k.order.Role.Name+" › "+p.Agent, " › ")
	// If that fails, the child has ended, or the question was answered there.
	_ = deliver(ctx, t.session, r)
}

// question returns the question of a name, and whether it was known before. The caller holds t.mu.
func (t *Team) question(name questionKey) (q *question, known bool) {
	if q, known = t.questions[name]; !known {
		q = &question{of: name.of}
		t.questions[name] = q
	}
	return q, known
}

// onSessionEvent handles an event of the session's log about questions.
func (t *Team) onSessionEvent(e event.Event) {
	switch b := e.Body.(type) {
	case event.Raised:
		t.setNumber(e.Seq, b)
	case event.Decided:
		if q := t.openQuestionOf(b); q != nil {
			t.passDecision(q)
		}
	}
}

// setNumber records the number of a question. The first counts: raising the same question again changes nothing.
func (t *Team) setNumber(seq uint64, b event.Raised) {
	if b.Child == "" || b.Of == 0 { // a call of the session asks, or version 0.1 did
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	q, _ := t.question(questionKey{b.Child, b.Of})
	if q.seq == 0 {
		q.id, q.seq = b.ID, seq
	}
}

// openQuestionOf returns the open question of a decision; nil means there is none.
func (t *Team) openQuestionOf(d event.Decided) *question {
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

// passDecision passes a decision to the child that asked, once both exist.
func (t *Team) passDecision(q *question) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.child == nil || q.decision == nil || q.passed || t.closed {
		return
	}
	q.passed = true
	k, d := q.child, q.put.Answer(*q.decision)
	t.wg.Go(func() { _ = deliver(k.ctx, k.session, d) })
}

// deliver appends to the log of a session until that succeeds or ctx ends: a message that comes once must not
// be lost if a disk is full for a while.
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

// The pauses between two tries of deliver.
const (
	firstPause   = 20 * time.Millisecond
	longestPause = 5 * time.Second
	mostDelivery = 2 * time.Minute // how long the result of a finished child is retried
)

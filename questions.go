package inspan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
)

// questions asks the open questions of a session. It appends the answers to the log, where the run finds them like
// answers from elsewhere.
type questions struct {
	session    *Session
	ask        func(context.Context, Pending) (event.Body, error)
	together   bool
	answerWait time.Duration
	asking     sync.WaitGroup
	changed    chan struct{} // receives a value when a field below has changed

	mu         sync.Mutex
	asked      map[uint64]openQuestion // by the number of the event that asks
	inProgress int                     // how many waiting calls are being asked about
	lastAnswer uint64                  // number of the last event that answers a question or interrupts the run
	detached   bool                    // the front end has gone away
	rerun      bool                    // Conductor.Rerun was called
	err        error                   // why no more questions can be asked
}

// openQuestion is a question that is being asked.
type openQuestion struct {
	Pending
	stop context.CancelCauseFunc // withdraws it
}

func newQuestions(s *Session) *questions {
	return &questions{session: s, asked: map[uint64]openQuestion{}, changed: make(chan struct{}, 1)}
}

// change calls f with the lock, and signals that a field has changed.
func (q *questions) change(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.changed <- struct{}{}:
	default: // a signal is already pending
	}
}

// recordAnswer records the number of an event that answers a question or interrupts the run. If the run has not read
// that far, it must run again, so an answer that comes as the run ends is not lost.
func (q *questions) recordAnswer(seq uint64) {
	q.change(func() { q.lastAnswer = max(q.lastAnswer, seq) })
}

// withdrawSettled withdraws the questions that an event settles.
func (q *questions) withdrawSettled(body event.Body) {
	switch b := body.(type) {
	case event.Decided:
		q.change(func() {
			for _, open := range q.asked {
				if open.answered(b) {
					open.stop(ErrAnswered)
				}
			}
		})
	case event.Stopped:
		q.withdrawAll()
	case event.Cancelled:
		if b.Limit == "" {
			q.withdrawAll()
		}
	}
}

// detach withdraws all questions because the front end has gone away.
func (q *questions) detach() {
	q.withdrawAll()
	q.change(func() { q.detached = true })
}

// withdrawAll withdraws all questions.
func (q *questions) withdrawAll() {
	q.change(func() {
		for _, open := range q.asked {
			open.stop(nil)
		}
	})
}

func (q *questions) close() {
	q.withdrawAll()
	q.asking.Wait()
}

// failed returns the reason why no more questions can be asked, or nil.
func (q *questions) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// askRaised asks a question of a subagent, a running call or a step.
func (q *questions) askRaised(ctx context.Context, p Pending) {
	open, isNew := q.register(ctx, p)
	switch {
	case !isNew:
	case q.together:
		q.asking.Go(func() { q.askOne(ctx, open, p) })
	default:
		defer q.watch(ctx, q.session.Status())()
		q.askOne(ctx, open, p)
	}
}

// register records that a question is being asked, unless it was asked before. The context ends when the question is
// withdrawn or times out.
func (q *questions) register(ctx context.Context, p Pending) (open context.Context, isNew bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.asked[p.Question]; known || q.ask == nil {
		return nil, false
	}
	open, stop := context.WithCancelCause(ctx)
	if !p.Until.IsZero() {
		var end context.CancelFunc
		open, end = context.WithDeadline(open, p.Until)
		context.AfterFunc(open, end)
	}
	q.asked[p.Question] = openQuestion{p, stop}
	return open, true
}

// askOne asks a question and sends the answer. It ignores the answer to a withdrawn question.
func (q *questions) askOne(ctx, open context.Context, p Pending) {
	if open.Err() != nil {
		return
	}
	answer, err := q.callAsk(open, p)
	if open.Err() == nil && err == nil && answer != nil {
		if d, decides := answer.(event.Decided); decides {
			answer = p.Answer(d)
		}
		var seq uint64
		seq, err = q.session.send(ctx, answer)
		q.recordAnswer(seq)
		q.withdrawSettled(answer)
	}
	q.change(func() { q.err = errors.Join(q.err, err) })
}

// callAsk returns the answer of Ask. An input that doesn't answer the question is an error. If the question was
// withdrawn, only a panic counts.
func (q *questions) callAsk(open context.Context, p Pending) (answer event.Body, err error) {
	defer fault.Recover("Conductor.Ask", nil, &err)
	answer, err = q.ask(open, p)
	switch {
	case open.Err() != nil:
		return nil, nil
	case err != nil || answer == nil:
		return nil, err
	}
	return answer, p.checkAnswer(answer)
}

// checkAnswer returns an error if answer does not answer the question.
func (p Pending) checkAnswer(answer event.Body) error {
	if _, interrupts := answer.(event.Cancelled); interrupts {
		return nil
	}
	d, ok := answer.(event.Decided)
	why := ""
	switch {
	case !ok:
		why = fmt.Sprintf("it is %q, and only \"decided\" and \"cancelled\" are answers", answer.Kind())
	case d.Call != p.Call.ID:
		why = fmt.Sprintf("its Call is %q", d.Call)
	case d.Question != 0 && d.Question != p.Question:
		why = fmt.Sprintf("its Question is %d", d.Question)
	case !slices.Contains([]event.Scope{event.ScopeOnce, event.ScopeSession, event.ScopeProject, event.ScopeAlways}, d.Scope):
		why = fmt.Sprintf("there is no scope %q", d.Scope)
	case len(p.Set) > 0 && d.Scope != event.ScopeOnce:
		why = errSetScope.Error()
	default:
		return nil
	}
	return fmt.Errorf("the answer of Conductor.Ask to question %d, on call %q, was not stored: %s", p.Question, p.Call.ID, why)
}

// watch withdraws questions that others answer, until stop is called.
func (q *questions) watch(ctx context.Context, st Status) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		var crashed error
		defer func() {
			if crashed != nil {
				q.change(func() { q.err = errors.Join(q.err, crashed) })
			}
		}()
		defer fault.Recover("the log", nil, &crashed)
		for e, err := range q.session.Events(ctx, st.Seq) {
			if err != nil {
				q.change(func() { q.err = errors.Join(q.err, err) })
				return
			}
			if canContinueAfter(e.Body, st.Waiting) {
				q.recordAnswer(e.Seq) // before withdrawSettled, which makes Ask return without an answer
			}
			q.withdrawSettled(e.Body)
		}
	})
	return func() { cancel(); watching.Wait() }
}

// settle asks about the waiting calls, and returns true once the run can continue: after an answer, an interrupt or
// a time-out. It returns false if no one answers. Meanwhile it holds the lease, so others see that this process
// drives the session.
func (q *questions) settle(ctx context.Context, st Status) (answered bool, err error) {
	release, err := q.session.acquire(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()
	defer q.watch(ctx, st)()
	q.askAll(ctx, st.Waiting)
	if !q.together {
		defer q.asking.Wait()
	}
	return q.wait(ctx, st.Seq, earliestUntil(st.Waiting))
}

// askAll asks about the waiting calls that were not asked about before.
func (q *questions) askAll(ctx context.Context, waiting []Pending) {
	var list []func()
	for _, p := range Sets(waiting) {
		if open, isNew := q.register(ctx, p); isNew {
			q.change(func() { q.inProgress++ })
			list = append(list, func() {
				q.askOne(ctx, open, p)
				q.change(func() { q.inProgress-- })
			})
		}
	}
	if !q.together {
		q.asking.Go(func() {
			for _, ask := range list {
				ask()
			}
		})
		return
	}
	for _, ask := range list {
		q.asking.Go(ask)
	}
}

// wait waits for an answer that the run has not read. If questions are asked one at a time, it waits until all of them
// were asked; otherwise the first answer suffices. Seq is the last event that the run has read. At the time until, if
// not zero, a call times out and the run can continue.
func (q *questions) wait(ctx context.Context, seq uint64, until time.Time) (answered bool, err error) {
	var timedOut, waitedEnough <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		timedOut = t.C
	}
	for {
		q.mu.Lock()
		answered, allAsked, detached, err := q.lastAnswer > seq, q.inProgress == 0, q.detached, q.err
		rerun := q.rerun && (q.together || allAsked)
		q.rerun = q.rerun && !rerun
		q.mu.Unlock()
		switch {
		case err != nil:
			q.withdrawAll()
			return false, err
		case rerun, answered && (q.together || allAsked), allAsked && !until.IsZero() && !time.Now().Before(until):
			return true, nil
		case detached || allAsked && q.answerWait == 0:
			return false, nil
		case allAsked && q.answerWait > 0 && waitedEnough == nil:
			t := time.NewTimer(q.answerWait)
			defer t.Stop()
			waitedEnough = t.C
		}
		select {
		case <-q.changed:
		case <-timedOut:
			return true, nil
		case <-waitedEnough:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Await waits until a run that ended because calls wait for decisions can continue: after a decision on one of them,
// an interrupt or a time-out. It only waits; Run without inputs continues the run. Meanwhile it holds the lease, so
// other processes see that this one drives the session. Await returns ErrBusy if this process is running the session,
// and ctx's error when ctx ends.
func (s *Session) Await(ctx context.Context) error {
	if _, ok := s.driver.Log().(event.Waiter); !ok {
		return errors.New("await: the log does not implement event.Waiter, so an answer would not be noticed")
	}
	questions := newQuestions(s)
	questions.answerWait = -1
	_, err := questions.settle(ctx, s.Status())
	return err
}

// earliestUntil returns when the first of the calls times out; zero means never.
func earliestUntil(waiting []Pending) (until time.Time) {
	for _, p := range waiting {
		if !p.Until.IsZero() && (until.IsZero() || p.Until.Before(until)) {
			until = p.Until
		}
	}
	return until
}

// canContinueAfter reports whether an event lets a waiting run continue.
func canContinueAfter(body event.Body, waiting []Pending) bool {
	switch b := body.(type) {
	case event.Cancelled:
		return true
	case event.Decided:
		for _, p := range waiting {
			if p.answered(b) {
				return true
			}
		}
	}
	return false
}

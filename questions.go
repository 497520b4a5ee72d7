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

// questions are the open questions of a conductor. Answers go into the log, where the run takes them like
// answers from elsewhere.
type questions struct {
	session  *Session
	ask      func(context.Context, Pending) (event.Body, error)
	together bool
	patience time.Duration
	asking   sync.WaitGroup
	news     chan struct{} // has a value when a field below has changed

	mu     sync.Mutex
	put    map[uint64]open // by the number of the event that asks
	flying int             // how many of the waiting calls are being asked about
	answer uint64          // number of the last event that answers a question or interrupts the run
	gone   bool            // nobody is left who could be asked
	again  bool            // the run must continue with what it has
	err    error           // why no more questions can be asked
}

// open is a question that is being asked.
type open struct {
	Pending
	stop context.CancelCauseFunc // withdraws it
}

func newQuestions(s *Session) *questions {
	return &questions{session: s, put: map[uint64]open{}, news: make(chan struct{}, 1)}
}

// change changes fields that the lock guards, and signals the change.
func (q *questions) change(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.news <- struct{}{}:
	default: // a signal is pending already
	}
}

// heard records the event that answers a question or interrupts the run. Comparing its number with the last
// event of the run shows whether the run has taken it, so an answer that comes as the run ends is not lost.
func (q *questions) heard(seq uint64) {
	q.change(func() { q.answer = max(q.answer, seq) })
}

// saw withdraws the questions that an event settles.
func (q *questions) saw(body event.Body) {
	switch b := body.(type) {
	case event.Decided:
		q.change(func() {
			for _, put := range q.put {
				if put.answered(b) {
					put.stop(ErrAnswered)
				}
			}
		})
	case event.Stopped:
		q.takeBack()
	case event.Cancelled:
		if b.Limit == "" {
			q.takeBack()
		}
	}
}

// leave records that nobody is left who could be asked.
func (q *questions) leave() {
	q.takeBack()
	q.change(func() { q.gone = true })
}

// takeBack withdraws all questions.
func (q *questions) takeBack() {
	q.change(func() {
		for _, put := range q.put {
			put.stop(nil)
		}
	})
}

func (q *questions) close() {
	q.takeBack()
	q.asking.Wait()
}

// failed returns why no more questions can be asked, or nil.
func (q *questions) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// raised asks a question of a subagent, or of a call that is running.
func (q *questions) raised(ctx context.Context, p Pending) {
	asked, fresh := q.begin(ctx, p)
	switch {
	case !fresh:
	case q.together:
		q.asking.Go(func() { q.one(ctx, asked, p) })
	default:
		defer q.watch(ctx, q.session.Status())()
		q.one(ctx, asked, p)
	}
}

// begin records that a question is being asked, unless it was asked before. The returned context ends when the
// question is withdrawn.
func (q *questions) begin(ctx context.Context, p Pending) (asked context.Context, fresh bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, known := q.put[p.Question]; known || q.ask == nil {
		return nil, false
	}
	asked, stop := context.WithCancelCause(ctx)
	if !p.Until.IsZero() {
		var end context.CancelFunc
		asked, end = context.WithDeadline(asked, p.Until)
		context.AfterFunc(asked, end)
	}
	q.put[p.Question] = open{p, stop}
	return asked, true
}

// one asks a question and sends the answer. An answer to a withdrawn question is ignored.
func (q *questions) one(ctx, asked context.Context, p Pending) {
	if asked.Err() != nil {
		return
	}
	answer, err := q.answerTo(asked, p)
	if asked.Err() == nil && err == nil && answer != nil {
		if d, decides := answer.(event.Decided); decides {
			answer = p.Answer(d)
		}
		var seq uint64
		seq, err = q.session.send(ctx, answer)
		q.heard(seq)
		q.saw(answer)
	}
	q.change(func() { q.err = errors.Join(q.err, err) })
}

// answerTo returns the answer of Ask. An input that doesn't answer the question is an error. After the question
// was withdrawn the answer doesn't matter, only a panic does.
func (q *questions) answerTo(asked context.Context, p Pending) (answer event.Body, err error) {
	defer fault.Recover("Conductor.Ask", nil, &err)
	answer, err = q.ask(asked, p)
	switch {
	case asked.Err() != nil:
		return nil, nil
	case err != nil || answer == nil:
		return nil, err
	}
	return answer, p.fits(answer)
}

// fits returns an error if answer does not answer the question.
func (p Pending) fits(answer event.Body) error {
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
		why = errTogether.Error()
	default:
		return nil
	}
	return fmt.Errorf("the answer of Conductor.Ask to question %d, on call %q, was not stored: %s", p.Question, p.Call.ID, why)
}

// watch withdraws the questions that others settle, until it is stopped.
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
			if err != nil { // no later answer could be seen
				q.change(func() { q.err = errors.Join(q.err, err) })
				return
			}
			if settles(e.Body, st.Waiting) {
				q.heard(e.Seq) // before Ask returns without an answer
			}
			q.saw(e.Body)
		}
	})
	return func() { cancel(); watching.Wait() }
}

// settle asks about the waiting calls, and returns once the run can continue: after an answer, after an
// interrupt, or when the time for an answer is over. It reports false if nobody has answered. Meanwhile others
// see that this process drives the session.
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
	return q.wait(ctx, st.Seq, soonest(st.Waiting))
}

// askAll asks about the waiting calls that are not being asked about already.
func (q *questions) askAll(ctx context.Context, waiting []Pending) {
	var list []func()
	for _, p := range Sets(waiting) {
		if asked, fresh := q.begin(ctx, p); fresh {
			q.change(func() { q.flying++ })
			list = append(list, func() {
				q.one(ctx, asked, p)
				q.change(func() { q.flying-- })
			})
		}
	}
	if !q.together {
		q.asking.Go(func() {
			for _, put := range list {
				put()
			}
		})
		return
	}
	for _, put := range list {
		q.asking.Go(put)
	}
}

// wait waits for an answer that the run has not taken. If questions come one at a time, it waits for all of
// them, else for the first. Seq is the last event that the run has read. If until is not zero, there is nothing
// to wait for after that time.
func (q *questions) wait(ctx context.Context, seq uint64, until time.Time) (answered bool, err error) {
	var late, enough <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		late = t.C
	}
	for {
		q.mu.Lock()
		answered, flying, gone, err := q.answer > seq, q.flying, q.gone, q.err
		again := q.again && (q.together || flying == 0)
		q.again = q.again && !again
		q.mu.Unlock()
		switch {
		case err != nil:
			q.takeBack()
			return false, err
		case again, answered && (q.together || flying == 0), flying == 0 && !until.IsZero() && !time.Now().Before(until):
			return true, nil
		case gone || flying == 0 && q.patience == 0:
			return false, nil
		case flying == 0 && q.patience > 0 && enough == nil:
			patience := time.NewTimer(q.patience)
			defer patience.Stop()
			enough = patience.C
		}
		select {
		case <-q.news:
		case <-late:
			return true, nil
		case <-enough:
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Await waits until a run that ended because calls wait can continue: someone decided about one of them,
// someone interrupted, or the time for an answer is over. It only waits; Run without inputs continues the run.
// Meanwhile this process drives the session, and other processes can see that. Await returns ErrBusy if this
// process is running the session, and ctx's error when ctx ends.
func (s *Session) Await(ctx context.Context) error {
	if _, ok := s.driver.Log().(event.Waiter); !ok {
		return errors.New("nothing can be waited for: the log does not tell when it grows")
	}
	put := newQuestions(s)
	put.patience = -1
	_, err := put.settle(ctx, s.Status())
	return err
}

// soonest returns when the first of the calls stops taking answers; zero means never.
func soonest(waiting []Pending) (until time.Time) {
	for _, p := range waiting {
		if !p.Until.IsZero() && (until.IsZero() || p.Until.Before(until)) {
			until = p.Until
		}
	}
	return until
}

// settles reports whether a waiting run can continue after the event.
func settles(body event.Body, waiting []Pending) bool {
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

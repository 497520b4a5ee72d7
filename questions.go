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

// questions are those that a conductor puts. An answer goes into the log, from where the run
// takes it, as it takes one from elsewhere.
type questions struct {
	session  *Session
	ask      func(context.Context, Pending) (event.Body, error)
	together bool
	patience time.Duration
	asking   sync.WaitGroup
	news     chan struct{} // has one when something below has changed

	mu     sync.Mutex
	put    map[uint64]open // by its number
	flying int             // of the calls that wait: how many are being asked
	answer uint64          // the last event that answers one, or interrupts the run
	gone   bool            // nobody is there any more who could be asked
	again  bool            // the run is to go on with what it has
	err    error           // why no more can be asked
}

// open is a question that was put.
type open struct {
	Pending
	stop context.CancelCauseFunc // takes it back
}

func newQuestions(s *Session) *questions {
	return &questions{session: s, put: map[uint64]open{}, news: make(chan struct{}, 1)}
}

// change changes what the lock guards, and tells of it.
func (q *questions) change(f func()) {
	q.mu.Lock()
	f()
	q.mu.Unlock()
	select {
	case q.news <- struct{}{}:
	default: // it is known already
	}
}

// heard notes the event that answers a question, or interrupts the run. Whether the run has taken
// it up its number tells, so that an answer is not lost that comes while the run ends.
func (q *questions) heard(seq uint64) {
	q.change(func() { q.answer = max(q.answer, seq) })
}

// saw takes back the questions that an event settles.
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

// leave is for when nobody is there any more who could be asked.
func (q *questions) leave() {
	q.takeBack()
	q.change(func() { q.gone = true })
}

// takeBack takes back all of them.
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

// failed is why no more can be asked; nil: it can.
func (q *questions) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// raised puts the question of a child, or of a call that runs.
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

// begin notes that a question is put, unless it was before. Its context ends when it is
// taken back.
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

// one puts a question, and sends the answer. What is said to one that was taken back does
// not count.
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

// answerTo is what Ask says to a question. What is no answer to it is an error. Once the question
// was taken back it does not matter, other than that it has crashed.
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

// fits is why a body is not an answer to the question; nil: it is one.
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

// watch takes back what others settle, until it is stopped.
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
			if err != nil { // no answer could be seen any more
				q.change(func() { q.err = errors.Join(q.err, err) })
				return
			}
			if settles(e.Body, st.Waiting) {
				q.heard(e.Seq) // before whoever is asked returns without an answer
			}
			q.saw(e.Body)
		}
	})
	return func() { cancel(); watching.Wait() }
}

// settle puts the calls that wait, and returns once there is something to go on with: an
// answer, an interrupt, or the end of the time for an answer. It reports false if nobody has
// answered. Others see meanwhile that the session is driven here.
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

// askAll has the calls asked that wait and are not being asked.
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

// wait waits for an answer that the run has not taken up: in turn for all of them, together for
// the first. The run has read the log as far as the event seq. From until on, which may be zero,
// there is none to wait for.
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

// Await returns when there is something to go on with for a run that has ended because
// calls wait: a decision on one of them from elsewhere, an interrupt, or the end of the
// time that an answer may take. Nothing of it is done; Run without inputs does it. While
// it waits, the session is driven by this process, and anybody else is told so. It
// returns ErrBusy if a run goes on here, and ctx's error when that is done.
func (s *Session) Await(ctx context.Context) error {
	if _, ok := s.driver.Log().(event.Waiter); !ok {
		return errors.New("nothing can be waited for: the log does not tell when it grows")
	}
	put := newQuestions(s)
	put.patience = -1
	_, err := put.settle(ctx, s.Status())
	return err
}

// soonest is when the first of the calls no longer takes an answer; zero: never.
func soonest(waiting []Pending) (until time.Time) {
	for _, p := range waiting {
		if !p.Until.IsZero() && (until.IsZero() || p.Until.Before(until)) {
			until = p.Until
		}
	}
	return until
}

// settles reports whether a run that waits can go on after the event.
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

package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// The time of a run is the working time of its drivers, measured between events. It doesn't count:
//
//   - while the run only waits for people;
//   - between the last event of a driver and the claim of the next, even if inputs are appended meanwhile. So time
//     stays unconfirmed until the driver's next event proves that it was alive.

// addTime counts the time from the previous event to this one.
func (s *State) addTime(e event.Event) {
	r := &s.Run
	if _, claimed := e.Body.(event.Claimed); claimed {
		r.UnconfirmedSeconds = 0
		return
	}
	if r.Active && !s.At.IsZero() && !s.waitsForPeople() {
		r.UnconfirmedSeconds += max(0, e.Time.Sub(s.At).Seconds())
	}
	if _, note := e.Body.(event.Note); !note && !event.Input(e.Body) {
		r.Seconds, r.UnconfirmedSeconds = r.Used(), 0
	}
}

// Used returns how many seconds the run has worked.
func (r *Run) Used() float64 { return r.Seconds + r.UnconfirmedSeconds }

// maxSeconds is longer than any run. More time left than this counts as no limit.
const maxSeconds = 100 * 365 * 24 * 60 * 60

// Deadline returns when the time of the run will be used up. Zero means never, because there is no limit or the
// run only waits for people.
func (s *State) Deadline() time.Time {
	left := s.Limits.Seconds - s.Run.Used()
	if !s.Run.Active || s.Run.Cancelled || s.Limits.Seconds == 0 || left > maxSeconds || s.waitsForPeople() {
		return time.Time{}
	}
	return s.At.Add(time.Duration(left * float64(time.Second)))
}

// waitsForPeople reports whether the run only waits for people, in one of these ways:
//
//   - All steps have open questions.
//   - After a final answer, each background child has an open question.
//   - No call can start, and each running call has an open question. Without running calls, a call waits for a
//     decision.
func (s *State) waitsForPeople() bool {
	t := s.calls
	switch {
	case s.Run.Asking || s.Run.Cancelled:
		return false
	case len(s.Steps) > 0 && len(s.Raised) > 0 && s.allStepsWait():
		return true
	case t == nil:
		return s.Run.Reply == replyAnswer && s.hasBackgroundChildren() && !s.anyWorking(func(c Child) bool { return c.Background })
	case len(t.startable(1)) > 0 || t.in[phaseWaiting]+t.in[phaseRunning]+t.in[phaseReady]+t.in[phaseEnded] < len(t.calls):
		return false
	case t.in[phaseRunning] == 0:
		return t.in[phaseWaiting] > 0
	}
	return !slices.ContainsFunc(s.Run.Calls, func(c Call) bool { return c.Phase == phaseRunning && !s.awaitsAnswer(c) })
}

// awaitsAnswer reports whether a running call can only continue after an answer: to its own question, for a nested
// call, or to the questions of all children that it waits for.
func (s *State) awaitsAnswer(c Call) bool {
	if c.Stalled() {
		return true
	}
	if s.anyQuestion(func(q Question) bool { return q.Child == "" && q.Call == c.ID }) {
		return true
	}
	ofCall := func(k Child) bool { return !k.Background && strings.HasPrefix(k.Call, c.ID+"@") }
	waits := slices.ContainsFunc(s.Children, func(k Child) bool { return k.Open && ofCall(k) })
	return waits && !s.anyWorking(ofCall)
}

// anyWorking reports whether a matching open child has no open question.
func (s *State) anyWorking(match func(Child) bool) bool {
	return slices.ContainsFunc(s.Children, func(c Child) bool {
		return c.Open && match(c) && !s.anyQuestion(func(q Question) bool { return q.Child == c.Child })
	})
}

// anyQuestion reports whether there is a matching open question.
func (s *State) anyQuestion(match func(Question) bool) bool {
	return slices.ContainsFunc(s.Raised, match)
}

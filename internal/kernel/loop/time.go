package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// The time of a run is what its drivers work, from event to event. It stands still while
// nothing goes on but the wait for people. What lies between the last event of a driver
// and the claim of the next is nobody's work, whatever others have appended meanwhile: so
// time counts for good when the driver's next event proves that it lived.

// pass lets the time pass that has gone by until an event.
func (s *State) pass(e event.Event) {
	r := &s.Run
	if _, taken := e.Body.(event.Claimed); taken {
		r.Unproven = 0
		return
	}
	if r.Active && !s.At.IsZero() && !s.waiting() {
		r.Unproven += max(0, e.Time.Sub(s.At).Seconds())
	}
	if _, note := e.Body.(event.Note); !note && !event.Input(e.Body) {
		r.Seconds, r.Unproven = r.Used(), 0
	}
}

// Used is how many seconds of work the run has taken.
func (r *Run) Used() float64 { return r.Seconds + r.Unproven }

// longestLeft is beyond what a run can last; a limit above it is none.
const longestLeft = 100 * 365 * 24 * 60 * 60

// Deadline is when the time of the run is used up if it goes on as it does. Zero: never,
// as there is no limit, or as it only waits for people.
func (s *State) Deadline() time.Time {
	left := s.Limits.Seconds - s.Run.Used()
	if !s.Run.Active || s.Run.Cancelled || s.Limits.Seconds == 0 || left > longestLeft || s.waiting() {
		return time.Time{}
	}
	return s.At.Add(time.Duration(left * float64(time.Second)))
}

// waiting reports whether nothing goes on but the wait for people: calls wait for a
// decision, and each that runs, or each child in the background, has a question open.
func (s *State) waiting() bool {
	t := s.calls
	switch {
	case s.Run.Asking || s.Run.Cancelled:
		return false
	case len(s.Steps) > 0 && len(s.Raised) > 0 && s.idles():
		return true
	case t == nil:
		return s.Run.Reply == replyAnswer && s.awaiting() && !s.works(func(c Child) bool { return c.Background })
	case len(t.startable(1)) > 0 || t.in[phaseWaiting]+t.in[phaseRunning]+t.in[phaseReady]+t.in[phaseEnded] < len(t.calls):
		return false
	case t.in[phaseRunning] == 0:
		return t.in[phaseWaiting] > 0
	}
	return !slices.ContainsFunc(s.Run.Calls, func(c Call) bool { return c.Phase == phaseRunning && !s.asks(c) })
}

// asks reports whether a call that runs waits for an answer, itself or those who work for
// it.
func (s *State) asks(c Call) bool {
	if c.Stalled() {
		return true
	}
	if s.open(func(q Question) bool { return q.Child == "" && q.Call == c.ID }) {
		return true
	}
	forIt := func(k Child) bool { return !k.Background && strings.HasPrefix(k.Call, c.ID+"@") }
	some := slices.ContainsFunc(s.Children, func(k Child) bool { return k.Open && forIt(k) })
	return some && !s.works(forIt)
}

// works reports whether one of some children that are open has no question open.
func (s *State) works(some func(Child) bool) bool {
	return slices.ContainsFunc(s.Children, func(c Child) bool {
		return c.Open && some(c) && !s.open(func(q Question) bool { return q.Child == c.Child })
	})
}

// open reports whether such a question is.
func (s *State) open(such func(Question) bool) bool { return slices.ContainsFunc(s.Raised, such) }

package loop

import (
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
)

// The time of a run is the working time of its drivers, from event to event. It stands still while the run only
// waits for people. The time between the last event of a driver and the claim of the next doesn't count, even
// if others append events meanwhile. So time is counted for good when the driver's next event proves that it
// was alive.

// pass counts the time up to an event.
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

// Used returns how many seconds of work the run has taken.
func (r *Run) Used() float64 { return r.Seconds + r.Unproven }

// longestLeft is longer than any run; a limit above it is no limit.
const longestLeft = 100 * 365 * 24 * 60 * 60

// Deadline returns when the time of the run will be used up. Zero means never, because there is no limit or the
// run only waits for people.
func (s *State) Deadline() time.Time {
	left := s.Limits.Seconds - s.Run.Used()
	if !s.Run.Active || s.Run.Cancelled || s.Limits.Seconds == 0 || left > longestLeft || s.waiting() {
		return time.Time{}
	}
	return s.At.Add(time.Duration(left * float64(time.Second)))
}

// waiting reports whether the run only waits for people: all its steps have open questions; or without calls, its
// background children have; or calls wait for a decision, and each running call has an open question.
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

// asks reports whether a running call waits for an answer, to its own question or one of its children's.
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

// works reports whether one of the matching open children has no open question.
func (s *State) works(some func(Child) bool) bool {
	return slices.ContainsFunc(s.Children, func(c Child) bool {
		return c.Open && some(c) && !s.open(func(q Question) bool { return q.Child == c.Child })
	})
}

// open reports whether there is a matching open question.
func (s *State) open(such func(Question) bool) bool { return slices.ContainsFunc(s.Raised, such) }

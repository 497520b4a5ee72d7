package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
)

// A session and all its children stop together in two cases: the breaker stops them if they spend too much within
// a minute, and a pause makes them wait if a provider's quota is used up. Drivers measure and append the events.
// The consequences are folded here, so they survive a crash. A new run clears both.

// stopByBreaker stops the run because too much was spent within a minute. Queued messages stay queued, because they
// would begin a run that no one approved.
func (s *State) stopByBreaker(b event.Cancelled) {
	if !s.Run.Active || s.Run.Cancelled {
		return
	}
	s.cancel()
	s.Run.BreakerReason, s.Run.QueueHeld = cmp.Or(b.Reason, "too much was spent within a minute"), true
	if b.Rate != nil {
		s.BreakerRate = *b.Rate
	}
}

// ask returns the request to the model, not before the earliest allowed time.
func (s *State) ask() Ask {
	a := Ask{Turn: s.Run.Turn + 1, NotBefore: s.Run.NotBefore, WaitCause: s.Run.WaitCause}
	if p := s.Run.Paused; p != nil && p.Until.After(a.NotBefore) {
		a.NotBefore, a.WaitCause = p.Until, p.Cause
	}
	return a
}

// interruption says who stopped the run, as a clause.
func (s *State) interruption() string {
	if s.Run.BreakerReason != "" {
		return "the breaker stopped the run, which spent too much within a minute"
	}
	return "the user interrupted"
}

// RunCount returns how many runs began since the session was opened in this process. A caller that stopped or
// paused a run compares counts to see whether a newer one is in progress.
func (s *State) RunCount() int { return s.starts }

package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
)

// Two things stop a session together with all sessions that work for it: a breaker, if they use up too much
// within a minute, and a pause, if a vendor's quota is used up. Drivers measure and report; the consequences
// are here so that they survive a crash. A new run lifts both.

// brake stops the run because too much was used up within a minute. Messages that came meanwhile wait, since
// they would begin a run that nobody has agreed to.
func (s *State) brake(b event.Cancelled) {
	if !s.Run.Active || s.Run.Cancelled {
		return
	}
	s.cancel()
	s.Run.Braked, s.Run.Held = cmp.Or(b.Reason, "too much was used up in a minute"), true
	if b.Rate != nil {
		s.Braked = *b.Rate
	}
}

// paused makes the session and all that work for it wait.
func (s *State) paused(b event.Paused) {
	if s.Run.Active {
		s.Run.Paused = &b
	}
}

// ask returns the request to the model, not before the earliest allowed time.
func (s *State) ask() Ask {
	a := Ask{Turn: s.Run.Turn + 1, NotBefore: s.Run.NotBefore, Awaits: s.Run.Awaits}
	if p := s.Run.Paused; p != nil && p.Until.After(a.NotBefore) {
		a.NotBefore, a.Awaits = p.Until, p.Cause
	}
	return a
}

// interrupter says who interrupted the run.
func (s *State) interrupter() string {
	if s.Run.Braked != "" {
		return "the run was stopped, as it used up too much in a minute"
	}
	return "the user interrupted"
}

// Runs returns how many runs began since the session was opened here. A caller that stopped or paused one can
// tell by it that another is in progress.
func (s *State) Runs() int { return s.starts }

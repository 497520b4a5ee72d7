package loop

import (
	"cmp"

	"github.com/inspan/inspan/event"
)

// What stops a session and all that work for it at once: a breaker, as they use up too much
// in a minute, and a pause, as a vendor takes nothing more. Whoever drives them measures and
// is told; here is what follows from it, so that it holds over a crash. A new run lifts both.

// brake stops the run, as too much was used up in a minute. What was said meanwhile waits,
// as it would begin a run that nobody has agreed to.
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

// paused has the session wait with all that work for it.
func (s *State) paused(b event.Paused) {
	if s.Run.Active {
		s.Run.Paused = &b
	}
}

// ask asks the model, when the session may.
func (s *State) ask() Ask {
	a := Ask{Turn: s.Run.Turn + 1, NotBefore: s.Run.NotBefore, Awaits: s.Run.Awaits}
	if p := s.Run.Paused; p != nil && p.Until.After(a.NotBefore) {
		a.NotBefore, a.Awaits = p.Until, p.Cause
	}
	return a
}

// interrupter says who has interrupted the run.
func (s *State) interrupter() string {
	if s.Run.Braked != "" {
		return "the run was stopped, as it used up too much in a minute"
	}
	return "the user interrupted"
}

// Runs is how many runs were begun since the session was opened here: whoever has stopped or
// paused one sees from it that another goes on.
func (s *State) Runs() int { return s.starts }

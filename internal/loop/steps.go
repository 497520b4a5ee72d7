package loop

import (
	"maps"

	"github.com/inspan/inspan/event"
)

// Step is a piece of work that a program does on the session.
type Step struct {
	event.StepStarted
	Seq   uint64           `json:"seq"`             // of its last start
	Lost  bool             `json:"lost,omitempty"`  // its driver went before it ended
	Ended *event.StepEnded `json:"ended,omitempty"` // nil: it has not
}

// stepped folds a step in. One that has ended stays as it is.
func (s *State) stepped(e event.Event) {
	if s.Steps == nil {
		s.Steps = map[string]Step{}
	}
	switch b := e.Body.(type) {
	case event.StepStarted:
		if s.Steps[b.Step].Ended == nil {
			s.Steps[b.Step] = Step{StepStarted: b, Seq: e.Seq}
		}
	case event.StepEnded:
		if st, begun := s.Steps[b.Step]; begun && st.Ended == nil {
			st.Ended = &b
			s.Steps[b.Step] = st
			s.Total.Cost += b.Cost
		}
	}
}

// strand takes note that whoever performed the steps has gone.
func (s *State) strand() {
	var steps map[string]Step
	for id, st := range s.Steps {
		if st.Ended == nil && !st.Lost {
			if steps == nil {
				steps = maps.Clone(s.Steps) // another state may share them
			}
			st.Lost = true
			steps[id] = st
		}
	}
	if steps != nil {
		s.Steps = steps
	}
}

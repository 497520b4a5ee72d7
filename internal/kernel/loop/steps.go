package loop

import (
	"maps"

	"github.com/inspan/inspan/event"
)

// Step is work that a program performs on the session.
type Step struct {
	event.StepStarted
	Seq   uint64           `json:"seq"`             // of its last start
	Lost  bool             `json:"lost,omitempty"`  // its process died before it ended
	Ended *event.StepEnded `json:"ended,omitempty"` // nil if it has not ended
}

// stepped folds in the start or end of a step. A step that has ended doesn't change.
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
		s.tainted(b.Taint)
		if st, begun := s.Steps[b.Step]; begun && st.Ended == nil {
			st.Ended = &b
			s.Steps[b.Step] = st
			s.Total.Cost += b.Cost
			s.retract(b.Step)
		}
	}
}

// allStepsWait reports whether steps are in progress and all of them wait for people. A step waits if it or a child
// that works for it has an open question, or if a step within it waits.
func (s *State) allStepsWait() bool {
	waits, works := map[string]bool{}, false
	for id, st := range s.Steps {
		waiting := st.Ended == nil && s.anyQuestion(func(q Question) bool {
			c := s.child(q.Child)
			return q.Child == "" && q.Call == id || c != nil && c.Call == id
		})
		if waiting {
			for up := id; up != "" && !waits[up]; up = s.Steps[up].Parent {
				waits[up] = true
			}
		}
	}
	for id, st := range s.Steps {
		works = works || st.Ended == nil && !waits[id]
	}
	return len(waits) > 0 && !works
}

// loseSteps marks unfinished steps as lost because their process is gone.
func (s *State) loseSteps() {
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

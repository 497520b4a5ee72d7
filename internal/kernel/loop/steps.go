package loop

import (
	"maps"

	"github.com/inspan/inspan/event"
)

// Step is a piece of work that a program performs on the session.
type Step struct {
	event.StepStarted
	Seq   uint64           `json:"seq"`             // of its last start
	Lost  bool             `json:"lost,omitempty"`  // its driver was gone before it ended
	Ended *event.StepEnded `json:"ended,omitempty"` // nil if it has not ended
}

// stepped folds in an event of a step. A step that has ended doesn't change.
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

// performs reports whether a step is in progress.
func (s *State) performs(step string) bool {
	st, begun := s.Steps[step]
	return begun && st.Ended == nil
}

// idles reports whether steps are in progress and all of them wait for people: each step without parts has an
// open question, its own or of a child that works for it.
func (s *State) idles() bool {
	waits, works := map[string]bool{}, false
	for id, st := range s.Steps {
		if st.Ended == nil && s.open(func(q Question) bool { return q.Child == "" && q.Call == id || s.worksFor(q.Child, id) }) {
			for at := id; at != "" && !waits[at]; at = s.Steps[at].Parent {
				waits[at] = true
			}
		}
	}
	for id, st := range s.Steps {
		works = works || st.Ended == nil && !waits[id]
	}
	return len(waits) > 0 && !works
}

// worksFor reports whether a child works for a step.
func (s *State) worksFor(child, step string) bool {
	c := s.child(child)
	return c != nil && c.Call == step
}

// strand records that the process performing the steps is gone.
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

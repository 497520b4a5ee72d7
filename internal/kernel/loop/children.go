package loop

import (
	"cmp"
	"slices"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// maxChildren is how many finished children are remembered; the oldest are dropped first.
const maxChildren = 200

// Child is a session that works or worked for this one.
type Child struct {
	event.Spawned
	Open     bool            `json:"open,omitempty"`     // it is working
	Returned *event.Returned `json:"returned,omitempty"` // its last result, without Parts
	Usage    llm.Usage       `json:"usage,omitzero"`     // of all its runs, as of its last result
	Cost     float64         `json:"cost,omitempty"`
}

// Idle reports whether it is a member of the team that has nothing to do: a message or a task for it wakes it.
func (c Child) Idle() bool { return !c.Open && c.Returned != nil && c.Returned.Idle }

// Question is an open question, raised by a child or a running call.
type Question struct {
	event.Raised
	Seq uint64 `json:"seq,omitempty"` // of its event; 0 if it was raised before a compaction by version 0.1
}

// spawned records a new child, or that a known one works again.
func (s *State) spawned(b event.Spawned) {
	if c := s.child(b.Child); c != nil {
		c.Open, c.Call, c.Mode, c.Background = true, b.Call, b.Mode, b.Background
		return
	}
	if slices.ContainsFunc(s.Children, func(c Child) bool { return b.Name != "" && strings.EqualFold(c.Name, b.Name) }) {
		b.Name = ""
	}
	if len(s.Children) >= maxChildren {
		if i := slices.IndexFunc(s.Children, func(c Child) bool { return !c.Open && !c.Idle() }); i >= 0 {
			s.Children = slices.Delete(slices.Clone(s.Children), i, i+1)
		}
	}
	s.Children = append(s.Children, Child{Spawned: b, Open: true})
}

func (s *State) child(id string) *Child {
	for i := range s.Children {
		if s.Children[i].Child == id {
			return &s.Children[i]
		}
	}
	return nil
}

// raised records a question of a child, a running call or a step. The same question raised again changes nothing.
// Another one with the same id replaces it.
func (s *State) raised(q Question) {
	c := s.child(q.Child)
	_, call := s.calls.findNested(q.Call, phaseRunning)
	step, begun := s.Steps[q.Call]
	works := call != nil || begun && step.Ended == nil
	open := c != nil && c.Open || q.Child == "" && works
	i := slices.IndexFunc(s.Raised, func(r Question) bool { return r.ID == q.ID })
	switch {
	case !open || i >= 0 && s.Raised[i].Of == q.Of:
	case i >= 0:
		s.Raised = slices.Clone(s.Raised)
		s.Raised[i] = q
	default:
		s.Raised = append(s.Raised, q)
	}
}

// retract drops the questions of a call or step that no longer runs.
func (s *State) retract(call string) {
	s.Raised = slices.DeleteFunc(slices.Clone(s.Raised), func(r Question) bool { return r.Child == "" && r.Call == call })
}

// answered drops a question that a decision answers.
func (s *State) answered(b event.Decided) {
	i := slices.IndexFunc(s.Raised, func(r Question) bool { return b.On(r.ID, r.Seq) })
	if i < 0 {
		return
	}
	s.grant(b.Grants(s.Raised[i].Rules, s.Raised[i].Offers))
	s.Raised = slices.Delete(slices.Clone(s.Raised), i, i+1)
}

// returned adds a child's usage to the total and delivers its result.
func (s *State) returned(b event.Returned) {
	c := s.child(b.Child)
	if c == nil || !c.Open {
		return
	}
	result, from := message{Parts: b.Parts}, "agent "+cmp.Or(c.Name, strings.TrimPrefix(c.Agent+" "+b.Child[strings.LastIndexByte(b.Child, '.')+1:], " "))
	b.Parts = nil
	c.Open, c.Returned = false, &b
	c.Usage, c.Cost = c.Usage.Add(b.Usage), c.Cost+b.Cost
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	s.Total.Unpriced = s.Total.Unpriced || b.Unpriced
	s.tainted(b.Taint)
	s.Raised = slices.DeleteFunc(slices.Clone(s.Raised), func(r Question) bool { return r.Child == b.Child })
	switch {
	case len(result.Parts) == 0:
	case s.Run.Cancelled:
		s.NextMessage = append(s.NextMessage, result)
	default:
		s.deliverArrival(from, result.Parts)
	}
}

// hasBackgroundChildren reports whether children work in the background.
func (s *State) hasBackgroundChildren() bool {
	return slices.ContainsFunc(s.Children, func(c Child) bool { return c.Open && c.Background })
}

// ManagesChildren reports whether a child works, or worked, in the background or in a copy of the workspace, so the
// session has something to manage.
func (s *State) ManagesChildren() bool {
	return slices.ContainsFunc(s.Children, func(c Child) bool { return c.Background || c.Root != "" })
}

// dropBackground drops the children, which belong to the session that this one is a copy of.
func (s *State) dropBackground() {
	s.Children, s.Raised = slices.Clone(s.Children), nil
	s.Jobs, s.UnreportedEnds, s.ReportedEnds, s.LeftProcesses, s.LeftReported = nil, nil, nil, false, false
	for i := range s.Children {
		c := &s.Children[i]
		if c.Open, c.Name = false, ""; c.Idle() {
			back := *c.Returned
			back.Idle, c.Returned = false, &back
		}
	}
}

func (s *State) tainted(t event.Taint) {
	s.Untrusted, s.Private = s.Untrusted || t.Untrusted, s.Private || t.Private
}

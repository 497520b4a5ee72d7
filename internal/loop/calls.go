package loop

import (
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// replied folds a reply in: its message, and its calls if they may be made.
func (s *State) replied(b event.Replied, seq uint64) {
	r := &s.Run
	r.Asking, r.Failed, r.NotBefore, r.Awaits, r.Route = false, nil, time.Time{}, "", ""
	s.measure(b)
	s.Total.Turns++
	s.Pruning.Cold, r.Heard = false, ""
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	s.Total.Unpriced = s.Total.Unpriced || b.Unpriced
	r.Reply = classify(b)
	switch r.Reply {
	case replyEmpty, replyLength:
		r.Nudges++
	default:
		r.Nudges = 0
	}
	// A refused or empty turn would poison every later request.
	if r.Reply != replyRefusal && !blank(b.Parts) {
		s.push(llm.Assistant, b.Parts)
		s.Measured.Messages = len(s.Messages)
		r.Calls = newCalls(b, seq)
		if len(r.Calls) > 0 {
			r.Route = b.Route
		}
	}
	if len(r.Calls) == 0 {
		s.flushSteer()
	}
}

func classify(b event.Replied) replyKind {
	switch {
	case b.Stop == llm.StopRefusal:
		return replyRefusal
	case len(b.Parts.Calls()) > 0:
		return replyCalls
	case b.Stop == llm.StopPause:
		return replyPause
	case blank(b.Parts):
		return replyEmpty
	case b.Stop == llm.StopLength:
		return replyLength
	case b.Stop == llm.StopWindow:
		return replyWindow
	}
	return replyAnswer
}

// newCalls lists the calls of a reply. Those of a cut reply are incomplete and
// are never made.
func newCalls(b event.Replied, seq uint64) []Call {
	first := phaseNew
	switch b.Stop {
	case llm.StopLength, llm.StopCut, llm.StopWindow:
		first = phaseCut
	}
	var calls []Call
	for _, c := range b.Parts.Calls() {
		calls = append(calls, Call{Call: c, Seq: seq, Phase: first})
	}
	return calls
}

// called folds an event about one call in.
func (s *State) called(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		s.Total.Cost += b.Cost
		if c := s.find(b.Call, phaseNew); c != nil {
			c.judged(b)
			if b.Text != "" {
				s.Run.Steer = append(s.Run.Steer, words{Parts: llm.Say(b.Text)})
			}
		}
	case event.Waiting:
		if c := s.find(b.Call, phaseNew); c != nil {
			c.Phase, c.Preview, c.Rules, c.Until = phaseWaiting, b.Preview, b.Rules, b.Until
			c.Asked = e.Seq
		}
	case event.Decided:
		s.answered(b)
		c := s.find(b.Call, phaseWaiting)
		switch {
		case c == nil || !decides(b, c.Asked):
		case b.Allow:
			c.Phase, c.Answer = phaseReady, b.Answer
			s.grant(b.Scope, c.Rules)
		default:
			c.Phase, c.By, c.Reason = phaseDenied, b.By, b.Reason
		}
	case event.Started:
		if c := s.find(b.Call, phaseReady); c != nil {
			c.Phase, c.Begun = phaseRunning, true
			s.Private = s.Private || c.Private
			s.Untrusted = s.Untrusted || slices.ContainsFunc(c.Effects, func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External })
		}
	case event.Ended:
		s.ended(b)
	}
}

// grant remembers what a person allowed beyond one call. The rules are those
// that were shown, whatever the decision says.
func (s *State) grant(scope event.Scope, rules []string) {
	if scope == event.ScopeOnce {
		return
	}
	for _, r := range rules {
		if !slices.Contains(s.Granted, r) {
			s.Granted = append(s.Granted, r)
		}
	}
}

func (c *Call) judged(b event.Judged) {
	c.Effects, c.Private, c.By, c.Reason = b.Effects, b.Private, b.By, b.Reason
	c.Tool = b.Tool
	if b.Args != nil {
		c.Args = b.Args
	}
	switch b.Action {
	case tool.Allow:
		c.Phase = phaseReady
	case tool.Deny:
		c.Phase = phaseDenied
	}
	// Ask leaves it new until the Waiting event that comes with the verdict.
}

func (s *State) ended(b event.Ended) {
	s.Total.Cost += b.Cost
	var c *Call
	for i := range s.Run.Calls {
		if s.Run.Calls[i].ID == b.Call && s.Run.Calls[i].Phase != phaseEnded {
			c = &s.Run.Calls[i]
		}
	}
	if c == nil {
		return
	}
	c.Phase, c.Ended = phaseEnded, &b
	s.retract(b.Call)
	s.Total.Calls++
	for _, f := range b.Files {
		if s.Seen == nil {
			s.Seen = map[string]string{}
		}
		s.Seen[f.Path] = f.Digest
	}
	if b.Cwd != "" {
		s.Cwd = b.Cwd
	}
	if b.Todo != nil {
		s.Todo = b.Todo
	}
	if b.Again {
		s.Total.Again++
	}
	s.Untrusted = s.Untrusted || b.Untrusted
	s.lasts(b)
	s.Work.ended(*c, b)
	s.settle()
}

// settle puts the results before the model once every call has ended, in the
// order of the calls, whatever order they ended in.
func (s *State) settle() {
	for _, c := range s.Run.Calls {
		if c.Phase != phaseEnded {
			return
		}
	}
	var results llm.Parts
	for _, c := range s.Run.Calls {
		results = append(results, llm.Result{
			CallID: c.ID, Name: c.Name, Parts: c.Ended.Parts, Error: c.Ended.Outcome != event.OutcomeOK,
		})
		s.Run.Repeats.note(c)
	}
	s.Run.Calls = nil
	s.push(llm.User, results)
	s.flushSteer()
}

// find returns the call with the id, if it is in the given phase.
func (s *State) find(id string, in phase) *Call {
	for i := range s.Run.Calls {
		if s.Run.Calls[i].ID == id && s.Run.Calls[i].Phase == in {
			return &s.Run.Calls[i]
		}
	}
	return nil
}

// runnable returns the ready calls that conflict with no earlier call that has
// not ended, so that running them together is like running them in order.
func runnable(calls []Call) []Call {
	var set []Call
	for i, c := range calls {
		if c.Phase != phaseReady {
			continue
		}
		free := true
		for _, earlier := range calls[:i] {
			if earlier.Phase != phaseEnded && conflict(earlier.Effects, c.Effects) {
				free = false
			}
		}
		if free {
			set = append(set, c)
		}
	}
	return set
}

// Waits reports whether the call waits for a decision.
func (c Call) Waits() bool { return c.Phase == phaseWaiting }

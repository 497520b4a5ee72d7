package loop

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// replied folds in a reply: its message, and its calls if they may be made.
func (s *State) replied(b event.Replied, seq uint64, at time.Time) {
	r := &s.Run
	r.Asking, r.Failed, r.NotBefore, r.Awaits, r.Route = false, nil, time.Time{}, "", b.Route
	s.measure(b)
	s.Total.Turns++
	s.Pruning.Cold, r.Heard = false, ""
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	s.Total.Unpriced = s.Total.Unpriced || b.Unpriced
	before := r.Again
	r.Reply, r.Answered, r.Again, r.Thought = classify(b), at, replyNone, ""
	switch {
	case r.Reply == replySpoken && before == replySpoken:
		r.Reply = replyAnswer // the text is its answer
	case r.Reply == replySpoken, r.Reply == replyThought:
		r.Again = r.Reply
	}
	if r.Reply == replyThought {
		r.Thought = thought(b.Parts)
	}
	switch r.Reply {
	case replyThought:
		if r.Nudges++; before == replyThought {
			r.Nudges = max(r.Nudges, maxNudges+1)
		}
	case replyEmpty, replyLength, replyCut, replySpoken:
		r.Nudges++
	default:
		r.Nudges = 0
	}
	// A refused or empty turn would spoil every later request.
	if r.Reply != replyRefusal && !blank(b.Parts) {
		s.push(llm.Assistant, b.Parts)
		s.Measured.Messages = len(s.Messages)
		r.Calls = newCalls(b, seq)
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
	case blank(b.Parts) && thought(b.Parts) != "":
		return replyThought
	case blank(b.Parts):
		return replyEmpty
	case b.Stop == llm.StopSpoken:
		return replySpoken
	case b.Stop == llm.StopLength:
		return replyLength
	case b.Stop == llm.StopCut:
		return replyCut
	case b.Stop == llm.StopWindow:
		return replyWindow
	}
	return replyAnswer
}

// thought returns the thoughts among the parts, for people.
func thought(parts llm.Parts) string {
	var texts []string
	for _, p := range parts {
		if t, ok := p.(llm.Reasoning); ok && strings.TrimSpace(t.Text) != "" {
			texts = append(texts, strings.TrimSpace(t.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// newCalls returns the calls of a reply. The calls of a cut reply are incomplete and never made.
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

// called folds in an event about one call.
func (s *State) called(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		s.Total.Cost += b.Cost
		if b.Parent != "" {
			s.made(b, e.Seq)
		}
		if t, c := s.calls.seek(b.Call, phaseNew); c != nil {
			t.judged(c, b)
			c.Cwd = s.Cwd
			if b.Text != "" {
				s.Run.Steer = append(s.Run.Steer, words{Parts: llm.Say(b.Text)})
			}
		}
	case event.Waiting:
		if t, c := s.calls.seek(b.Call, phaseNew); c != nil {
			c.Preview, c.Rules, c.Offers, c.Until, c.Asked, c.Shown = b.Preview, b.Rules, b.Offers, b.Until, e.Seq, b.Shown
			t.move(c, phaseWaiting)
		}
	case event.Decided:
		s.answered(b)
		t, c := s.calls.seek(b.Call, phaseWaiting)
		switch {
		case c == nil || !b.On(c.ID, c.Asked):
		case b.Allow:
			c.Answer, c.Worded = b.Answer, b.Answer != ""
			t.decided(c, b)
			s.grant(b.Grants(c.Rules, c.Offers))
		case len(b.Args) > 0 && c.Parent == "":
			c.edit(b.Args)
			t.move(c, phaseNew)
		default:
			c.Worded = b.Reason != "" && b.By != By
			t.decided(c, b)
		}
		s.decidedAlso(b)
	case event.Wanted:
		s.wanted(b, e.Seq)
	case event.Started:
		if t, c := s.calls.seek(b.Call, phaseReady); c != nil {
			c.Begun, c.Started = true, e.Seq
			t.move(c, phaseRunning)
			s.Private = s.Private || c.Private
			s.Untrusted = s.Untrusted || slices.ContainsFunc(c.Effects,
				func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External && !e.Gives })
		}
	case event.Ended:
		s.ended(b, e.Seq)
	}
}

// grant remembers what a person allowed beyond one call. The rules are those that were shown, regardless of the
// decision's own.
func (s *State) grant(rules []string) {
	for _, r := range rules {
		if !slices.Contains(s.Granted, r) {
			s.Granted = append(s.Granted, r)
		}
	}
}

// edit gives a call the arguments of a person. Nothing of the question about it applies any more.
func (c *Call) edit(args json.RawMessage) {
	c.Name, c.Tool, c.Args, c.Edited = cmp.Or(c.Tool, c.Name), "", args, true
	c.Preview, c.Rules, c.Offers, c.Until, c.Asked, c.Shown = "", nil, nil, time.Time{}, 0, nil
}

func (t *table) judged(c *Call, b event.Judged) {
	c.Effects, c.Private, c.By, c.Reason = b.Effects, b.Private, b.By, b.Reason
	if c.Caller = b.Caller; c.Caller {
		c.inner = newTable(nil)
	}
	if c.Parent == "" {
		c.Tool = b.Tool
	}
	if b.Args != nil {
		c.Args = b.Args
	}
	switch b.Action {
	case tool.Allow:
		t.move(c, phaseReady)
	case tool.Deny:
		t.move(c, phaseDenied)
	}
	// An Ask verdict leaves it new until the Waiting event that follows.
}

func (s *State) ended(b event.Ended, seq uint64) {
	s.Total.Cost += b.Cost
	t, c := s.calls.seek(b.Call)
	if c == nil {
		return
	}
	if c.Worded {
		to := cut(cmp.Or(c.Preview, c.Name+" "+string(c.Args)), maxTo)
		s.Answers = append(slices.Clone(s.Answers), Answer{Seq: seq, Call: b.Call, To: to, Text: cut(b.Parts.Text(), maxAnswer)})
	}
	c.Ended, c.Made, c.inner = &b, nil, nil
	if c.Parent != "" {
		c.Over = seq
	}
	t.move(c, phaseEnded)
	s.retract(b.Call)
	s.Total.Calls++
	for _, f := range b.Files {
		if s.Seen == nil {
			s.Seen = map[string]string{}
		}
		if !f.Partly { // otherwise it stays unknown, or as outdated as it was
			s.Seen[f.Path] = f.Digest
		}
	}
	s.calls.rewritten(*c, b.Files)
	if b.Cwd != "" {
		s.Cwd = b.Cwd
	}
	if b.Todo != nil {
		s.Todo = b.Todo
	}
	s.keep(b.Store)
	if b.Again {
		s.Total.Again++
	}
	s.Untrusted = s.Untrusted || b.Untrusted
	if c.Parent == "" { // otherwise the model has not seen its result
		s.lasts(b)
	}
	s.wrote(b, seq)
	s.Work.ended(s.Root, *c, b)
	s.Run.tried(*c, b)
	s.left(b)
	s.settle()
}

const (
	maxTo     = 300     // bytes of the question that are kept with the answer
	maxAnswer = 4 << 10 // and bytes of the answer
)

// rewritten applies a call's change of files that a person was shown: other calls that were shown the old
// content now count as shown the new one. Changes by other means, such as a command, are not shown to anyone.
func (t *table) rewritten(by Call, files []tool.File) {
	for _, f := range files {
		at := slices.IndexFunc(by.Shown, func(was tool.File) bool { return was.Path == f.Path })
		if at >= 0 && f.Written {
			t.goOn(by.Shown[at], f.Digest)
		}
	}
}

// goOn updates the calls that were shown a file as it was to its new digest. A copied state may share the
// lists.
func (t *table) goOn(was tool.File, digest string) {
	if t == nil {
		return
	}
	for i := range t.calls {
		c := &t.calls[i]
		c.inner.goOn(was, digest)
		if at := slices.Index(c.Shown, was); at >= 0 {
			c.Shown = slices.Clone(c.Shown)
			c.Shown[at].Digest = digest
		}
	}
}

// settle passes the results to the model once every call has ended, in the order of the calls.
func (s *State) settle() {
	if s.calls.in[phaseEnded] < len(s.Run.Calls) {
		return
	}
	var results llm.Parts
	for _, c := range s.Run.Calls {
		results = append(results, llm.Result{
			CallID: c.ID, Name: c.Name, Parts: c.Ended.Parts, Error: c.Ended.Outcome != event.OutcomeOK,
		})
		s.Run.Repeats.note(c, len(s.Jobs) > 0 || s.Busy)
	}
	s.Run.Calls = nil
	s.push(llm.User, results)
	s.flushSteer()
}

// Call returns the call of the last reply with this id, or one nested in it, unless it has ended.
func (s *State) Call(id string) (c Call, ok bool) {
	if _, found := s.calls.seek(id); found != nil {
		return *found, true
	}
	return Call{}, false
}

// Waiting returns the calls that wait for a decision, whether or not others are running.
func (s *State) Waiting() []Call {
	if s.Run.Cancelled {
		return nil
	}
	return s.calls.waits()
}

// Due returns when the first of the waiting calls stops taking answers; zero means never.
func (s *State) Due() (at time.Time) {
	for _, c := range s.calls.waits() {
		if !c.Until.IsZero() && (at.IsZero() || c.Until.Before(at)) {
			at = c.Until
		}
	}
	return at
}

// Waits reports whether the call waits for a decision.
func (c Call) Waits() bool { return c.Phase == phaseWaiting }

package loop

import (
	"cmp"
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
	r.Asking, r.Failed, r.NotBefore, r.WaitCause, r.Route = false, nil, time.Time{}, "", b.Route
	s.measure(b)
	s.Total.Turns++
	s.Pruning.Cold, r.UnseenText = false, ""
	s.Total.Usage = s.Total.Usage.Add(b.Usage)
	s.Total.Cost += b.Cost
	s.Total.Unpriced = s.Total.Unpriced || b.Unpriced
	before := r.Retried
	r.Reply, r.Answered, r.Retried, r.Thought = classify(b), at, replyNone, ""
	switch {
	case r.Reply == replyCallAsText && before == replyCallAsText:
		r.Reply = replyAnswer // asked again, the model insists on the text
	case r.Reply == replyCallAsText, r.Reply == replyThought:
		r.Retried = r.Reply
	}
	if r.Reply == replyThought {
		r.Thought = thought(b.Parts)
	}
	switch r.Reply {
	case replyThought:
		if r.Nudges++; before == replyThought {
			r.Nudges = max(r.Nudges, maxNudges+1)
		}
	case replyEmpty, replyLength, replyCut, replyCallAsText:
		r.Nudges++
	default:
		r.Nudges = 0
	}
	// A refused or empty message would make every later request invalid.
	if r.Reply != replyRefusal && !blank(b.Parts) {
		s.push(llm.Assistant, b.Parts)
		s.Measured.Messages = len(s.Messages)
		// The calls of a reply that was cut may be incomplete, and never run.
		first := phaseNew
		switch b.Stop {
		case llm.StopLength, llm.StopCut, llm.StopWindow:
			first = phaseCut
		}
		r.Calls = nil
		for _, c := range b.Parts.Calls() {
			r.Calls = append(r.Calls, Call{Call: c, Seq: seq, Phase: first})
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
	case blank(b.Parts) && thought(b.Parts) != "":
		return replyThought
	case blank(b.Parts):
		return replyEmpty
	case b.Stop == llm.StopSpoken:
		return replyCallAsText
	case b.Stop == llm.StopLength:
		return replyLength
	case b.Stop == llm.StopCut:
		return replyCut
	case b.Stop == llm.StopWindow:
		return replyWindow
	}
	return replyAnswer
}

// thought returns the text of the reasoning among the parts.
func thought(parts llm.Parts) string {
	var texts []string
	for _, p := range parts {
		if t, ok := p.(llm.Reasoning); ok && strings.TrimSpace(t.Text) != "" {
			texts = append(texts, strings.TrimSpace(t.Text))
		}
	}
	return strings.Join(texts, "\n")
}

// called folds in an event about one call.
func (s *State) called(e event.Event) {
	switch b := e.Body.(type) {
	case event.Judged:
		s.Total.Cost += b.Cost
		if b.Parent != "" {
			s.addNested(b, e.Seq)
		}
		if t, c := s.calls.findNested(b.Call, phaseNew); c != nil {
			t.judged(c, b)
			c.Cwd = s.Cwd
			if b.Text != "" {
				s.Run.Steer = append(s.Run.Steer, message{Parts: llm.Say(b.Text)})
			}
		}
	case event.Waiting:
		if t, c := s.calls.findNested(b.Call, phaseNew); c != nil {
			c.Preview, c.Rules, c.Offers, c.Until, c.WaitingSeq, c.Shown = b.Preview, b.Rules, b.Offers, b.Until, e.Seq, b.Shown
			t.move(c, phaseWaiting)
		}
	case event.Decided:
		s.answered(b)
		t, c := s.calls.findNested(b.Call, phaseWaiting)
		switch {
		case c == nil || !b.On(c.ID, c.WaitingSeq):
		case b.Allow:
			c.Answer, c.AnsweredInWords = b.Answer, b.Answer != ""
			t.decided(c, b)
			s.grant(b.Grants(c.Rules, c.Offers))
		case len(b.Args) > 0 && c.Parent == "":
			// A person's arguments replace those of the call, and the question about the old ones.
			c.Name, c.Tool, c.Args, c.Edited = cmp.Or(c.Tool, c.Name), "", b.Args, true
			c.Preview, c.Rules, c.Offers, c.Until, c.WaitingSeq, c.Shown = "", nil, nil, time.Time{}, 0, nil
			t.move(c, phaseNew)
		default:
			c.AnsweredInWords = b.Reason != "" && b.By != By
			t.decided(c, b)
		}
		s.decidedAlso(b)
	case event.Wanted:
		s.parentReached(b, e.Seq)
	case event.Started:
		if t, c := s.calls.findNested(b.Call, phaseReady); c != nil {
			c.Begun, c.StartedSeq = true, e.Seq
			t.move(c, phaseRunning)
			s.Private = s.Private || c.Private
			s.Untrusted = s.Untrusted || slices.ContainsFunc(c.Effects,
				func(e tool.Effect) bool { return e.Kind == tool.Network || e.Kind == tool.External && !e.SendsOnly })
		}
	case event.Ended:
		s.ended(b, e.Seq)
	}
}

// grant adds rules that a person allowed for the session. They come from the question as it was shown, not from
// the decision.
func (s *State) grant(rules []string) {
	for _, r := range rules {
		if !slices.Contains(s.Granted, r) {
			s.Granted = append(s.Granted, r)
		}
	}
}

func (t *table) judged(c *Call, b event.Judged) {
	c.Effects, c.Private, c.By, c.Reason = b.Effects, b.Private, b.By, b.Reason
	if c.Caller = b.Caller; c.Caller {
		c.nestedTable = newTable(nil)
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
	t, c := s.calls.findNested(b.Call)
	if c == nil {
		return
	}
	if c.AnsweredInWords {
		to := truncate(cmp.Or(c.Preview, c.Name+" "+string(c.Args)), maxTo)
		s.Answers = append(slices.Clone(s.Answers), Answer{Seq: seq, Call: b.Call, To: to, Text: truncate(b.Parts.Text(), maxAnswer)})
	}
	c.Ended, c.Nested, c.nestedTable = &b, nil, nil
	if c.Parent != "" {
		c.EndedSeq = seq
	}
	t.move(c, phaseEnded)
	s.retract(b.Call)
	s.Total.Calls++
	for _, f := range b.Files {
		if s.Seen == nil {
			s.Seen = map[string]string{}
		}
		if !f.Partial { // a partial read proves nothing about the rest of the file
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
	s.storeValues(b.Store)
	if b.Again {
		s.Total.Again++
	}
	s.Untrusted = s.Untrusted || b.Untrusted
	if c.Parent == "" { // the model does not see the result of a nested call
		s.keepLasting(b)
	}
	s.recordProposal(b, seq)
	s.Work.ended(s.Root, *c, b)
	s.Run.recordAttempt(*c, b)
	s.recordJobs(b)
	s.settle()
}

const (
	maxTo     = 300     // bytes kept of a question
	maxAnswer = 4 << 10 // bytes kept of its answer
)

// rewritten handles changes that a person approved after seeing the file: other calls that were approved with the
// old content now count as approved with the new content. A change by other means, such as a command, does not
// carry over, because the person has not seen it.
func (t *table) rewritten(by Call, files []tool.File) {
	for _, f := range files {
		i := slices.IndexFunc(by.Shown, func(old tool.File) bool { return old.Path == f.Path })
		if i >= 0 && f.Written {
			t.updateShown(by.Shown[i], f.Digest)
		}
	}
}

// updateShown gives calls that were shown the old file its new digest. It copies the lists, which a copied state
// may share.
func (t *table) updateShown(old tool.File, digest string) {
	if t == nil {
		return
	}
	for i := range t.calls {
		c := &t.calls[i]
		c.nestedTable.updateShown(old, digest)
		if i := slices.Index(c.Shown, old); i >= 0 {
			c.Shown = slices.Clone(c.Shown)
			c.Shown[i].Digest = digest
		}
	}
}

// settle appends the results to the conversation, in the order of the calls, once every call has ended.
func (s *State) settle() {
	if s.calls.in[phaseEnded] < len(s.Run.Calls) {
		return
	}
	var results llm.Parts
	for _, c := range s.Run.Calls {
		results = append(results, llm.Result{
			CallID: c.ID, Name: c.Name, Parts: c.Ended.Parts, Error: c.Ended.Outcome != event.OutcomeOK,
		})
		s.Run.Repeats.note(c, len(s.Jobs) > 0 || s.LeftProcesses)
	}
	s.Run.Calls = nil
	s.push(llm.User, results)
	s.flushSteer()
}

// loseCalls marks running calls as lost because their process is gone. If rerun is set, calls that only read or that
// make nested calls become ready again instead. A copy of the session runs none again.
func (s *State) loseCalls(calls []Call, rerun bool) {
	for i := range calls {
		c := &calls[i]
		// A copied state may share the list. A nested call without a verdict is made again by its parent.
		c.Nested = slices.DeleteFunc(slices.Clone(c.Nested), func(m Call) bool { return m.Phase == phaseNew })
		s.loseCalls(c.Nested, rerun)
		c.nestedTable = nil
		if c.Phase != phaseRunning {
			continue
		}
		c.Phase = phaseLost
		if rerun {
			s.retract(c.ID)
		}
		if rerun && (c.Caller || tool.ReadOnly(c.Effects)) {
			c.Phase = phaseReady
		}
	}
}

// Call returns the unfinished call with this id, of the last reply or nested in one of its calls.
func (s *State) Call(id string) (c Call, ok bool) {
	if _, found := s.calls.findNested(id); found != nil {
		return *found, true
	}
	return Call{}, false
}

// Waiting returns the calls that wait for a decision, whether or not others are running.
func (s *State) Waiting() []Call {
	if s.Run.Cancelled {
		return nil
	}
	return s.calls.waitingCalls()
}

// Due returns when the first of the waiting calls times out; zero means never.
func (s *State) Due() (at time.Time) {
	for _, c := range s.calls.waitingCalls() {
		if !c.Until.IsZero() && (at.IsZero() || c.Until.Before(at)) {
			at = c.Until
		}
	}
	return at
}

// Waits reports whether the call waits for a decision.
func (c Call) Waits() bool { return c.Phase == phaseWaiting }

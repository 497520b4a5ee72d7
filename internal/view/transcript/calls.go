package transcript

import (
	"cmp"
	"slices"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
)

// MaxPrinted bounds the output of a running call that Printed returns, in bytes.
const MaxPrinted = 32 << 10

// Open adds a call that was made before the first event, with its open question, if any.
func (f *Fold) Open(c *Call) {
	f.remember(c)
	if c.Question != nil {
		c.Question.Call = c
		f.Now.Questions = append(f.Now.Questions, c.Question)
	}
}

func (f *Fold) remember(c *Call) {
	if f.calls == nil {
		f.calls = map[string]*Call{}
	}
	f.calls[c.Call.ID] = c
}

// unfinished returns the unfinished call with this id. It makes one if the id is unknown, because the reply may have
// come before the first event.
func (f *Fold) unfinished(id string) *Call {
	if f.calls[id] == nil {
		f.remember(&Call{Call: llm.Call{ID: id}})
	}
	return f.calls[id]
}

// call folds an event of a call.
func (f *Fold) call(e event.Event) []Item {
	switch b := e.Body.(type) {
	case event.Judged:
		f.spend(llm.Usage{}, b.Cost)
		c := f.unfinished(b.Call)
		c.State, c.Judged, c.Call = Judged, &b, words.Judged(c.Call, b)
		if b.Parent != "" {
			c.Seq, c.Parent = e.Seq, f.unfinished(b.Parent)
		}
		return []Item{c}
	case event.Waiting:
		c := f.unfinished(b.Call)
		c.State = Waiting
		c.Question = &Question{Seq: e.Seq, ID: b.Call, Call: c, Preview: b.Preview, Rules: b.Rules, Offers: b.Offers, Until: b.Until}
		f.Now.Questions = append(f.Now.Questions, c.Question)
		return []Item{c, c.Question}
	case event.Decided:
		return f.decided(b)
	case event.Wanted:
		if c := f.calls[b.Call]; c != nil {
			c.reached = true
		}
	case event.Started:
		return f.started(e, b)
	case event.Progress:
		return f.progress(e, b)
	case event.Ended:
		return f.ended(b)
	}
	return nil
}

// Waiting returns the open questions about calls of the session itself.
func (f *Fold) Waiting() (out []*Question) {
	for _, q := range f.Now.Questions {
		if q.Call != nil {
			out = append(out, q)
		}
	}
	return out
}

// Raised returns the open questions of children, and of calls that ask while they run.
func (f *Fold) Raised() (out []*Question) {
	for _, q := range f.Now.Questions {
		if q.Raised != nil {
			out = append(out, q)
		}
	}
	return out
}

// Pending returns an open question in the form for [inspan.Conductor] and its answers.
func (f *Fold) Pending(q *Question) inspan.Pending {
	if q.Raised != nil {
		return inspan.PendingOf(inspan.Question{Raised: *q.Raised, Seq: q.Seq})
	}
	p := inspan.Pending{
		Call: q.Call.Call, Question: q.Seq, Effects: q.Call.Effects(), Waits: true, IsQuestion: drive.AsksPerson(q.Call.Effects()),
		Preview: q.Preview, Rules: q.Rules, Offers: q.Offers, Until: q.Until, Root: f.Session.Root,
	}
	p.Call.Name = cmp.Or(p.Call.Name, "a call")
	if j := q.Call.Judged; j != nil {
		p.Reason, p.Parent, p.RequestedAhead = j.Reason, j.Parent, j.RequestedAhead && !q.Call.reached
	}
	return p
}

// decided closes the questions that a decision answers. A decision that answers none changes nothing.
func (f *Fold) decided(b event.Decided) []Item {
	return f.closeQuestions(func(q *Question) bool {
		on := b.On(q.ID, q.Seq)
		if q.Call != nil && q.Call.Parent != nil {
			on = b.OnCall(q.ID, q.Call.Parent.Call.ID, q.Seq)
		}
		if !on {
			return false
		}
		q.Answer = &b
		if q.Call != nil {
			q.Call.Decided = &b
		}
		return true
	})
}

func (f *Fold) started(e event.Event, b event.Started) []Item {
	c := f.unfinished(b.Call)
	items := f.closeQuestions(func(q *Question) bool { return q.Call == c })
	c.State, c.Started = Running, e.Time
	c.clearProgress()
	f.Now.Running = append(slices.DeleteFunc(f.Now.Running, func(r *Call) bool { return r == c }), c)
	return append(items, c)
}

func (c *Call) clearProgress() { c.Latest, c.printed = "", nil }

// stopRunning clears the running calls at the end of a run.
func (f *Fold) stopRunning() {
	for _, c := range f.Now.Running {
		c.clearProgress()
	}
	f.Now.Running = nil
}

// Printed returns the end of a running call's output; empty once it has ended.
func (c *Call) Printed() string { return string(c.printed[max(0, len(c.printed)-MaxPrinted):]) }

// progress folds a line of progress of a call or of the run.
func (f *Fold) progress(e event.Event, b event.Progress) []Item {
	items := f.wait(e)
	if c := f.calls[b.Call]; b.Text != "" && slices.Contains(f.Now.Running, c) {
		c.Latest = b.Text
		if c.printed = append(c.printed, b.Text...); len(c.printed) > 2*MaxPrinted {
			c.printed = append([]byte(nil), c.printed[len(c.printed)-MaxPrinted:]...)
		}
		if len(items) == 0 {
			items = append(items, c)
		}
	}
	if b.Call == "" && len(items) == 0 {
		return f.note(e)
	}
	return items
}

// ended folds the result of a call.
func (f *Fold) ended(b event.Ended) []Item {
	c := f.unfinished(b.Call)
	items := f.closeQuestions(func(q *Question) bool {
		return q.Call == c || q.Raised != nil && q.Raised.Child == "" && q.Raised.Call == b.Call
	})
	delete(f.calls, b.Call)
	f.Now.Running = slices.DeleteFunc(f.Now.Running, func(r *Call) bool { return r == c })
	c.State, c.Ended = Over, b
	c.clearProgress()
	f.spend(llm.Usage{}, b.Cost)
	f.Spent.Calls++
	if b.Todo != nil {
		f.Todo = b.Todo
	}
	for _, file := range b.Files {
		if file.Written && !slices.Contains(f.Files, file.Path) {
			f.Files = append(f.Files, file.Path)
		}
	}
	return append(items, c)
}

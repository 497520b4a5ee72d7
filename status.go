package inspan

import (
	"cmp"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Status is how a session stands.
type Status struct {
	Session string
	Who     tool.Actor // the agent of the session
	Seq     uint64     // last event
	// Traceparent is the span that the session belongs to, as W3C Trace Context has it; empty: none.
	Traceparent string
	Root        string
	Title       string
	Task        string // what the person said last
	// Workflow is what performs the session in the place of a model, by the title of the step that it
	// is; empty: a model answers.
	Workflow string
	Corpus   event.Corpus // what it answers questions from
	// Workspace is where the state of its workspace is; zero if that does not travel.
	Workspace event.Workspace
	Route     string // model, "provider/model"
	Mode      tool.Mode
	Folders   []string       // that calls may use as they may the workspace
	Tools     []string       // that the model is told of
	Stopped   *event.Stopped // how the last run ended; nil before the first and while one goes on
	Open      []Pending      // calls of the last reply that have not ended
	Waiting   []Pending      // those of them that wait for a decision, while others run or not
	Rests     bool           // nothing goes on but the wait for those decisions
	// Children work, or have worked, for this session, the oldest first; Raised are
	// questions of theirs, and of calls that run, that wait for an event.Decided.
	Children []Child
	Raised   []Question
	Tasks    Tasks    // that the session and its children share
	Granted  []string // rules that the person allowed for the session
	Active   bool     // a run goes on, or was broken off
	// Asking says that a request to the model is open, or was when the run was broken
	// off; NotBefore when the next one may be sent. Zero: at once.
	Asking    bool
	NotBefore time.Time
	// Paused is the last wait of all that work for the session in the run, nil: there was none.
	// Braked says why the run is being stopped, or was, with all of them; Rate what they had used
	// up in a minute when that was so last. Runs is how many were begun since it was opened here.
	Paused  *event.Paused
	Braked  string
	Rate    event.Rate
	Runs    int
	Seconds float64 // that the run has taken, waits for people aside
	Limits  event.Limits
	Turns   int // of the whole session, as are the next three
	Calls   int
	Usage   llm.Usage
	Cost    float64 // US dollars
	// The conversation holds text that nobody here has written, and what is the
	// person's own beyond the workspace. With both, whatever has a way out asks.
	Untrusted, Private bool
	Unpriced           bool // Cost lacks replies whose price is not known
}

// Tasks is the list of tasks that a session and those who work for it share. It is
// only to be read.
type Tasks = loop.Tasks

// Child is a session that works for another.
type Child struct {
	event.Spawned
	Open     bool            // it works, or would if somebody drove it
	Returned *event.Returned // how it came back last; nil: it never did
	Usage    llm.Usage       // as it came back
	Cost     float64         // the same, US dollars
}

// Pending is a call that waits for a person. Answer it with event.Decided.
type Pending struct {
	Call llm.Call // as it will run
	// Question is what event.Decided names beside the call's id: an answer counts for this
	// question and no other.
	Question uint64
	Effects  []tool.Effect
	Waits    bool          // for a decision
	Asks     bool          // the call asks the person something: what is to be decided is the answer
	Reason   string        // why it asks
	Preview  string        // what would change; may be empty
	Rules    []string      // the narrowest that would allow it for longer; empty: it can only be allowed once
	Offers   []event.Offer // what else it can be allowed for in this session
	Until    time.Time     // when no answer becomes a no; zero: never
	Agent    string        // kind of the child that asks; empty: the session itself does
	// Parent is the call that has made this one; empty: the model has, or it was raised. Ahead says
	// that the parent has asked for it behind another call that waits, see [tool.Tool].
	Parent string
	Ahead  bool
	Root   string // the workspace of the session; empty if it was raised
	// Set are the calls that the question is about, each as if it were asked about alone, where these
	// are several: see [Sets]. First come those that a person must see first, such as those that reach
	// hosts. Call, Reason and Preview are of the one that was asked for first, Effects and Until of all.
	// Whoever is asked must be shown all of them, as one answer is for all: they can be allowed once or denied.
	Set []Pending
}

// Question is one that was raised, and its number in the log.
type Question = loop.Question

// Asked is a question that was raised in the form of a call that waits. Its
// Call.ID and Question are what an event.Decided names.
func Asked(r Question) Pending {
	return Pending{
		Question: r.Seq,
		Call:     llm.Call{ID: r.ID, Name: r.Tool, Args: r.Args}, Effects: r.Effects, Waits: true, Asks: drive.AsksPerson(r.Effects),
		Reason: r.Reason, Preview: r.Preview, Rules: r.Rules, Offers: r.Offers, Until: r.Until, Agent: cmp.Or(r.Agent, r.Child),
	}
}

// bound is a decision that names the question that whoever decided can have meant: the one
// with the [Pending.ID] that is open.
func bound(st *loop.State, d event.Decided) event.Decided {
	if d.Question > 0 {
		return d
	}
	if p, open := statusOf(st).Question(d.Call); open {
		return p.Answer(d)
	}
	return d
}

// answered reports whether a decision is on the question.
func (p Pending) answered(d event.Decided) bool {
	return d.OnCall(p.Call.ID, p.Parent, p.Question)
}

// Over reports whether a workflow has performed the session and nothing of it goes on any more: it is done, or
// has failed by itself. What a model was missing for, a limit or an interrupt only stops it.
func (st Status) Over() bool {
	return st.Workflow != "" && st.Stopped != nil &&
		(st.Stopped.Reason == event.ReasonDone || st.Stopped.Reason == event.ReasonFailed && st.Stopped.Cause == "")
}

// Questions are those that wait for an answer: those of children and of calls that run, then the
// calls that wait.
func (st Status) Questions() []Pending {
	var out []Pending
	for _, r := range st.Raised {
		out = append(out, Asked(r))
	}
	return append(out, st.Waiting...)
}

func statusOf(st *loop.State) Status {
	out := Status{
		Session: st.Session, Who: drive.Actor(st.Session, st.Agent), Seq: st.Seq, Traceparent: st.Within, Root: st.Root, Title: st.Title, Task: st.Task,
		Workflow: st.Steps[event.Workflow].Title, Corpus: st.Corpus, Workspace: st.Workspace,
		Route: st.Route, Mode: st.Mode, Folders: slices.Clone(st.Folders), Limits: st.Limits,
		Stopped: st.Run.Stopped, Turns: st.Total.Turns, Calls: st.Total.Calls,
		Usage: st.Total.Usage, Cost: st.Total.Cost, Unpriced: st.Total.Unpriced, Untrusted: st.Untrusted, Private: st.Private,
	}
	for _, t := range st.Tools {
		out.Tools = append(out.Tools, t.Name)
	}
	out.Open = pending(st.Run.Calls, st.Root)
	for _, c := range st.Children {
		out.Children = append(out.Children, Child(c))
	}
	out.Raised, out.Granted = slices.Clone(st.Raised), slices.Clone(st.Granted)
	out.Tasks = st.Tasks
	out.Active, out.Seconds, out.Asking, out.NotBefore = st.Run.Active, st.Run.Used(), st.Run.Asking, st.Run.NotBefore
	out.Paused, out.Braked, out.Rate, out.Runs = st.Run.Paused, st.Run.Braked, st.Braked, st.Runs()
	if out.Waiting = pending(st.Waiting(), st.Root); len(out.Waiting) > 0 {
		_, out.Rests = st.Next().(loop.Wait)
	}
	return out
}

func pending(calls []loop.Call, root string) []Pending {
	var out []Pending
	for _, c := range calls {
		if c.Ended == nil {
			call := c.Call
			call.Name = cmp.Or(c.Tool, c.Name)
			out = append(out, Pending{
				Call: call, Question: c.Asked, Effects: c.Effects, Waits: c.Waits(), Asks: drive.AsksPerson(c.Effects), Reason: c.Reason, Preview: c.Preview,
				Rules: c.Rules, Offers: c.Offers, Until: c.Until, Parent: c.Parent, Ahead: c.Ahead, Root: root,
			})
		}
	}
	return out
}

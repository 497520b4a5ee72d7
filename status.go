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

// Status is the state of a session.
type Status struct {
	Session string
	Who     tool.Actor // the agent of the session
	Seq     uint64     // number of the last event
	// Traceparent is the parent span of the session in the form of W3C Trace Context; empty if none.
	Traceparent string
	Root        string
	Title       string
	Task        string // the person's last message
	// Workflow is the title of the workflow that drives the session; empty if a model answers.
	Workflow string
	Corpus   event.Corpus // text that the session answers questions about
	// Workspace is where the state of a moving workspace is stored; zero if the workspace stays on one machine.
	Workspace event.Workspace
	Route     string // the model, as "provider/model"
	Mode      tool.Mode
	Folders   []string       // additional folders that calls may use like the workspace
	Tools     []string       // tools that the model knows
	Stopped   *event.Stopped // how the last run ended; nil before the first run and during one
	Open      []Pending      // calls of the last reply that have not ended
	Waiting   []Pending      // calls that wait for a decision; others may be running
	Rests     bool           // the run only waits for these decisions
	// Children are the sessions that work or worked for this one, the oldest first. Raised holds the open questions of
	// children, running calls and steps; answer them with event.Decided.
	Children []Child
	Raised   []Question
	Tasks    Tasks    // tasks shared by the session and its children
	Granted  []string // rules that the person allowed for the session
	Active   bool     // a run is in progress, or was aborted
	// Asking means that a request to the model is in progress, or was when the run was aborted. NotBefore is
	// the earliest time for the next request; zero means now.
	Asking    bool
	NotBefore time.Time
	// Paused is the last pause of the run, together with the session's children; nil if there was none. Braked
	// gives the reason why the breaker stopped the run; empty if it did not. Rate is the usage per minute when it
	// last stopped a run. Runs counts the runs that began since this process opened the session.
	Paused  *event.Paused
	Braked  string
	Rate    event.Rate
	Runs    int
	Seconds float64 // duration of the run, not counting waits for people
	Limits  event.Limits
	Turns   int // of the whole session, like the next three fields
	Calls   int
	Usage   llm.Usage
	Cost    float64 // US dollars
	// Untrusted means that the conversation holds text by strangers, Private that it holds private data from beyond the
	// workspace. If both are true, every call that can reach the outside asks.
	Untrusted, Private bool
	Unpriced           bool // Cost lacks replies of unknown price
}

// Tasks is the task list that a session shares with its children. Don't modify it.
type Tasks = loop.Tasks

// Child is a session that works for another.
type Child struct {
	event.Spawned
	Open     bool            // it is working
	Returned *event.Returned // its last result; nil if there is none yet
	Usage    llm.Usage       // as of its last result
	Cost     float64         // US dollars, as of its last result
}

// Pending is a call that waits for a person. Answer it with event.Decided.
type Pending struct {
	Call llm.Call // the call as it will run
	// Question is the number of the event that asks. With the id of the call it identifies the question in
	// event.Decided, so an answer applies to this question only.
	Question uint64
	Effects  []tool.Effect
	Waits    bool          // it waits for a decision
	Asks     bool          // the call asks the person something, and the decision is the answer
	Reason   string        // why a person is asked
	Preview  string        // the change that the call would make; may be empty
	Rules    []string      // the narrowest rules that would allow it from now on; if empty, it can only be allowed once
	Offers   []event.Offer // further permissions that can be granted with it for this session
	Until    time.Time     // when the question times out and the call is denied; zero means never
	Agent    string        // kind of the subagent that asks; empty if the session itself does
	// Parent is the call that made this one; empty if the model did, or if the question was raised. RequestedAhead means
	// that the parent requested it while an earlier call waits, see [tool.Tool].
	Parent         string
	RequestedAhead bool
	Root           string // the workspace of the session; empty if the question was raised
	// Set holds the single questions if the question is about several calls, see [Sets]. Calls that a person must see
	// first, such as calls that reach hosts, come first. Call, Reason and Preview belong to the call that was requested
	// first; Effects and Until cover all. Show the whole Set to the person, because one answer applies to all of it:
	// allow once, or deny.
	Set []Pending
}

// Question is a question that was raised, with its event number.
type Question = loop.Question

// Asked returns a raised question in the form of a waiting call. An event.Decided must name its Call.ID and Question.
func Asked(r Question) Pending {
	return Pending{
		Question: r.Seq,
		Call:     llm.Call{ID: r.ID, Name: r.Tool, Args: r.Args}, Effects: r.Effects, Waits: true, Asks: drive.AsksPerson(r.Effects),
		Reason: r.Reason, Preview: r.Preview, Rules: r.Rules, Offers: r.Offers, Until: r.Until, Agent: cmp.Or(r.Agent, r.Child),
	}
}

// bindDecision adds the number of the question to a decision that names only its [Pending.ID].
func bindDecision(st *loop.State, d event.Decided) event.Decided {
	if d.Question > 0 {
		return d
	}
	if p, open := statusOf(st).Question(d.Call); open {
		return p.Answer(d)
	}
	return d
}

// answered reports whether d is about this question.
func (p Pending) answered(d event.Decided) bool {
	return d.OnCall(p.Call.ID, p.Parent, p.Question)
}

// Over reports whether a workflow drives the session and has ended for good: done, or failed by itself. It can continue
// after an unavailable model, a limit or an interrupt.
func (st Status) Over() bool {
	return st.Workflow != "" && st.Stopped != nil &&
		(st.Stopped.Reason == event.ReasonDone || st.Stopped.Reason == event.ReasonFailed && st.Stopped.Cause == "")
}

// Questions returns all open questions: first the raised ones, then the waiting calls.
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
	out.Paused, out.Braked, out.Rate, out.Runs = st.Run.Paused, st.Run.BreakerReason, st.BreakerRate, st.RunCount()
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
				Call: call, Question: c.WaitingSeq, Effects: c.Effects, Waits: c.Waits(), Asks: drive.AsksPerson(c.Effects), Reason: c.Reason, Preview: c.Preview,
				Rules: c.Rules, Offers: c.Offers, Until: c.Until, Parent: c.Parent, RequestedAhead: c.RequestedAhead, Root: root,
			})
		}
	}
	return out
}

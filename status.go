package inspan

import (
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
	OpenCalls []Pending      // calls of the last reply that have not ended
	Waiting   []Pending      // calls that wait for a decision; others may be running
	OnlyWaits bool           // the run only waits for these decisions
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
	// Paused is the last pause of the run, together with the session's children; nil if there was none. RateExceeded
	// gives the reason why the breaker stopped the run; empty if it did not. Rate is the usage per minute when it
	// last stopped a run. Runs counts the runs that began since this process opened the session.
	Paused       *event.Paused
	RateExceeded string
	Rate         event.Rate
	Runs         int
	Seconds      float64 // duration of the run, not counting waits for people
	Limits       event.Limits
	Turns        int // of the whole session, like the next three fields
	Calls        int
	Usage        llm.Usage
	Cost         float64 // US dollars
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

// WorkflowEnded reports whether a workflow drives the session and has ended for good: done, or failed by itself. It can continue
// after an unavailable model, a limit or an interrupt.
func (st Status) WorkflowEnded() bool {
	return st.Workflow != "" && st.Stopped != nil &&
		(st.Stopped.Reason == event.ReasonDone || st.Stopped.Reason == event.ReasonFailed && st.Stopped.Cause == "")
}

// Questions returns all open questions: first the raised ones, then the waiting calls.
func (st Status) Questions() []Pending {
	var out []Pending
	for _, r := range st.Raised {
		out = append(out, PendingOf(r))
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
	out.OpenCalls = pending(st.Run.Calls, st.Root)
	for _, c := range st.Children {
		out.Children = append(out.Children, Child(c))
	}
	out.Raised, out.Granted = slices.Clone(st.Raised), slices.Clone(st.Granted)
	out.Tasks = st.Tasks
	out.Active, out.Seconds, out.Asking, out.NotBefore = st.Run.Active, st.Run.Used(), st.Run.Asking, st.Run.NotBefore
	out.Paused, out.RateExceeded, out.Rate, out.Runs = st.Run.Paused, st.Run.BreakerReason, st.BreakerRate, st.RunCount()
	if out.Waiting = pending(st.Waiting(), st.Root); len(out.Waiting) > 0 {
		_, out.OnlyWaits = st.Next().(loop.Wait)
	}
	return out
}

package tool

import (
	"context"
	"encoding/json"
)

// A Hook is code that runs at fixed points of a session. To only watch, read the events instead. Hooks must be
// safe for concurrent use; they run one after another, in their order.
type Hook interface {
	// At is called when the session reaches p, and decides how it continues. The zero Outcome changes nothing. An
	// error or a panic denies a call that is about to be made, and otherwise has no effect; it is noted in the log.
	At(ctx context.Context, p Point) (Outcome, error)
}

// Moment is the point in a session at which a hook runs.
type Moment string

// Moments, with the effect of an [Outcome]. Unless stated otherwise, Text is shown to the model, and before a
// call with that call's result.
const (
	SessionStart  Moment = "session_start"
	SessionEnd    Moment = "session_end"    // nothing
	PromptSaid    Moment = "prompt"         // Deny ends the run before the model is asked
	BeforeCall    Moment = "before_call"    // Action, Reason and Args are a [Verdict]; see there for Grant
	AfterCall     Moment = "after_call"     // Text is added to the result; Result replaces it
	BeforeCompact Moment = "before_compact" // Deny keeps the conversation as it is; Text says what matters most
	AfterCompact  Moment = "after_compact"
	RunStop       Moment = "stop" // Text is shown to the model, which continues with it
	AgentStart    Moment = "subagent_start"
	AgentStop     Moment = "subagent_stop"
	// TeammateIdle is when a member of a team is about to idle; Text lets it continue. TaskCompleted is when a task of a
	// team is about to be marked done; Deny keeps it open.
	TeammateIdle  Moment = "teammate_idle"
	TaskCompleted Moment = "task_completed"
)

// Moments lists them all.
func Moments() []Moment {
	return []Moment{SessionStart, SessionEnd, PromptSaid, BeforeCall, AfterCall, BeforeCompact, AfterCompact, RunStop, AgentStart, AgentStop, TeammateIdle, TaskCompleted}
}

// Actor is the agent that acts in a session. An agent's id is its session's id.
type Actor struct {
	Kind   string // the kind of agent, such as "explore"; empty means the lead, for whom the others work
	Name   string // of a member of a team; set at TeammateIdle and TaskCompleted only
	Parent string // session that it works for; empty means it is the lead
	Lead   string // session of the lead; the lead's own is that
}

// Point describes the point that a session has reached.
type Point struct {
	Moment  Moment
	Session string
	Who     Actor  // whose session it is, and at AgentStart and AgentStop the agent that begins or stops
	Root    string // the workspace
	Mode    Mode
	// Call is the call that is about to be made, with placeholders for secrets, or that was made. Nil at other
	// moments.
	Call    *Call
	Effects []Effect // of a call that is to be made
	Result  *Result  // of a call that was made, without secrets
	Failed  string   // why that call failed; empty if it did not
	// Text is the person's prompt, the model's last text, what a compaction is asked to keep, or the task.
	Text string
	// Why is the cause: "new" or "resumed" for a session, the reason for a stop, or for a compaction. At TaskCompleted it
	// is the number of the task.
	Why string
	// Rounds is how often a hook has made this run continue.
	Rounds int
}

// Outcome is a hook's decision.
type Outcome struct {
	Action Action          // Abstain, Allow, Ask or Deny
	By     string          // who says so, for people
	Reason string          // why, for people and for the model
	Args   json.RawMessage // other arguments for the call, which is then judged again
	Text   string          // for the model
	Result *Result         // replaces the result of the call
}

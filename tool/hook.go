package tool

import (
	"context"
	"encoding/json"
)

// A Hook is code that runs at fixed points of a session. One that only wants to
// know what happens reads the events instead. Hooks must be safe for concurrent
// use; they run one after another, in their order.
type Hook interface {
	// At is told where a session has come to and says what should come of it.
	// The zero Outcome leaves everything as it is. An error or a panic stops nothing but a
	// call that is to be made, which is denied; it is noted.
	At(ctx context.Context, p Point) (Outcome, error)
}

// Moment is where in a session a hook runs.
type Moment string

// Moments, and what an [Outcome] does there. Text is put before the model
// wherever nothing else is said, before a call with what it brings.
const (
	SessionStart  Moment = "session_start"
	SessionEnd    Moment = "session_end"    // nothing
	PromptSaid    Moment = "prompt"         // Deny ends the run before the model is asked
	BeforeCall    Moment = "before_call"    // Action, Reason and Args are a [Verdict]; see there for Grant
	AfterCall     Moment = "after_call"     // Text is added to the result; Result replaces it
	BeforeCompact Moment = "before_compact" // Deny keeps the conversation as it is; Text says what matters most
	AfterCompact  Moment = "after_compact"
	RunStop       Moment = "stop" // Text is put before the model, which goes on with it
	AgentStart    Moment = "subagent_start"
	AgentStop     Moment = "subagent_stop"
)

// Moments lists them all.
func Moments() []Moment {
	return []Moment{SessionStart, SessionEnd, PromptSaid, BeforeCall, AfterCall, BeforeCompact, AfterCompact, RunStop, AgentStart, AgentStop}
}

// Actor is the agent that acts in a session. An agent's id is that of its session.
type Actor struct {
	Kind   string // the kind of agent, such as "explore"; empty: the lead, for whom the others work
	Parent string // session that it works for; empty: it is the lead
	Lead   string // session of the lead; the lead's own is that
}

// Point is where a session has come to.
type Point struct {
	Moment  Moment
	Session string
	Who     Actor  // whose session it is, and at AgentStart and AgentStop the agent that begins or stops
	Root    string // the workspace
	Mode    Mode
	// Call is the one that is to be made, with placeholders for secrets, or that
	// was made. Nil at other moments.
	Call    *Call
	Effects []Effect // of a call that is to be made
	Result  *Result  // of a call that was made, without secrets
	Failed  string   // why that call failed; empty if it did not
	// Text is what the person said, what the model said last, or what a
	// compaction is to keep.
	Text string
	// Why is what started it: "new" or "resumed" for a session, the reason for a
	// stop, or why a conversation is compacted.
	Why string
	// Rounds is how often a hook has made this run go on.
	Rounds int
}

// Outcome is what a hook wants.
type Outcome struct {
	Action Action          // Abstain, Allow, Ask or Deny
	By     string          // who says so, for people
	Reason string          // why, for people and for the model
	Args   json.RawMessage // other arguments for the call, which is then judged again
	Text   string          // for the model
	Result *Result         // in the place of what the call brought
}

package event

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Judged is the verdict on a call.
//
// Emitted once for each call of a reply, in order, unless the call was never
// fit to run. Allow makes the call ready, Ask is followed by Waiting, Deny by
// Ended.
type Judged struct {
	Call    string          `json:"call"`
	Action  tool.Action     `json:"action"`
	By      string          `json:"by"`
	Reason  string          `json:"reason,omitempty"`
	Tool    string          `json:"tool,omitempty"` // what is called, where the model wrote the name of a tool that stands for others
	Args    json.RawMessage `json:"args,omitempty"` // what will run, where it is not what the model wrote
	Effects []tool.Effect   `json:"effects,omitempty"`
	// Ways are flags that together would let it run, where it is denied as nobody is there to allow it.
	Ways    []string `json:"ways,omitempty"`
	Private bool     `json:"private,omitempty"` // it brings or uses what is the person's own beyond the workspace
	Text    string   `json:"text,omitempty"`    // put before the model with what the call brings
	Cost    float64  `json:"cost,omitempty"`    // of the judging, in US dollars
	Route   string   `json:"route,omitempty"`   // model that it was spent on
	// Consulted are the requests to models that the judging took. Cost is their sum.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
	// Parent is the call that has made this one while it ran; empty: the model has. No reply
	// holds such a call, so Tool and Args are always there. Asked is the digest of what its
	// parent wanted, by which a parent that runs again is known to repeat itself.
	Parent string `json:"parent,omitempty"`
	Asked  string `json:"asked,omitempty"`
	Caller bool   `json:"caller,omitempty"` // it may make calls of its own, see [tool.Tool]
	// Ahead says that its parent asked for it while an earlier call of its waited for a decision, so
	// that both can be asked about together. Unless it only reads it does not run before Wanted.
	Ahead bool `json:"ahead,omitempty"`
}

// Waiting says that a person must decide on a call. It stays open across
// restarts, days and machines, until Decided or Cancelled.
//
// Emitted after a Judged with Ask. It holds what the person needs to see.
type Waiting struct {
	Call    string    `json:"call"`
	Preview string    `json:"preview,omitempty"` // what would change, such as a diff
	Rules   []string  `json:"rules,omitempty"`   // the narrowest that would allow it; empty: it can only be allowed once
	Offers  []Offer   `json:"offers,omitempty"`  // what else it can be allowed for in this session
	Until   time.Time `json:"until,omitzero"`    // when no answer becomes a no; zero: never
	// Shown are the files that the call would change, where there is a Preview of that: each with the
	// digest that it had, none if it was not there. The call may change them only as they are then, or
	// as others have left them since that were shown for the same files.
	Shown []tool.File `json:"shown,omitempty"`
}

// Started is the intent to run a call, stored before the first effect.
//
// Emitted for each call that may run. Ended follows, or a Claimed if the driver
// died in between. A call that only reads may be started twice, and so may one that makes
// calls of its own.
type Started struct {
	Call   string `json:"call"`
	Parent string `json:"parent,omitempty"` // as that of Judged
	Sum    string `json:"sum,omitempty"`    // digest of what the tool runs, see [tool.Tool]
}

// Ended is the result of a call. Every call of every reply ends exactly once.
//
// Emitted after Started, or without it for calls that are not run.
type Ended struct {
	Call    string      `json:"call"`
	Outcome Outcome     `json:"outcome"`
	Parts   llm.Parts   `json:"parts"`           // what the model sees
	Files   []tool.File `json:"files,omitempty"` // files read or written
	Cwd     string      `json:"cwd,omitempty"`   // directory later calls start from, if it changed
	Exit    *int        `json:"exit,omitempty"`  // exit code of the process it was about
	Todo    []tool.Todo `json:"todo,omitzero"`   // the list of things to do from now on, if the call set it
	// Show is markdown for the person, see [tool.Result]; front ends show all of it.
	Show string `json:"show,omitempty"`
	// Ways are flags that open what the sandbox closed to it, see [tool.Result].
	Ways    []string       `json:"ways,omitempty"`
	Fetched map[string]int `json:"fetched,omitempty"` // requests of the call to package registries, by host
	// Parts may hold text that nobody here has written, see [tool.Result].
	Untrusted bool `json:"untrusted,omitempty"`
	// Lasting names what Parts tell the model for longer, see [tool.Result].
	Lasting string `json:"lasting,omitempty"`
	// The very same call brought the very same before, which the model still
	// sees: Parts only say so.
	Again bool      `json:"again,omitempty"`
	Job   *tool.Job `json:"job,omitempty"`  // what it was about goes on in the background
	Told  []string  `json:"told,omitempty"` // jobs whose end Parts tell
	// Proposal is a tool that the model has written, which the session has from now on.
	Proposal *tool.Proposal `json:"proposal,omitempty"`
	Left     bool           `json:"left,omitempty"` // something that it started goes on, and is not a job
	Cost     float64        `json:"cost,omitempty"` // what the call has spent, in US dollars
	// Store is what the call has left for later ones, see [tool.Result].
	Store  map[string]json.RawMessage `json:"store,omitempty"`
	Millis int64                      `json:"millis,omitempty"`
	Parent string                     `json:"parent,omitempty"` // as that of Judged
	// Class is what kind of fault made it fail.
	Class ErrorClass `json:"class,omitempty"`
}

// Outcome says how a call ended.
type Outcome string

// Outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeFailed    Outcome = "failed"    // the tool returned an error or panicked
	OutcomeInvalid   Outcome = "invalid"   // unknown tool or unusable arguments; not run
	OutcomeCut       Outcome = "cut"       // the reply was cut, so the call is incomplete; not run
	OutcomeDenied    Outcome = "denied"    // by a judge or a person; not run
	OutcomeCancelled Outcome = "cancelled" // interrupted, or not run because of an interrupt
	OutcomeSkipped   Outcome = "skipped"   // of a step: not performed, as its condition does not hold or what it needs is not there
	OutcomeUnknown   Outcome = "unknown"   // the driver died while it ran, or it did not stop when it was told to
)

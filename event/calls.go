package event

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Judged is the verdict on a call.
//
// Emitted once for each call of a reply, in order, unless the call could never run. Allow makes the call ready,
// Ask is followed by Waiting, Deny by Ended.
type Judged struct {
	Call    string          `json:"call"`
	Action  tool.Action     `json:"action"`
	By      string          `json:"by"`
	Reason  string          `json:"reason,omitempty"`
	Tool    string          `json:"tool,omitempty"` // the tool that is called, if the model named one that stands for others
	Args    json.RawMessage `json:"args,omitempty"` // if they differ from those of the model
	Effects []tool.Effect   `json:"effects,omitempty"`
	// Ways are flags that together would let it run, if it is denied because no person could allow it.
	Ways    []string `json:"ways,omitempty"`
	Private bool     `json:"private,omitempty"` // it reads or uses private data from beyond the workspace
	Text    string   `json:"text,omitempty"`    // passed to the model with the result
	Cost    float64  `json:"cost,omitempty"`    // cost of the judging, in US dollars
	Route   string   `json:"route,omitempty"`   // model that the cost is for
	// Consulted are the requests to models during the judging. Cost is their sum.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
	// Parent is the call that made this one while it ran; empty if the model did. Tool and Args are then always set.
	Parent string `json:"parent,omitempty"`
	Asked  string `json:"asked,omitempty"`  // digest of the request, to recognise it when the parent runs again
	Caller bool   `json:"caller,omitempty"` // it may make calls of its own, see [tool.Tool]
	// RequestedAhead: its parent requested it while an earlier call waited, so that one question covers both. Unless
	// it only reads, it does not run before Wanted.
	RequestedAhead bool `json:"ahead,omitempty"`
}

// Wanted says that a tool which ran again has reached a call that it had requested ahead, see Judged. From here on it
// is a call like any other.
//
// Emitted at most once for such a call.
type Wanted struct {
	Call   string `json:"call"`
	Parent string `json:"parent"` // as in Judged
}

// Kind returns the kind's name in the log.
func (Wanted) Kind() string { return "wanted" }

// Waiting says that a person must decide on a call. It stays open across restarts, days and machines, until Decided
// or Cancelled.
//
// Emitted after a Judged with Ask.
type Waiting struct {
	Call    string    `json:"call"`
	Preview string    `json:"preview,omitempty"` // the change that the call would make, such as a diff
	Rules   []string  `json:"rules,omitempty"`   // the narrowest rules that would allow it; if empty, it is allowed only once
	Offers  []Offer   `json:"offers,omitempty"`  // further permissions that an answer can include
	Until   time.Time `json:"until,omitzero"`    // when an open question counts as denied; zero means never
	// Shown are the files that Preview changes, each with its digest, empty if there was none. The call may change
	// them only in that state, or as left by other calls that were shown for the same files.
	Shown []tool.File `json:"shown,omitempty"`
}

// Started is the intent to run a call, stored before its first effect.
//
// Emitted for each call that may run. Ended follows, or a Claimed if the driver died in between. A call that
// only reads may be started twice, and so may one that makes calls of its own.
type Started struct {
	Call   string `json:"call"`
	Parent string `json:"parent,omitempty"` // as in Judged
	Sum    string `json:"sum,omitempty"`    // digest of the program that the tool runs, see [tool.Tool]
}

// Ended is the result of a call. Every call of every reply ends exactly once.
//
// Emitted after Started, or without it for calls that are not run.
type Ended struct {
	Call    string      `json:"call"`
	Outcome Outcome     `json:"outcome"`
	Parts   llm.Parts   `json:"parts"`           // shown to the model
	Files   []tool.File `json:"files,omitempty"` // files read or written
	Cwd     string      `json:"cwd,omitempty"`   // new directory of later calls, if it changed
	Exit    *int        `json:"exit,omitempty"`  // exit code of the process it was about
	Todo    []tool.Todo `json:"todo,omitzero"`   // the new list of things to do, if the call set it
	// Show is markdown for the person, see [tool.Result]; front ends show all of it.
	Show string `json:"show,omitempty"`
	// Ways are flags that open places that the sandbox denied, see [tool.Result].
	Ways    []string       `json:"ways,omitempty"`
	Fetched map[string]int `json:"fetched,omitempty"` // requests of the call to package registries, by host
	// Untrusted: Parts may hold text by strangers, see [tool.Result].
	Untrusted bool `json:"untrusted,omitempty"`
	// Lasting names information in Parts that the model needs for longer, see [tool.Result].
	Lasting string `json:"lasting,omitempty"`
	// Again: the same call brought the same result before, which the model still sees. Parts only say so.
	Again     bool      `json:"again,omitempty"`
	Job       *tool.Job `json:"job,omitempty"`  // its command continues in the background
	EndedJobs []string  `json:"told,omitempty"` // jobs whose end is reported in Parts
	// Proposal is a tool that the model wrote; the session has it from now on.
	Proposal *tool.Proposal `json:"proposal,omitempty"`
	Left     bool           `json:"left,omitempty"` // a process of it continues that is not a job
	Cost     float64        `json:"cost,omitempty"` // cost of the call, in US dollars
	// Store holds values that the call leaves for later ones, see [tool.Result].
	Store  map[string]json.RawMessage `json:"store,omitempty"`
	Millis int64                      `json:"millis,omitempty"`
	Parent string                     `json:"parent,omitempty"` // as in Judged
	// Class is the kind of fault that made it fail.
	Class ErrorClass `json:"class,omitempty"`
}

// Outcome is how a call ended.
type Outcome string

// Outcomes.
const (
	OutcomeOK        Outcome = "ok"
	OutcomeFailed    Outcome = "failed"    // the tool returned an error or panicked
	OutcomeInvalid   Outcome = "invalid"   // unknown tool or unusable arguments; not run
	OutcomeCut       Outcome = "cut"       // the reply was cut, so the call is incomplete; not run
	OutcomeDenied    Outcome = "denied"    // by a judge or a person; not run
	OutcomeCancelled Outcome = "cancelled" // interrupted, or not run because of an interrupt
	OutcomeSkipped   Outcome = "skipped"   // of a step: not performed, because its condition is false or its input is missing
	OutcomeUnknown   Outcome = "unknown"   // the driver died while it ran, or it did not stop when told to
)

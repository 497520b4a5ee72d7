package event

import (
	"encoding/json"

	"github.com/inspan/inspan/llm"
)

// Compact asks for the conversation to be compacted before the model is asked
// again, or at once if no run goes on.
type Compact struct {
	Focus string `json:"focus,omitempty"` // what matters most; empty: all of it
}

// Compacted replaces the conversation so far by a shorter one. The events
// before it stay in the log, but a reader that wants the state can start here.
//
// Snapshot is the complete folded state after the compaction, in the form
// internal/kernel/loop gives it.
type Compacted struct {
	Why Compaction `json:"why,omitempty"`
	// what made the summary: "model", "repaired" by it at a second try, or "extract" from the log alone
	How    string    `json:"how,omitempty"`
	Lacks  []string  `json:"lacks,omitempty"` // what the checks found missing in what the model wrote first
	Before int       `json:"before"`          // tokens of the prompt, about
	After  int       `json:"after"`
	Route  string    `json:"route,omitempty"` // that was asked for the summary
	Usage  llm.Usage `json:"usage,omitzero"`
	Cost   float64   `json:"cost,omitempty"` // of the summary, in US dollars
	// Consulted are the requests that the summary took. Usage and Cost are their sums.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
	Of        uint64          `json:"of,omitempty"` // the event after which the state was taken: the one before this; 0: not said
	Snapshot  json.RawMessage `json:"snapshot"`
}

// Compaction is why a conversation is compacted.
type Compaction string

// Compactions.
const (
	CompactWindow   Compaction = "window"   // the next prompt would use the reserve
	CompactOverflow Compaction = "overflow" // the model refused the prompt as too long
	CompactAsked    Compaction = "asked"    // somebody asked for it
)

// Kept says that a compaction was to be done and was not: the conversation
// stays as it was.
type Kept struct {
	Why    Compaction `json:"why"`
	Reason string     `json:"reason"` // for people
	Usage  llm.Usage  `json:"usage,omitzero"`
	Cost   float64    `json:"cost,omitempty"` // of what was tried, in US dollars
	// Consulted are the requests that were tried, as in Compacted.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
}

// Checkpoint names the state of the workspace before, or after, calls that
// change something. What lies between the two is the work of those calls.
//
// Emitted around them; a crash can leave out the second.
type Checkpoint struct {
	ID    string `json:"id"`
	After bool   `json:"after,omitempty"`
	Left  int    `json:"left,omitempty"` // files whose content is not in it
}

// Workspace says where the state of the workspace is that belongs to the events so far, for a workspace
// that travels between machines. Whoever drives the session elsewhere makes it of that.
//
// Emitted with the results of calls that may have changed it, and when another machine takes over.
type Workspace struct {
	Copy     string `json:"copy"`               // the folder that it was taken of; each machine that takes over has a new one
	N        uint64 `json:"n"`                  // rises with each state, in a session and all that work for it in its workspace
	Manifest string `json:"manifest,omitempty"` // blob of the session at the top that lists the state's content
	Bytes    int64  `json:"bytes,omitempty"`    // that its files hold
	Left     int    `json:"left,omitempty"`     // files and folders whose content is not in it
	// Stays is why there is no state: from now on the session goes on in this copy or nowhere.
	Stays string `json:"stays,omitempty"`
}

// Restored says that files were put back to what they were at a checkpoint. It
// lies itself between two, so that it can be undone like the work of calls.
type Restored struct {
	To      string   `json:"to"`
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Files   []string `json:"files,omitempty"`   // that were changed, at most 100
	Removed []string `json:"removed,omitempty"` // those of Files that are gone, as there were none at the checkpoint
	Kept    int      `json:"kept,omitempty"`    // files that were left, as somebody else has changed them since
}

// Rewound takes the conversation back to where it was after an event. What
// came since stays in the log, and can be gone back to in the same way.
//
// Snapshot is the complete folded state from there on, as in Compacted.
type Rewound struct {
	To       uint64          `json:"to"`
	Of       uint64          `json:"of"` // the event before this one
	Snapshot json.RawMessage `json:"snapshot"`
}

// Kind returns the name of the kind as it stands in the log.
func (Compact) Kind() string    { return "compact" }
func (Compacted) Kind() string  { return "compacted" }
func (Kept) Kind() string       { return "kept" }
func (Checkpoint) Kind() string { return "checkpoint" }
func (Workspace) Kind() string  { return "workspace" }
func (Restored) Kind() string   { return "restored" }
func (Rewound) Kind() string    { return "rewound" }

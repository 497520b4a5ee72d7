package event

import (
	"encoding/json"

	"github.com/inspan/inspan/llm"
)

// Compact asks to compact the conversation before the model is asked again, or at once if no run is in
// progress.
//
// An input.
type Compact struct {
	Focus string `json:"focus,omitempty"` // most important subject; empty means everything
}

// Compacted replaces the conversation so far by a shorter one. The events before it stay in the log.
type Compacted struct {
	Why Compaction `json:"why,omitempty"`
	// How the summary was made: "model", "repaired" by the model at a second attempt, or "extract" from the log
	// alone.
	How    string    `json:"how,omitempty"`
	Lacks  []string  `json:"lacks,omitempty"` // facts that the checks missed in the model's first summary
	Before int       `json:"before"`          // approximate tokens of the prompt
	After  int       `json:"after"`
	Route  string    `json:"route,omitempty"` // model that was asked for the summary
	Usage  llm.Usage `json:"usage,omitzero"`
	Cost   float64   `json:"cost,omitempty"` // of the summary, in US dollars
	// Consulted are the requests for the summary. Usage and Cost are their sums.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
	Of        uint64          `json:"of,omitempty"` // the event before this one; 0 if not stated
	Snapshot  json.RawMessage `json:"snapshot"`     // the complete folded state after the compaction
}

// Compaction is the reason why a conversation is compacted: "window" (the next prompt would use reserved room), "overflow"
// (the model refused the prompt as too long) or "asked" (someone asked for it).
type Compaction string

// Kept says that a compaction was due but not done.
type Kept struct {
	Why    Compaction `json:"why"`
	Reason string     `json:"reason"` // for people
	Usage  llm.Usage  `json:"usage,omitzero"`
	Cost   float64    `json:"cost,omitempty"` // of the attempt, in US dollars
	// Consulted are the requests of the attempt, as in Compacted.
	Consulted []llm.Consulted `json:"consulted,omitempty"`
}

// Checkpoint names the state of the workspace before or after calls that change something.
//
// Emitted around such calls; a crash can leave out the second.
type Checkpoint struct {
	ID    string `json:"id"`
	After bool   `json:"after,omitempty"`
	Left  int    `json:"left,omitempty"` // files whose content is not in it
}

// Workspace says where the state of a workspace that moves between machines is stored.
//
// Emitted with the results of calls that may have changed it, and when another machine takes over.
type Workspace struct {
	Copy     string `json:"copy"`               // the folder of the state; each machine that takes over has a new one
	N        uint64 `json:"n"`                  // rises with each state, across all sessions in the workspace
	Manifest string `json:"manifest,omitempty"` // blob of the session at the top that lists the state's content
	Bytes    int64  `json:"bytes,omitempty"`    // size of its files
	Left     int    `json:"left,omitempty"`     // files and folders whose content is not included
	// Stays is the reason why there is no state: the session can only continue in this copy.
	Stays string `json:"stays,omitempty"`
}

// Restored says that files were restored to a checkpoint. It is itself between two checkpoints, so it can be
// undone like the work of calls.
type Restored struct {
	To      string   `json:"to"`
	Before  string   `json:"before"`
	After   string   `json:"after"`
	Files   []string `json:"files,omitempty"`   // files that were changed, at most 100
	Removed []string `json:"removed,omitempty"` // those of Files that the checkpoint did not have
	Kept    int      `json:"kept,omitempty"`    // files left alone because others have changed them since
}

// Rewound takes the conversation back to where it was after an event. Another Rewound can return to the later events.
type Rewound struct {
	To       uint64          `json:"to"`       // the event to return to
	Of       uint64          `json:"of"`       // the event before this one
	Snapshot json.RawMessage `json:"snapshot"` // the complete folded state, as in Compacted
}

// Kind returns the kind's name in the log.
func (Compact) Kind() string    { return "compact" }
func (Compacted) Kind() string  { return "compacted" }
func (Kept) Kind() string       { return "kept" }
func (Checkpoint) Kind() string { return "checkpoint" }
func (Workspace) Kind() string  { return "workspace" }
func (Restored) Kind() string   { return "restored" }
func (Rewound) Kind() string    { return "rewound" }

package event

import "encoding/json"

// Recorded says how an object of a book is from here on. A book is a log beside the sessions, in
// which a server keeps what belongs to no session: tasks, agents, identities. See store.Booker.
//
// An input: whoever may write the book appends it.
type Recorded struct {
	Of    string          `json:"of"`              // what it is, such as "task" or "token"
	ID    string          `json:"id"`              // unique among those
	Value json.RawMessage `json:"value,omitempty"` // the whole object; empty: it is gone
	By    string          `json:"by,omitempty"`    // principal who wanted it; empty: the server itself
	Key   string          `json:"key,omitempty"`   // by which the client knows its request again
	Sent  string          `json:"sent,omitempty"`  // digest of that request
}

// Staged moves a task of a book from one stage to the next.
//
// An input: the server that holds the book appends it, or whoever cancels the task.
type Staged struct {
	Task    string          `json:"task"`
	Stage   Stage           `json:"stage"`
	Why     string          `json:"why,omitempty"`     // for people
	Session string          `json:"session,omitempty"` // that works on it, from here on
	By      string          `json:"by,omitempty"`      // principal who wanted it; empty: the server itself
	Result  json.RawMessage `json:"result,omitempty"`  // what it brought, of the last stage
}

// Stage is where a task of a server is.
type Stage string

// Stages of a task, in their order. The last four are final.
const (
	StageSubmitted  Stage = "submitted"  // it was admitted
	StageQueued     Stage = "queued"     // it waits for its turn
	StageHydrating  Stage = "hydrating"  // its workspace and its context are made
	StageRunning    Stage = "running"    // its agent works
	StageWaiting    Stage = "waiting"    // its agent waits for somebody's decision
	StageIdle       Stage = "idle"       // its agent has done all it was told, and can be told more
	StageFinalizing Stage = "finalizing" // evidence is gathered, and the workspace cleared
	StageCompleted  Stage = "completed"
	StageFailed     Stage = "failed"
	StageCancelled  Stage = "cancelled"
	StageTimedOut   Stage = "timed_out"
)

// Kind returns the name of the kind as it stands in the log.
func (Recorded) Kind() string { return "recorded" }
func (Staged) Kind() string   { return "staged" }

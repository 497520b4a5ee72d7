package event

import "encoding/json"

// Recorded is the new state of an object in a book: a log in which a server keeps things that belong to no session,
// such as tasks, agents and identities. See store.Booker.
//
// An input.
type Recorded struct {
	Of    string          `json:"of"`              // kind of object, such as "task" or "token"
	ID    string          `json:"id"`              // unique for that kind
	Value json.RawMessage `json:"value,omitempty"` // the whole object; empty if it was removed
	By    string          `json:"by,omitempty"`    // principal who requested it; empty means the server itself
	Key   string          `json:"key,omitempty"`   // the client's key for its request
	Sent  string          `json:"sent,omitempty"`  // digest of that request
}

// Staged moves a task of a book from one stage to the next.
//
// An input.
type Staged struct {
	Task    string          `json:"task"`
	Stage   Stage           `json:"stage"`
	Why     string          `json:"why,omitempty"`     // for people
	Session string          `json:"session,omitempty"` // session that works on it from here on
	By      string          `json:"by,omitempty"`      // principal who requested it; empty means the server itself
	Result  json.RawMessage `json:"result,omitempty"`  // the result, in the last stage
}

// Stage is the progress of a task of a server: "submitted", "queued", "hydrating", "running", "waiting", "idle" or
// "finalizing", and at the end "completed", "failed", "cancelled" or "timed_out".
type Stage string

// Kind returns the kind's name in the log.
func (Recorded) Kind() string { return "recorded" }
func (Staged) Kind() string   { return "staged" }

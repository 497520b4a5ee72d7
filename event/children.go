package event

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Spawned says that another session works for this one: a subagent. It has a
// log of its own.
//
// An input: whoever runs the child appends it before the child is told anything,
// and again whenever a child that had come back goes on.
type Spawned struct {
	Child      string    `json:"child"`           // session id
	Call       string    `json:"call,omitempty"`  // of this session, that asked for it, and its turn: "ID@TURN"
	Agent      string    `json:"agent,omitempty"` // what kind of agent it is
	Task       string    `json:"task"`            // the beginning of what it is to do, for people
	Route      string    `json:"route,omitempty"` // its model, "provider/model"
	Mode       tool.Mode `json:"mode,omitempty"`
	Root       string    `json:"root,omitempty"`       // where it works, if that is not this session's workspace
	Background bool      `json:"background,omitempty"` // nobody waits for it in a call: Returned brings what it found
	// Args are the arguments of the call that asked for it, so that it can go on as
	// it began.
	Args json.RawMessage `json:"args,omitempty"`
}

// Raised puts a question before whoever answers for this session: that of a call
// of a child that waits for a decision, or of a call of the session itself that
// asks while it runs. Decided with its ID answers it.
//
// An input: whoever runs the child, or the call, appends it.
type Raised struct {
	ID      string          `json:"id"`              // unique in this session
	Child   string          `json:"child,omitempty"` // whose it is; empty: a call of this session asks
	Call    string          `json:"call,omitempty"`  // that one
	Of      uint64          `json:"of,omitempty"`    // the child's Waiting or Raised that it passes on: its sequence number there
	Agent   string          `json:"agent,omitempty"` // kind of the child, or the tool that asks
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args,omitempty"`
	Effects []tool.Effect   `json:"effects,omitempty"`
	Reason  string          `json:"reason,omitempty"`  // why it asks
	Preview string          `json:"preview,omitempty"` // what would change
	Rules   []string        `json:"rules,omitempty"`   // that would allow it for longer
	Offers  []Offer         `json:"offers,omitempty"`  // as those of Waiting
	Until   time.Time       `json:"until,omitzero"`    // when no answer becomes a no
}

// Returned says that the run of a child has stopped, and what it has used up
// since it came back last.
//
// An input: whoever runs the child appends it.
type Returned struct {
	Child    string    `json:"child"`
	Reason   Reason    `json:"reason"`           // why its run stopped; empty if it did not stop in order
	Detail   string    `json:"detail,omitempty"` // for people
	Parts    llm.Parts `json:"parts,omitempty"`  // put before the model, if the child works in the background
	Turns    int       `json:"turns,omitempty"`
	Usage    llm.Usage `json:"usage,omitzero"`
	Cost     float64   `json:"cost,omitempty"` // US dollars
	Unpriced bool      `json:"unpriced,omitempty"`
	Taint              // what it says may hold what it has seen
}

// On reports whether the decision is on a question, by the id and the number that it has in
// the log. It never counts for another than the one that was put to whoever decided.
func (d Decided) On(id string, question uint64) bool {
	return d.Call == id && (d.Question == 0 || d.Question == question)
}

// Kind returns the name of the kind as it stands in the log.
func (Spawned) Kind() string  { return "spawned" }
func (Raised) Kind() string   { return "raised" }
func (Returned) Kind() string { return "returned" }

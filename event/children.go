package event

import (
	"encoding/json"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Spawned says that another session works for this one: a subagent.
//
// An input: appended by the process that runs the child, before its first message, and again whenever a returned
// child continues.
type Spawned struct {
	Child      string    `json:"child"`           // session id
	Call       string    `json:"call,omitempty"`  // the call that asked for it, and the turn: "ID@TURN"
	Agent      string    `json:"agent,omitempty"` // kind of agent
	Name       string    `json:"name,omitempty"`  // chosen name of a member of the team; of two with the same, the first has it
	Task       string    `json:"task"`            // the beginning of its task, for people
	Route      string    `json:"route,omitempty"` // its model, "provider/model"
	Mode       tool.Mode `json:"mode,omitempty"`
	Root       string    `json:"root,omitempty"`       // where it works, if not in this session's workspace
	Background bool      `json:"background,omitempty"` // no call waits for it; Returned brings its result
	// Args are the arguments of the call that asked for it.
	Args json.RawMessage `json:"args,omitempty"`
}

// Raised asks a question of the people who answer for this session: about a child's call that waits for a
// decision, or by a running call of this session that asks something. A Decided with its ID answers it.
//
// An input: appended by the process that runs the child, or the call.
type Raised struct {
	ID      string          `json:"id"`              // unique in this session
	Child   string          `json:"child,omitempty"` // the child that asks; empty if a call of this session does
	Call    string          `json:"call,omitempty"`  // the call that asks
	Of      uint64          `json:"of,omitempty"`    // sequence number of the Waiting or Raised in the child
	Agent   string          `json:"agent,omitempty"` // kind of the child, or the tool that asks
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args,omitempty"`
	Effects []tool.Effect   `json:"effects,omitempty"`
	Reason  string          `json:"reason,omitempty"`  // why it asks
	Preview string          `json:"preview,omitempty"` // the change that the call would make
	Rules   []string        `json:"rules,omitempty"`   // rules that would allow it for longer
	Offers  []Offer         `json:"offers,omitempty"`  // as in Waiting
	Until   time.Time       `json:"until,omitzero"`    // when an open question counts as denied
}

// Returned says that the run of a child has stopped, with its consumption since it last returned.
//
// An input: appended by the process that runs the child.
type Returned struct {
	Child    string    `json:"child"`
	Reason   Reason    `json:"reason"`           // why its run stopped; empty if it did not stop cleanly
	Detail   string    `json:"detail,omitempty"` // for people
	Parts    llm.Parts `json:"parts,omitempty"`  // passed to the model, if the child works in the background
	Turns    int       `json:"turns,omitempty"`
	Usage    llm.Usage `json:"usage,omitzero"`
	Cost     float64   `json:"cost,omitempty"` // US dollars
	Unpriced bool      `json:"unpriced,omitempty"`
	Idle     bool      `json:"idle,omitempty"` // a member of the team: a message or a task for it wakes it
	Taint
}

// On reports whether the decision is about a question, given by its id and its number in the log. A decision
// never applies to any question but the one that was asked.
func (d Decided) On(id string, question uint64) bool {
	return d.Call == id && (d.Question == 0 || d.Question == question)
}

// Kind returns the kind's name in the log.
func (Spawned) Kind() string  { return "spawned" }
func (Raised) Kind() string   { return "raised" }
func (Returned) Kind() string { return "returned" }

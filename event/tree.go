package event

import (
	"time"

	"github.com/inspan/inspan/llm"
)

// Paused says that a vendor's quota is used up: until then neither the session nor any that works for it asks a model
// or starts a child.
//
// An input: appended once, to the log of the session at the top. It applies to the run in progress; a new run tries
// again.
type Paused struct {
	Until   time.Time `json:"until"`
	Cause   llm.Kind  `json:"cause"`
	Message string    `json:"message,omitempty"` // for people
	Child   string    `json:"child,omitempty"`   // session that learned it; empty means this one
}

// Rate is the consumption of a session and its subagents within a minute.
type Rate struct {
	Cost   float64 `json:"cost,omitempty"` // US dollars
	Tokens int64   `json:"tokens,omitempty"`
}

// Kind returns the kind's name in the log.
func (Paused) Kind() string { return "paused" }

package event

import (
	"time"

	"github.com/inspan/inspan/llm"
)

// Paused says that a vendor takes nothing more for a while, as a quota is used up: until
// then neither the session nor any that works for it asks a model or begins a child.
//
// An input: whoever was told so appends it to the log of the session at the top, once for
// all of them. It holds for the run that goes on; a new one tries again.
type Paused struct {
	Until   time.Time `json:"until"`
	Cause   llm.Kind  `json:"cause"`
	Message string    `json:"message,omitempty"` // for people
	Child   string    `json:"child,omitempty"`   // session that was told so; empty: this one
}

// Rate is what a session and all that work for it have used up in a minute.
type Rate struct {
	Cost   float64 `json:"cost,omitempty"` // US dollars
	Tokens int64   `json:"tokens,omitempty"`
}

// Kind returns the name of the kind as it stands in the log.
func (Paused) Kind() string { return "paused" }

package script

import (
	"bytes"
	"encoding/json"
)

// What goes over the pipes between [Engine] and the process of a script: one JSON object a line.
// The first line to the process is an order, every other one a reply. Nothing that comes from the
// process is believed: it can only ask for calls, print, and end.

// line is a value as a line. What HTML has meanings for stays as it is: people read arguments.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// program is the argument that makes a process one that runs a script.
const program = "script-engine"

// order is the script that a process runs.
type order struct {
	Code   string          `json:"code"`
	Setup  string          `json:"setup"`
	Input  json.RawMessage `json:"input"`
	Seed   [4]uint32       `json:"seed"`
	Now    int64           `json:"now"`    // milliseconds since 1970
	Memory int             `json:"memory"` // bytes
	Busy   int64           `json:"busy"`   // milliseconds of computing
	Finish bool            `json:"finish"`
}

// reply settles the call with a number.
type reply struct {
	ID    int             `json:"id"`
	How   how             `json:"how"`
	Value json.RawMessage `json:"value"` // what it brings, or what is thrown
}

// how a call was settled, for prelude.js.
type how int

const (
	brought how = iota
	thrown
	held
)

// message is what comes from a process. One of the fields counts.
type message struct {
	Call  *asked  `json:"call,omitempty"`
	Print *string `json:"print,omitempty"`
	Tell  *hint   `json:"tell,omitempty"`
	Rest  *int    `json:"rest,omitempty"` // it waits for that many calls
	End   *ending `json:"end,omitempty"`
}

// hint is what a setup tells its owner beside calls.
type hint struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// asked is a call that the script wants to be made.
type asked struct {
	ID   int             `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// ending is how a script has ended.
type ending struct {
	Value json.RawMessage `json:"value,omitempty"`
	Error string          `json:"error,omitempty"`
	Held  bool            `json:"held,omitempty"`
}

package script

import (
	"bytes"
	"encoding/json"
)

// The protocol of the pipes between [Engine] and the process of a script: one JSON object a line. The first
// line to the process is an order, every other one a reply. The process is not trusted: it can only make calls,
// print, and end.

// line returns a value as a line. Characters special in HTML are not escaped: people read arguments.
func line(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// program is the argument that makes a process run a script.
const program = "script-engine"

// order is the script that a process runs.
type order struct {
	Code     string          `json:"code"`
	Programs []string        `json:"programs,omitempty"` // instead of Code
	Setup    string          `json:"setup"`
	Input    json.RawMessage `json:"input"`
	Seed     [4]uint32       `json:"seed"`
	Now      int64           `json:"now"`    // milliseconds since 1970
	Memory   int             `json:"memory"` // bytes
	Busy     int64           `json:"busy"`   // milliseconds of computing
	Finish   bool            `json:"finish"`
}

// reply settles the call with a number.
type reply struct {
	ID    int             `json:"id"`
	How   how             `json:"how"`
	Value json.RawMessage `json:"value"` // the result, or the thrown value
}

// how says in which way a call was settled, for prelude.js.
type how int

const (
	brought how = iota
	thrown
	held
)

// message is a message from a process. One of the fields is set.
type message struct {
	Call  *asked  `json:"call,omitempty"`
	Print *string `json:"print,omitempty"`
	Tell  *hint   `json:"tell,omitempty"`
	Rest  *int    `json:"rest,omitempty"` // it waits for that many calls
	End   *ending `json:"end,omitempty"`
}

// hint is a message of a setup to its owner that is not a call.
type hint struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// asked is a call that the script makes.
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

package tool

import "errors"

// CallError says that a call made with [Call.Do] did not succeed.
type CallError struct {
	Name    string // of the tool
	Outcome string // as event.Outcome has it: "failed", "invalid", "denied", "cancelled" or "unknown"
	Text    string // what the model would have been told
}

// Error implements error.
func (e *CallError) Error() string { return e.Name + ": " + e.Text }

// ErrHeld says that a call requested with [Call.Do] waits for a person, or for a call that does. See AsksAhead of
// [Tool].
var ErrHeld = errors.New("the call waits for somebody's decision")

// ErrDiverged says that a tool that was run again left out a call of its first run. The tool's call fails with
// it.
var ErrDiverged = errors.New("the tool did not repeat itself when it was run again")

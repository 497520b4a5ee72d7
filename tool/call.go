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

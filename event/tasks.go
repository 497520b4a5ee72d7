package event

import "time"

// Tasked changes the task list that a session shares with the sessions that work for it. The first of two claims of a
// task wins; a change that does not fit does nothing.
//
// An input: appended by the process that runs the session or one of its children.
type Tasked struct {
	ID     string     `json:"id,omitempty"` // of the task; empty to "add" one
	Action TaskAction `json:"action"`
	By     string     `json:"by"`             // session id
	Call   string     `json:"call,omitempty"` // call of By that asked for it; its "add" counts once
	Text   string     `json:"text,omitempty"` // the task, or its result
	Taint

	// After are tasks that must be done before it can be claimed. An "add" that names a task that was never added
	// does nothing.
	After []string  `json:"after,omitempty"`
	At    time.Time `json:"at,omitzero"` // it can't be claimed before this time
	// For, of "add" and "assign", is the only session that can claim it: while that session works, or is idle and
	// the task can't be claimed yet.
	For string `json:"for,omitempty"`
	// Check is the command that must pass before it is done. In a "done" it is the one that has passed, in a call
	// that Call made in the log of By. If that is not the task's check, the "done" does nothing.
	Check string `json:"check,omitempty"`
}

// TaskAction is a change to a task: "add", "claim" (by By), "release" (by its holder, or the session), "done" (the
// same), "assign" (by the session) or "edit" (fields that are set replace those of the task).
type TaskAction string

// Kind returns the kind's name in the log.
func (Tasked) Kind() string { return "tasked" }

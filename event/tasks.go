package event

import "time"

// Tasked changes the task list that a session shares with the sessions that work for it. The first of two claims of a
// task wins; a change that does not fit does nothing.
//
// An input: appended by the process that runs the session or one of its children.
type Tasked struct {
	ID     string     `json:"id,omitempty"` // of the task; empty for TaskAdd
	Action TaskAction `json:"action"`
	By     string     `json:"by"`             // session id
	Call   string     `json:"call,omitempty"` // call of By that asked for it; its TaskAdd counts once
	Text   string     `json:"text,omitempty"` // the task, or its result
	Taint

	// After are tasks that must be done before it can be claimed. A TaskAdd that names a task that was never added
	// does nothing.
	After []string  `json:"after,omitempty"`
	At    time.Time `json:"at,omitzero"` // it can't be claimed before this time
	// For, of TaskAdd and TaskAssign, is the only session that can claim it: while that session works, or is idle and
	// the task can't be claimed yet.
	For string `json:"for,omitempty"`
	// Check is the command that must pass before it is done. In a TaskDone it is the one that has passed, in a call
	// that Call made in the log of By. If that is not the task's check, the TaskDone does nothing.
	Check string `json:"check,omitempty"`
}

// TaskAction is a change to a task.
type TaskAction string

// Task actions.
const (
	TaskAdd     TaskAction = "add"
	TaskClaim   TaskAction = "claim"   // an open task is assigned to By
	TaskRelease TaskAction = "release" // it is open again; by its holder, or the session
	TaskDone    TaskAction = "done"    // by its holder, or the session
	TaskAssign  TaskAction = "assign"  // it is taken from its holder and is For another, or for all; by the session
	TaskEdit    TaskAction = "edit"    // fields that are set replace those of the task; by who added it, or the session
)

// Kind returns the kind's name in the log.
func (Tasked) Kind() string { return "tasked" }

package event

// Tasked changes the task list that a session shares with the sessions that work for it. Its place in the log
// decides the effect: of two claims of a task, the first wins. A change that does not fit, such as a claim of a
// task that is taken, does nothing.
//
// An input: appended by the process that runs the session or one of its children.
type Tasked struct {
	ID     string     `json:"id,omitempty"` // of the task; empty for TaskAdd, which gets its id from its place in the log
	Action TaskAction `json:"action"`
	By     string     `json:"by"`             // session id
	Call   string     `json:"call,omitempty"` // call of By that asked for it: the same TaskAdd of the same call counts once
	Text   string     `json:"text,omitempty"` // the task, or its result
	Taint             // of Text

	// After and For are of TaskAdd: the ids of tasks that must be done before it can be claimed, and the session that
	// alone can claim it, as long as that works. One that names a task that was never added does nothing.
	After []string `json:"after,omitempty"`
	For   string   `json:"for,omitempty"`
}

// TaskAction is a change to a task.
type TaskAction string

// Task actions.
const (
	TaskAdd     TaskAction = "add"
	TaskClaim   TaskAction = "claim"   // an open task is assigned to By
	TaskRelease TaskAction = "release" // it is open again; by its holder, or the session
	TaskDone    TaskAction = "done"    // by its holder, or the session
)

// Kind returns the kind's name in the log.
func (Tasked) Kind() string { return "tasked" }

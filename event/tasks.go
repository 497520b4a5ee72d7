package event

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
	Taint             // of Text

	// After and For are of TaskAdd: the ids of tasks that must be done first, and the session that alone can claim
	// it, as long as that works. A task that names an unknown one does nothing.
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

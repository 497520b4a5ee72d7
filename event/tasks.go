package event

// Tasked changes the list of tasks that a session and those who work for it share.
// What comes of it is decided by its place in the log: of two who claim a task, the
// first has it. What does not fit, such as a claim of a task that somebody has, changes
// nothing.
//
// An input: whoever runs the session or one of its children appends it.
type Tasked struct {
	ID     string     `json:"id,omitempty"` // of the task; empty for TaskAdd, as its place in the log gives it one
	Action TaskAction `json:"action"`
	By     string     `json:"by"`             // session id
	Call   string     `json:"call,omitempty"` // of By, that asked for it: the same TaskAdd of the same call counts once
	Text   string     `json:"text,omitempty"` // what is to be done, or what came of it
	Taint             // of Text
}

// TaskAction is what is done to a task.
type TaskAction string

// Task actions.
const (
	TaskAdd     TaskAction = "add"
	TaskClaim   TaskAction = "claim"   // an open task is By's alone
	TaskRelease TaskAction = "release" // it is open again; by who has it, or the session
	TaskDone    TaskAction = "done"    // by who has it, or the session
)

// Kind returns the name of the kind as it stands in the log.
func (Tasked) Kind() string { return "tasked" }

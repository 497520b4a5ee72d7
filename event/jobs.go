package event

// Finished says that a job of the session has ended: a command that went to the background.
//
// An input: the program that runs the job appends it. The model is told before it is asked
// next, unless the result of a call has told it already.
type Finished struct {
	Job     string  `json:"job"`
	Exit    *int    `json:"exit,omitempty"`    // nil: not known
	Error   string  `json:"error,omitempty"`   // why it is not known
	Seconds float64 `json:"seconds,omitempty"` // that it ran
	Line    string  `json:"line,omitempty"`    // the last of its output
	Kept    bool    `json:"kept,omitempty"`    // it has not ended: it goes on without the session
	// What is kept: the command, which need not be a job, and the process that keeps it.
	Command string `json:"command,omitempty"`
	PID     int    `json:"pid,omitempty"`
}

// Kind returns the name of the kind as it stands in the log.
func (Finished) Kind() string { return "finished" }

// Why is a reason for which the harness itself tells the model something.
type Why string

// Reasons to steer.
const (
	WhyReply   Why = "reply"   // the reply was empty or cut
	WhyRepeats Why = "repeats" // the same call brings the same result
	WhyEnded   Why = "ended"   // jobs have ended
	WhyJobs    Why = "jobs"    // jobs run beside a final answer
	WhyArrived Why = "arrived" // the first of what other agents have sent comes now, though the window has no room
	WhyLeft    Why = "left"    // what commands have left behind runs beside it, and ends with the run
	WhyTodo    Why = "todo"    // items of the todo list are open
	WhyVerify  Why = "verify"  // files were changed and not checked
	WhyBudget  Why = "budget"  // turns, time, money or tokens run out
)

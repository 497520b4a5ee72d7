package event

// Finished says that a job of the session has ended: a command that went to the background.
//
// An input: appended by the program that runs the job. The next request tells the model, unless the result of a call
// has.
type Finished struct {
	Job     string  `json:"job"`
	Exit    *int    `json:"exit,omitempty"`    // nil if unknown
	Error   string  `json:"error,omitempty"`   // why the exit code is unknown
	Seconds float64 `json:"seconds,omitempty"` // how long it ran
	Line    string  `json:"line,omitempty"`    // the last line of its output
	Kept    bool    `json:"kept,omitempty"`    // it has not ended, but continues without the session
	Command string  `json:"command,omitempty"` // of a kept job
	PID     int     `json:"pid,omitempty"`     // process that keeps a kept job running
}

// Kind returns the kind's name in the log.
func (Finished) Kind() string { return "finished" }

// Why is a reason for the harness itself to tell the model something: "reply" (it was empty or cut), "repeats"
// (the same call brings the same result), "ended" (jobs have), "jobs" (they run beside a final answer), "left"
// (processes of commands do), "arrived" (a message of other agents, although the window has no room), "todo"
// (items are open), "verify" (files were changed and not checked) or "budget" (a limit is near).
type Why string

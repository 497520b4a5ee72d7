package processes

import "time"

const (
	// TermGrace is the time that a group gets to end after SIGTERM.
	TermGrace = 2 * time.Second
	// OutputGrace is the time that output is still read after the process ended, if a descendant keeps it open.
	OutputGrace = time.Second
)

// MarkName is the variable that identifies descendants, even those that left the process group. Its value lists
// the marks of all ancestors, each between slashes, as sessions can run inside sessions.
const MarkName = "INSPAN_CALL"

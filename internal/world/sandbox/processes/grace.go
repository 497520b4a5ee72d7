package processes

import "time"

const (
	// TermGrace is how long a group may take to end after SIGTERM.
	TermGrace = 2 * time.Second
	// OutputGrace is how long output is still read after the process ended,
	// while a descendant keeps it open.
	OutputGrace = time.Second
)

// MarkName is the variable by which descendants are found again, even those
// that left the process group. Its value lists the marks of all processes
// above, each between slashes, as sessions can run inside sessions.
const MarkName = "INSPAN_CALL"

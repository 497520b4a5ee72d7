// Package eval decides which of two configurations of the harness is better, on tasks that have checkers, and
// how sure that is. A run of a suite is a folder: a header that never changes (run.json) and one line for each
// trial that ended (trials.jsonl).
package eval

import "time"

// Outcome is how a trial ended.
type Outcome string

// The outcomes. Only Passed and Failed say something about the agent.
const (
	Passed Outcome = "passed" // by the checker, after the agent had exited
	Failed Outcome = "failed" // the checker began and did not pass it, or a limit of the task ended the agent
	Broken Outcome = "broken" // the infrastructure failed: no room, no model, no checker; it is retried
)

// Trial is one attempt of one configuration at one task. Each is a session of its own.
type Trial struct {
	Task    string   `json:"task"`              // id of the task in its suite
	Try     int      `json:"try"`               // from 1
	Outcome Outcome  `json:"outcome"`           //
	Reason  string   `json:"reason,omitempty"`  // why it failed or broke: a few words, the same for the same cause
	Score   float64  `json:"score"`             // of the checker, 0 to 1; without one, 1 if it passed
	Session string   `json:"session,omitempty"` // id; empty if none began
	Tags    []string `json:"tags,omitempty"`    // of the task

	Cost    float64 `json:"cost,omitempty"` // US dollars
	Priced  bool    `json:"priced"`         // whether the cost is known
	Tokens  int64   `json:"tokens"`         // input and output
	Turns   int     `json:"turns"`          // requests that the model answered
	Seconds float64 `json:"seconds"`        // from the start of the session to its end

	Checks []Check `json:"checks,omitempty"` // of the graders, in the order of the task
	// Printed is the end of the checker's output.
	Printed string `json:"printed,omitempty"`
	// Patch is the agent's change of the repository of its task, as a diff; nil means the task has none.
	Patch  *string `json:"patch,omitempty"`
	Cached bool    `json:"cached,omitempty"` // taken from an earlier trial with the same content
}

// Check is the result of one grader of a task.
type Check struct {
	Name   string  `json:"name"`
	Passed bool    `json:"passed"`
	Score  float64 `json:"score"` // 0 to 1
	Note   string  `json:"note,omitempty"`
}

// Split is the permitted use of tasks.
type Split string

// The splits. The results of held-out tasks are counted and logged, and no improver sees them.
const (
	Train   Split = "train"
	Dev     Split = "dev"
	HeldOut Split = "held-out"
)

// Run is a suite under one configuration: the content of run.json, and its trials in the order in which they
// ended. Trials of one run have different (task, try) pairs.
type Run struct {
	ID      string    `json:"id"`
	Suite   string    `json:"suite"`         // name
	Digest  string    `json:"digest"`        // of the suite's content, sha256 in hex
	Config  string    `json:"config"`        // name
	Pinned  string    `json:"config_digest"` // of the configuration's content, sha256 in hex: of the settings, of what is beside them, and of the lent file
	Model   string    `json:"model"`         //
	Version string    `json:"version"`       // of inspan
	Split   Split     `json:"split,omitempty"`
	Tries   int       `json:"tries"` // for each task
	Began   time.Time `json:"began"`

	// Proposal is the id of a proposal whose file the trials had in their workspaces, or whose change their
	// settings had, with the change or without it; empty means there was none. Settings is the digest of the
	// settings then, without the change.
	Proposal string `json:"proposal,omitempty"`
	Without  bool   `json:"without,omitempty"`
	Settings string `json:"settings_digest,omitempty"`

	Trials []Trial `json:"-"`
}

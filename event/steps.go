package event

import "encoding/json"

// StepStarted is the intent to perform a step: a piece of work that a program does on a session,
// with or without a model.
//
// Emitted before the first effect of the step. StepEnded follows, or a Claimed if the driver died
// in between; then a step with Again is started once more, and any other ends as OutcomeUnknown.
type StepStarted struct {
	Step   string          `json:"step"`             // its id: unique in the session, and the same for every try
	Does   string          `json:"does,omitempty"`   // what kind of step it is, such as "run" or "agent"; for readers
	Title  string          `json:"title,omitempty"`  // for people
	Parent string          `json:"parent,omitempty"` // step that it is a part of
	Input  json.RawMessage `json:"input,omitempty"`  // what it works on
	Again  bool            `json:"again,omitempty"`  // it may be performed twice
}

// Workflow is the id of the step that a whole workflow is: those of its steps are parts of it. Its
// session has no model that answers, and goes on as that workflow.
const Workflow = "workflow"

// StepEnded is the outcome of a step. Every step ends exactly once, and is not performed again.
//
// Emitted after StepStarted.
type StepEnded struct {
	Step    string          `json:"step"`
	Outcome Outcome         `json:"outcome"`          // ok, failed, skipped, cancelled or unknown
	Result  json.RawMessage `json:"result,omitempty"` // what it brings, in the form that its kind has
	Blobs   []StepBlob      `json:"blobs,omitempty"`  // what it brings that is big, in the blobs of the session
	Error   string          `json:"error,omitempty"`  // why it did not succeed
	Class   ErrorClass      `json:"class,omitempty"`
	Cost    float64         `json:"cost,omitempty"` // what it has spent itself, in US dollars
	Millis  int64           `json:"millis,omitempty"`
	Taint
}

// StepBlob is something big that a step brings.
type StepBlob struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // under which the blobs of the session have it
	Size   int64  `json:"size"`   // bytes
	Type   string `json:"type,omitempty"`
}

// Kind returns the name of the kind as it stands in the log.
func (StepStarted) Kind() string { return "step_started" }
func (StepEnded) Kind() string   { return "step_ended" }

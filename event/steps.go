package event

import "encoding/json"

// StepStarted is the intent to perform a step: work that a program does on a session, with or without a model.
//
// Emitted before the step's first effect. StepEnded follows. If the driver died in between, a step with Again is
// started again, and any other ends as OutcomeUnknown.
type StepStarted struct {
	Step   string          `json:"step"`             // its id, the same for every attempt
	Does   string          `json:"does,omitempty"`   // kind of step, such as "run" or "agent"; for readers
	Title  string          `json:"title,omitempty"`  // for people
	Parent string          `json:"parent,omitempty"` // step that it is part of
	Input  json.RawMessage `json:"input,omitempty"`  // its input
	Again  bool            `json:"again,omitempty"`  // it may be performed twice
}

// Workflow is the id of the step that stands for a whole workflow; the steps of the workflow are parts of it.
// Its session has no model, and continues as that workflow.
const Workflow = "workflow"

// StepEnded is the outcome of a step. Every step ends exactly once, and is not performed again.
//
// Emitted after StepStarted.
type StepEnded struct {
	Step    string          `json:"step"`
	Outcome Outcome         `json:"outcome"`          // ok, failed, skipped, cancelled or unknown
	Result  json.RawMessage `json:"result,omitempty"` // in a form that depends on its kind
	Blobs   []StepBlob      `json:"blobs,omitempty"`  // large results, in the blobs of the session
	Error   string          `json:"error,omitempty"`  // why it did not succeed
	Class   ErrorClass      `json:"class,omitempty"`
	Cost    float64         `json:"cost,omitempty"` // its own cost, in US dollars
	Millis  int64           `json:"millis,omitempty"`
	Taint
}

// StepBlob is a large result of a step.
type StepBlob struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // its name among the blobs of the session
	Size   int64  `json:"size"`   // bytes
	Type   string `json:"type,omitempty"`
}

// Kind returns the kind's name in the log.
func (StepStarted) Kind() string { return "step_started" }
func (StepEnded) Kind() string   { return "step_ended" }

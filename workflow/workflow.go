// Package workflow performs workflows, for tasks that are too large for a single conversation. Coded steps do
// the predictable work, agents do what needs judgement, and gates decide on evidence.
//
// A workflow is data: a YAML file, see docs/WORKFLOWS.md, or a [Workflow] made in Go. [Workflow.Check] finds
// everything that is wrong with one before anything runs. [Workflow.Run] performs it on a session, whose log
// holds every step with its result:
//
//  1. Every step has one outcome. A step that has ended is never performed again, in any process, and an agent
//     that has ended is never asked again.
//  2. A step begins when all steps that it needs have succeeded. If a step fails, only the steps that need it
//     are skipped.
//  3. Values pass from step to step by reference and are typed. No file can insert a value into a command line:
//     commands get values as variables.
//  4. The workflow decides which steps there are, what they need and when they stop. An agent never does.
//
// Don't write a workflow for a task that one agent and one check can do: use 'inspan goal' or a tool. Write one
// if steps must happen in an order that no model decides, must survive days and crashes, or release something
// to others.
//
// # Where to begin
//
// In the code, read workflow.go (the types), parse.go over yaml.go and fields.go (a file becomes them), check.go with
// checkstep.go, refs.go, values.go and schema.go (what is wrong with one), resolve.go (what the machine lacks), run.go
// (a run), and steps.go with piecework.go, groups.go, command.go and script.go (one step of each kind). plan.go and
// draw.go show a workflow without running it.
//
// # Compatibility
//
// Fields and kinds of steps are only added. The files in testdata define what the format allows and refuses,
// and later versions must agree with them.
package workflow

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/tool"
)

// Schema is a JSON schema.
type Schema = jsonschema.Schema

// Workflow is a list of steps, with settings for all of them. Do not change one that runs.
type Workflow struct {
	Name        string `json:"name"` // lower case letters, digits and dashes; it is run by the name of its file
	Description string `json:"description,omitempty"`
	// Inputs are JSON schemas, by name. An input without a default must be given.
	Inputs map[string]*Schema `json:"inputs,omitempty"`
	// Returns are the values that the run returns.
	Returns map[string]Return `json:"returns,omitempty"`
	Limits  Limits            `json:"limits,omitzero"` // of the run
	Steps   []Step            `json:"steps,omitempty"` // at most 500 in a file
	// Finally are steps that begin when all others have ended. They don't change the result of the run.
	Finally []Step `json:"finally,omitempty"`
	// Script is JavaScript that performs steps, instead of Steps. Uses are the workflows that it may use.
	Script string   `json:"script,omitempty"`
	Uses   []string `json:"uses,omitempty"`
	// Included are the workflows that steps use, by name.
	Included map[string]*Workflow `json:"included,omitempty"`

	file  string         // that it was read from; empty means none
	lines map[string]int // of fields in the file, by their path
}

// Return is one of the values that a workflow returns.
type Return struct {
	From        string `json:"from"` // reference without ${ and }, such as plan.summary
	Description string `json:"description,omitempty"`
}

// Limits bound a run. Zero means no limit, except for Concurrency.
type Limits struct {
	Cost        float64  `json:"cost,omitempty"`        // US dollars
	Tokens      int64    `json:"tokens,omitempty"`      // of all models
	Time        Duration `json:"time,omitzero"`         // of work, without waits for people
	Turns       int      `json:"turns,omitempty"`       // of each agent
	Concurrency int      `json:"concurrency,omitempty"` // steps that work at once (default 4, of a script 16)
	Agents      int      `json:"agents,omitempty"`      // of a script, in all (default 1000)
}

// Kind is a kind of step.
type Kind string

// Kinds.
const (
	KindAgent    Kind = "agent"    // has an agent work, in a session of its own
	KindRun      Kind = "run"      // runs a command in the sandbox
	KindCheck    Kind = "check"    // runs a command whose end and output are evidence
	KindApproval Kind = "approval" // asks a person
	KindLoop     Kind = "loop"     // performs its steps until a condition holds
	KindEach     Kind = "each"     // performs its steps for each item of a list
	KindWorkflow Kind = "workflow" // performs another workflow
	KindTool     Kind = "tool"     // calls a tool without a model
	KindWait     Kind = "wait"     // waits for a time, a file or a webhook
)

// kinds lists them all.
func kinds() []Kind {
	return []Kind{KindAgent, KindRun, KindCheck, KindApproval, KindLoop, KindEach, KindWorkflow, KindTool, KindWait}
}

// Step is one step. Its kind decides which fields apply.
type Step struct {
	ID    string `json:"id"`              // a letter, then letters, digits, - and _; unique in its list
	Kind  Kind   `json:"kind"`            // what it does, see Kinds
	Title string `json:"title,omitempty"` // for people
	// Needs are the steps that must succeed before this one begins. Nil means the one above. Empty means none.
	Needs []string `json:"needs,omitzero"`
	// When are conditions on values: the step is skipped unless all hold. In a file it may also say how the needed
	// steps must end.
	When map[string]any `json:"when,omitempty"`
	// Join is how the needed steps must end, if a file gives it instead of conditions. Empty means all must
	// succeed.
	Join Join `json:"join,omitempty"`
	// OnFailure is skip (default: the steps that need it), continue (run them), or stop (begin nothing else).
	OnFailure string  `json:"on_failure,omitempty"`
	Retry     Retry   `json:"retry,omitzero"`   // after a failure
	Output    *Schema `json:"output,omitempty"` // of an agent, or of JSON from a command, tool or webhook
	// Gate is regression_only: the check passes if all its failures existed before the run.
	Gate string `json:"gate,omitempty"`
	// Evidence are checks whose findings the step sees.
	Evidence []string `json:"evidence,omitempty"`

	Prompt      string                `json:"prompt,omitempty"`       // task of the agent, or question to the person; takes ${references}
	Agent       string                `json:"agent,omitempty"`        // kind of subagent; default worker
	Context     string                `json:"context,omitempty"`      // fresh (default), or fork(STEP): knows everything that agent knew
	Model       string                `json:"model,omitempty"`        // provider/model, or small; default that of the run
	Mode        tool.Mode             `json:"mode,omitempty"`         // plan, ask, edit, auto or yolo; never wider than that of the run
	Tools       []string              `json:"tools,omitempty"`        // the only tools; default those of its kind
	Budget      Budget                `json:"budget,omitzero"`        // of this agent
	SafeOutputs map[string]SafeOutput `json:"safe_outputs,omitempty"` // what leaves for an agent that only reads, by name

	Run       string            `json:"run,omitempty"`       // command line for bash; takes no references, see env
	Env       map[string]any    `json:"env,omitempty"`       // variables: values, or references
	Dir       string            `json:"dir,omitempty"`       // where it starts, below the workspace
	Network   []string          `json:"network,omitempty"`   // hosts that it can reach; default none
	Timeout   Duration          `json:"timeout,omitzero"`    // default 10m, at most 24h
	Again     bool              `json:"again,omitempty"`     // it is harmless to run twice, after a crash
	Failures  string            `json:"failures,omitempty"`  // regular expression for lines that name a failure
	Artefacts map[string]string `json:"artefacts,omitempty"` // paths of files to keep, by name

	Choices []string `json:"choices,omitempty"` // the first one approves; default approve, reject
	Show    string   `json:"show,omitempty"`    // text to approve; takes ${references}

	Steps       []Step         `json:"steps,omitempty"`       // at most 6 levels deep
	Until       map[string]any `json:"until,omitempty"`       // conditions on its own steps that end it
	Max         any            `json:"max,omitempty"`         // rounds, 1 to 1000; a number, or a reference to one
	Patience    any            `json:"patience,omitempty"`    // rounds without a better check before it gives up; default 3
	Over        any            `json:"over,omitempty"`        // list, or a reference to one
	Concurrency int            `json:"concurrency,omitempty"` // items at once; default as many as steps of the run

	Use  string         `json:"use,omitempty"`  // name of a workflow
	With map[string]any `json:"with,omitempty"` // inputs or arguments: values, or references
	Tool string         `json:"tool,omitempty"` // name of a tool

	For     Duration `json:"for,omitzero"`      // at most 720h
	File    string   `json:"file,omitempty"`    // until this file exists below the workspace
	Webhook string   `json:"webhook,omitempty"` // until this hook is called
}

// Join says how the steps that a step needs must have ended.
type Join string

// Joins. A step that was skipped by its own condition counts as succeeded.
const (
	JoinDone   Join = "all_done"   // however
	JoinFailed Join = "any_failed" // one of them not well
	JoinOK     Join = "any_ok"     // one of them well
)

func joins() []Join { return []Join{JoinDone, JoinFailed, JoinOK} }

// Retry says how often a failed step is repeated.
type Retry struct {
	Times int      `json:"times,omitempty"` // 1 to 10
	Wait  Duration `json:"wait,omitzero"`   // before each try
}

// Budget limits one agent. Zero means the limit of the run.
type Budget struct {
	Cost  float64  `json:"cost,omitempty"`  // US dollars
	Turns int      `json:"turns,omitempty"` // of the model
	Time  Duration `json:"time,omitzero"`   // of its work
}

// SafeOutput is an output of an agent that otherwise only reads. It is released once the agent and its gate
// have succeeded.
type SafeOutput struct {
	Kind  string `json:"kind"`            // file, comment, message, pull_request or status
	From  string `json:"from"`            // field of the agent's output
	To    string `json:"to,omitempty"`    // path, issue, branch or commit, with ${references}
	After string `json:"after,omitempty"` // approval or check that must succeed first
}

// Duration is a time as [time.ParseDuration] reads it, such as "90s" or "2h".
type Duration time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err == nil && t < 0 {
		err = fmt.Errorf("%s is negative", text)
	}
	*d = Duration(t)
	return err
}

// Clone returns a deep copy. It does not know where the workflow was read from.
func (w *Workflow) Clone() (*Workflow, error) {
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	var out Workflow
	return &out, json.Unmarshal(raw, &out)
}

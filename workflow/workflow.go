// Package workflow performs workflows: what no single conversation can hold. Coded steps do what is
// certain, agents do what needs judgement, and gates decide on evidence.
//
// A workflow is data: a YAML file, see docs/WORKFLOWS.md, or a [Workflow] made in Go. [Workflow.Check]
// finds everything that is wrong with one before anything runs. [Workflow.Run] performs it on a
// session, whose log holds every step with its result:
//
//  1. Every step has one outcome. One that has ended is never performed again, in whatever process,
//     and an agent that has ended is never asked again.
//  2. A step begins when all that it needs has ended well. One that fails holds up only what needs
//     it; what can't be had for it is skipped.
//  3. Values go from step to step by reference and are typed. No file can put a value into a command
//     line: commands get values as variables.
//  4. Which steps there are, what they need and when they stop is decided here, never by an agent.
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

// Workflow is steps, and what holds for all of them. Do not change one that runs.
type Workflow struct {
	Name        string `json:"name"` // lower case letters, digits and dashes
	Description string `json:"description,omitempty"`
	// Inputs are what a run is given, by name. One without a default must be given.
	Inputs map[string]*Schema `json:"inputs,omitempty"`
	// Returns are what a run brings, by name.
	Returns map[string]Return `json:"returns,omitempty"`
	Limits  Limits            `json:"limits,omitzero"`
	Steps   []Step            `json:"steps"`
	// Included are the workflows that steps use, by the name they use.
	Included map[string]*Workflow `json:"included,omitempty"`

	file  string         // that it was read from; empty: none
	lines map[string]int // of fields in the file, by their path
}

// Return is one of the values that a workflow brings.
type Return struct {
	From        string `json:"from"` // reference, such as "plan.summary"
	Description string `json:"description,omitempty"`
}

// Limits bound a run. Zero: no limit, but for Concurrency.
type Limits struct {
	Cost        float64  `json:"cost,omitempty"` // US dollars
	Tokens      int64    `json:"tokens,omitempty"`
	Time        Duration `json:"time,omitzero"`         // that the run works, waits for people aside
	Turns       int      `json:"turns,omitempty"`       // of each agent
	Concurrency int      `json:"concurrency,omitempty"` // steps that work at once; 0: 4
}

// Kind is what a step does.
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

// Kinds are all of them.
func Kinds() []Kind {
	return []Kind{KindAgent, KindRun, KindCheck, KindApproval, KindLoop, KindEach, KindWorkflow, KindTool, KindWait}
}

// Step is one step. Which fields count depends on its kind.
type Step struct {
	ID    string `json:"id"` // letters, digits, - and _; unique among the steps it stands with
	Kind  Kind   `json:"kind"`
	Title string `json:"title,omitempty"` // for people
	// Needs are steps that must have ended well before. Nil: the one above. Empty: none.
	Needs []string `json:"needs,omitzero"`
	// When are conditions on values, by reference: what they must be, or a map of one of is, not, more,
	// less and in. All must hold, else the step is skipped; what needs it begins all the same.
	When map[string]any `json:"when,omitempty"`
	// OnFailure is "skip" (or empty): what needs the step is skipped; "continue": it begins all the
	// same; "stop": nothing else begins.
	OnFailure string  `json:"on_failure,omitempty"`
	Retry     Retry   `json:"retry,omitzero"`
	Output    *Schema `json:"output,omitempty"` // of what it brings: an agent's result, or JSON that a command prints
	// Gate is "regression_only" for a check: it passes if nothing fails that did not fail before the
	// run changed anything.
	Gate string `json:"gate,omitempty"`
	// Evidence names checks. An agent is shown what they brought, and its result can't say
	// "passed" if one has not passed.
	Evidence []string `json:"evidence,omitempty"`

	Prompt      string                `json:"prompt,omitempty"`       // agent: its task; approval: the question; with ${references}
	Agent       string                `json:"agent,omitempty"`        // kind of agent; empty: worker
	Context     string                `json:"context,omitempty"`      // "fresh" (or empty), or "fork(STEP)": it knows what that agent did
	Model       string                `json:"model,omitempty"`        // "provider/model" or "small"; empty: that of the run
	Mode        tool.Mode             `json:"mode,omitempty"`         // no wider than that of the run; empty: that
	Tools       []string              `json:"tools,omitempty"`        // the only ones it has; empty: those of its kind
	Budget      Budget                `json:"budget,omitzero"`        // of one agent
	SafeOutputs map[string]SafeOutput `json:"safe_outputs,omitempty"` // what leaves for it, which itself only reads

	Run       string            `json:"run,omitempty"`       // run, check: command line for bash
	Env       map[string]any    `json:"env,omitempty"`       // variables for it: values, or references
	Dir       string            `json:"dir,omitempty"`       // folder below the workspace that it starts in
	Network   []string          `json:"network,omitempty"`   // hosts that it reaches
	Timeout   Duration          `json:"timeout,omitzero"`    // 0: ten minutes
	Again     bool              `json:"again,omitempty"`     // run: it may run twice, where inspan died meanwhile; a check always may
	Failures  string            `json:"failures,omitempty"`  // check: regular expression of lines that name what fails; empty: usual ones
	Artefacts map[string]string `json:"artefacts,omitempty"` // files below the workspace that are kept when it has ended well, by name

	Choices []string `json:"choices,omitempty"` // approval: what can be answered, of which the first approves; empty: approve, reject
	Show    string   `json:"show,omitempty"`    // approval: what is to be approved; text with references

	Steps       []Step         `json:"steps,omitempty"`       // loop, each
	Until       map[string]any `json:"until,omitempty"`       // loop: ends it, as When has it; on its own steps
	Max         any            `json:"max,omitempty"`         // loop: most rounds, a whole number or a reference
	Patience    any            `json:"patience,omitempty"`    // loop: rounds in which no check gets better, the same; nil: 3
	Over        any            `json:"over,omitempty"`        // each: a list, or the reference of one
	Concurrency int            `json:"concurrency,omitempty"` // each: items at once; 0: as many as the run has

	Use  string         `json:"use,omitempty"`  // workflow: its name
	With map[string]any `json:"with,omitempty"` // workflow: its inputs; tool: the arguments of the call. Values, or references
	Tool string         `json:"tool,omitempty"` // tool: its name

	For     Duration `json:"for,omitzero"`      // wait: so long
	File    string   `json:"file,omitempty"`    // wait: until there is this file below the workspace
	Webhook string   `json:"webhook,omitempty"` // wait: until this hook is called
}

// Retry is how often a step that fails is tried again.
type Retry struct {
	Times int      `json:"times,omitempty"`
	Wait  Duration `json:"wait,omitzero"` // before each
}

// Budget is what one agent may use up. Zero: what the run may.
type Budget struct {
	Cost  float64  `json:"cost,omitempty"` // US dollars
	Turns int      `json:"turns,omitempty"`
	Time  Duration `json:"time,omitzero"`
}

// SafeOutput is something that leaves an agent which only reads. It is released once the agent and
// its gate have ended well.
type SafeOutput struct {
	Kind  string `json:"kind"`            // "file", or one that [Options.Outlets] has
	From  string `json:"from"`            // field of the agent's result
	To    string `json:"to,omitempty"`    // where it goes: a path below the workspace, or what the outlet takes; text with references
	After string `json:"after,omitempty"` // approval or check that it waits for; empty: none
}

// Duration is a time as [time.ParseDuration] has it, such as "90s" or "2h".
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

// Clone returns a copy that shares nothing. It lacks where the workflow was read from.
func (w *Workflow) Clone() (*Workflow, error) {
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, err
	}
	var out Workflow
	return &out, json.Unmarshal(raw, &out)
}

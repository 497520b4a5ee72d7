package equipment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// Program is a workflow that a new session runs instead of a model.
type Program struct {
	Workflow *workflow.Workflow
	Inputs   map[string]any
}

// Model returns the model for a run that names none: empty for that of the settings, or none if the workflow
// has no agent that would ask one.
func (p *Program) Model() string {
	if p.Workflow.Asks() {
		return ""
	}
	return script.Provider
}

// Begin returns the first message of a run of the workflow.
func (p *Program) Begin() event.Said {
	text := "/workflow " + p.Workflow.Name
	for _, name := range slices.Sorted(maps.Keys(p.Inputs)) {
		raw, err := json.Marshal(p.Inputs[name])
		if s, ok := p.Inputs[name].(string); ok && err == nil {
			raw = []byte(s)
		}
		text += " " + name + "=" + words.OneLine(string(raw), 200)
	}
	return event.Say(text)
}

// Within lowers the limits of a session, 0 for none, to those of its workflow. A nil program lowers nothing.
func (p *Program) Within(l inspan.Limits) inspan.Limits {
	if p != nil && p.Workflow != nil {
		its := p.Workflow.Limits
		l.Cost, l.Tokens, l.Time = config.Lesser(l.Cost, its.Cost), config.Lesser(l.Tokens, its.Tokens), config.Lesser(l.Time, time.Duration(its.Time))
	}
	return l
}

// Wire makes an agent run a workflow instead of its model: the one that its session began, or begins with. With
// neither, the model answers. Agents perform the agent steps. Outputs leave through forges, and through tell to
// a person who is away. Self runs scripts, see [workflow.Options].
func (p *Program) Wire(agent *inspan.Agent, at inspan.SessionSpec, agents workflow.Agents, forges *Forges, tell Tell, self string) (err error) {
	switch {
	case at.Parent != "" || p == nil && at.Workflow == "":
		return nil
	case p == nil:
		p = &Program{}
	}
	with := workflow.Options{
		Agents: agents, Env: agent.Env, Unboxed: cmp.Or(agent.Mode, at.Mode) == tool.ModeYolo,
		Outlets: forges.outlets(tell), Self: self,
	}
	agent.Program.Run = func(ctx context.Context, steps *inspan.Steps) error {
		_, err := p.Workflow.Run(ctx, steps, p.Inputs, with)
		return err
	}
	if at.New {
		agent.Program.Step, err = p.Workflow.First(p.Inputs)
	}
	return err
}

// Workflows lists, checks and prepares the workflows that can be run in a folder.
type Workflows struct {
	Set   *Set
	Root  string
	Sum   string                  // as in [consent.Store.ReviewRunning]
	Model func(name string) error // returns the reason why agents can't use the named model
	Kinds []skill.Role            // further kinds of agents, see app.Options
}

// machine returns the names that steps can use here.
func (w Workflows) machine(ctx context.Context) workflow.Machine {
	m := workflow.Machine{Model: w.Model}
	for _, role := range skill.Over(w.Kinds, w.Set.Roles(w.Root, func(string) {})) {
		m.Kinds = append(m.Kinds, role.Name)
	}
	m.Tools = func() []string { return append(Names(), w.Set.ToolNames(ctx, w.Root)...) }
	return m
}

// List lists all workflows, including those that can't be run.
func (w Workflows) List() []Workflow { return w.Set.Workflows(w.Root, w.Sum) }

// Checked returns the workflows that can be run.
func (w Workflows) Checked() (list []*workflow.Workflow) {
	for _, one := range w.List() {
		if flow, err := w.Find(one.Name); err == nil {
			list = append(list, flow)
		}
	}
	return list
}

// Find returns a workflow by its name or file, checked and trusted to run.
func (w Workflows) Find(name string) (*workflow.Workflow, error) {
	return w.Set.Workflow(w.Root, w.Sum, name, true)
}

// read is Find without the requirement of trust, for inspection.
func (w Workflows) read(name string) (*workflow.Workflow, error) {
	return w.Set.Workflow(w.Root, w.Sum, name, false)
}

// Words splits the text after a slash command into the name and inputs of a workflow.
func (w Workflows) Words(typed string) []string { return skill.Words(typed) }

// Program prepares a workflow with typed inputs: NAME=VALUE. If the workflow needs one more text, other words
// form its value.
func (w Workflows) Program(name string, typed []string) (*Program, error) {
	flow, err := w.Find(name)
	if flow != nil {
		err = errors.Join(err, flow.Resolve(w.machine(context.Background())))
	}
	if err != nil {
		return nil, err
	}
	inputs, err := flow.Typed(typed)
	if err != nil {
		return nil, words.Misuse{Err: err}
	}
	return &Program{Workflow: flow, Inputs: inputs}, nil
}

// Write writes the file of a workflow as it is.
func (w Workflows) Write(out io.Writer, name string) error {
	for _, one := range w.List() {
		if one.Name == name {
			_, err := io.WriteString(out, text.Clean(string(one.Data))) // cleaned, as a terminal may show it
			return err
		}
	}
	return words.Misuse{Err: fmt.Errorf("no workflow %q; see 'inspan workflow list'", name)}
}

// Draw draws a workflow: as a tree, or for Mermaid.
func (w Workflows) Draw(ctx context.Context, out io.Writer, name string, mermaid bool) error {
	flow, err := w.planned(ctx, name)
	if err != nil {
		return err
	}
	drawn := flow.Tree()
	if mermaid {
		drawn = flow.Mermaid()
	}
	_, err = io.WriteString(out, drawn)
	return err
}

// Told writes a list of the workflows for people, one per line.
func (w Workflows) Told(out io.Writer) {
	for _, one := range w.List() {
		what := one.Why
		if what == "" {
			if flow, err := w.Find(one.Name); err != nil {
				what = "can't be run: " + words.OneLine(err.Error(), 200)
			} else {
				what = flow.Description
			}
		}
		if len(one.Hides) > 0 {
			what += " (hides the one that is " + strings.Join(one.Hides, ", ") + ")"
		}
		fmt.Fprintf(out, "%-20s %-10s %s\n", one.Name, one.Source, what)
	}
}

// planned returns the plan of a workflow. With problems the plan covers the readable part.
func (w Workflows) planned(ctx context.Context, name string) (*workflow.Workflow, error) {
	flow, err := w.read(name)
	if err != nil {
		return flow, err
	}
	return flow.Plan(ctx, nil, workflow.Options{Self: w.Set.Self, Unboxed: true}) // the plan performs nothing
}

// Check writes whether a workflow, by name or file, can be run here. The error lists all problems.
func (w Workflows) Check(ctx context.Context, out io.Writer, name string) error {
	flow, err := w.planned(ctx, name)
	if flow != nil {
		err = errors.Join(err, flow.Resolve(w.machine(ctx)))
	}
	if err != nil {
		return err
	}
	count := text.Count(len(flow.Steps), "step")
	if _, script := strings.CutSuffix(name, ".js"); script {
		count = "at least " + count
	}
	fmt.Fprintf(out, "%s: %s is a workflow of %s\n", filepath.Base(name), flow.Name, count)
	return nil
}

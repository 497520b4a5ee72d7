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

// Program is a workflow that a new session performs in the place of a model.
type Program struct {
	Workflow *workflow.Workflow
	Inputs   map[string]any
}

// Model is the model that a run needs which names none: that of the settings, empty, or, without an
// agent that would ask it, none.
func (p *Program) Model() string {
	if p.Workflow.Asks() {
		return ""
	}
	return script.Provider
}

// Begin is the message that a run of the workflow begins with.
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

// Within is the limits of a session that performs the program: those given, 0 for none, and no higher
// than its workflow has them. A nil program has none.
func (p *Program) Within(dollars float64, tokens int64, length time.Duration) (float64, int64, time.Duration) {
	if p == nil || p.Workflow == nil {
		return dollars, tokens, length
	}
	l := p.Workflow.Limits
	return config.Lesser(dollars, l.Cost), config.Lesser(tokens, l.Tokens), config.Lesser(length, time.Duration(l.Time))
}

// Wire has an agent perform a workflow in the place of its model: the one that its session has begun,
// or begins with; neither: the model answers. Agents do what its steps ask for, and
// what leaves it goes by forges and, to a person who is away, by tell. Self runs scripts, see [workflow.Options].
func (p *Program) Wire(agent *inspan.Agent, at inspan.Place, agents workflow.Agents, forges *Forges, tell Tell, self string) (err error) {
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

// Workflows are those that can be run in a folder.
type Workflows struct {
	Set   *Set
	Root  string
	Sum   string                  // as in [consent.Store.ReviewRunning]
	Model func(name string) error // why agents can't have the model of that name
}

// machine is what steps can name here.
func (w Workflows) machine(ctx context.Context) workflow.Machine {
	m := workflow.Machine{Model: w.Model}
	for _, role := range w.Set.Roles(w.Root, func(string) {}) {
		m.Kinds = append(m.Kinds, role.Name)
	}
	m.Tools = func() []string { return append(Names(), w.Set.ToolNames(ctx, w.Root)...) }
	return m
}

// List lists them.
func (w Workflows) List() []Workflow { return w.Set.Workflows(w.Root, w.Sum) }

// Checked are those that can be run.
func (w Workflows) Checked() (list []*workflow.Workflow) {
	for _, one := range w.List() {
		if flow, err := w.Find(one.Name); err == nil {
			list = append(list, flow)
		}
	}
	return list
}

// Find is one of them by its name, or that of a file, checked.
func (w Workflows) Find(name string) (*workflow.Workflow, error) {
	return w.Set.Workflow(w.Root, w.Sum, name, true)
}

// read is Find for what only looks at one.
func (w Workflows) read(name string) (*workflow.Workflow, error) {
	return w.Set.Workflow(w.Root, w.Sum, name, false)
}

// Words are the name and the inputs of a workflow in what was typed behind a slash command.
func (w Workflows) Words(typed string) []string { return skill.Words(typed) }

// Program makes one of a workflow and of inputs as they are typed: NAME=VALUE, and of a workflow
// which needs one text more, words that say it.
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

// Write writes the file of one as it is.
func (w Workflows) Write(out io.Writer, name string) error {
	for _, one := range w.List() {
		if one.Name == name {
			_, err := io.WriteString(out, text.Clean(string(one.Data))) // a terminal may show it
			return err
		}
	}
	return words.Misuse{Err: fmt.Errorf("there is no workflow %q; see 'inspan workflow list'", name)}
}

// Draw draws one: as a tree, or for Mermaid.
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

// Told lists them for people, one a line.
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

// planned is the plan of one. With problems it is there as far as it could be read.
func (w Workflows) planned(ctx context.Context, name string) (*workflow.Workflow, error) {
	flow, err := w.read(name)
	if err != nil {
		return flow, err
	}
	return flow.Plan(ctx, nil, workflow.Options{Self: w.Set.Self, Unboxed: true}) // it performs nothing
}

// Check says of one, or of a file, whether it can be run here, or all that is in the way.
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

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/equipment"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
	"github.com/inspan/inspan/workflow"
)

// Program performs the workflow of one session, in the place of a model: see [Options.Program] and
// [inspan.Conductor.Do].
type Program struct {
	Workflow *workflow.Workflow // nil: that which the session has begun
	Inputs   map[string]any

	with     workflow.Options
	returned map[string]any
}

// Do performs the workflow.
func (p *Program) Do(ctx context.Context, steps *inspan.Steps) (err error) {
	p.returned, err = p.Workflow.Run(ctx, steps, p.Inputs, p.with)
	return err
}

// Text is what the workflow has brought, for people; empty: nothing, so far.
func (p *Program) Text() string {
	var b strings.Builder
	for _, name := range slices.Sorted(mapKeys(p.returned)) {
		v := p.returned[name]
		if v == nil || v == "" {
			continue
		}
		said, ok := v.(string)
		if raw, err := json.Marshal(v); !ok && err == nil {
			said = string(raw)
		}
		if strings.Contains(strings.TrimSpace(said), "\n") {
			said = "\n" + said
		}
		fmt.Fprintf(&b, "%s: %s\n", name, strings.TrimRight(said, "\n"))
	}
	return strings.TrimSpace(b.String())
}

// Begin is the message that a run of the workflow begins with.
func (p *Program) Begin() event.Said {
	text := "/workflow " + p.Workflow.Name
	for _, name := range slices.Sorted(mapKeys(p.Inputs)) {
		raw, err := json.Marshal(p.Inputs[name])
		if s, ok := p.Inputs[name].(string); ok && err == nil {
			raw = []byte(s)
		}
		text += " " + name + "=" + words.OneLine(string(raw), 200)
	}
	return event.Say(text)
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// equip gives the program what its steps work with.
func (p *Program) equip(b *build, agents workflow.Agents) {
	p.with = workflow.Options{Agents: agents, Env: b.env, Unboxed: b.agent.Mode == tool.ModeYolo}
}

// Workflows are those that can be run in a folder.
type Workflows struct {
	App   *App
	Root  string
	Trust string // as [Options.Trust]
}

// List lists them.
func (w Workflows) List() []equipment.Workflow { return w.App.Extensions.Workflows(w.Root, w.Trust) }

// Find is one of them by its name, or that of a file, checked.
func (w Workflows) Find(name string) (*workflow.Workflow, error) {
	return w.App.Extensions.Workflow(w.Root, w.Trust, name)
}

// Program makes one of a workflow and of inputs as they are typed: NAME=VALUE, and of a workflow
// which needs one text more, words that say it.
func (w Workflows) Program(name string, typed []string) (*Program, error) {
	flow, err := w.Find(name)
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
			_, err := out.Write(one.Data)
			return err
		}
	}
	return words.Misuse{Err: fmt.Errorf("there is no workflow %q; see 'inspan workflow list'", name)}
}

// Draw draws one: as a tree, or for Mermaid.
func (w Workflows) Draw(out io.Writer, name string, mermaid bool) error {
	flow, err := w.Find(name)
	if err != nil {
		return err
	}
	text := flow.Tree()
	if mermaid {
		text = flow.Mermaid()
	}
	_, err = io.WriteString(out, text)
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
		fmt.Fprintf(out, "%-20s %-10s %s\n", one.Name, one.Source, what)
	}
}

// Check says of one, or of a file, whether it can be run.
func (w Workflows) Check(out io.Writer, name string) error {
	flow, err := w.Find(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %s is a workflow of %d steps\n", filepath.Base(name), flow.Name, len(flow.Steps))
	return nil
}

package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Machine lists what steps can name on the machine where a workflow is to run.
type Machine struct {
	Model func(name string) error // why there is no such model
	Kinds []string                // of agents
	Tools func() []string         // asked for only if a step names one; those of MCP servers count as there
}

// Resolve returns everything that the steps, including of included workflows, name but the machine lacks, as
// [Problems]. Nil means it has everything.
func (w *Workflow) Resolve(m Machine) error {
	r := &resolver{Machine: m, seen: map[*Workflow]bool{}}
	r.workflow(w)
	if len(r.problems) == 0 {
		return nil
	}
	return r.problems
}

type resolver struct {
	Machine
	tools    []string // as Tools lists them
	seen     map[*Workflow]bool
	problems Problems
}

func (r *resolver) workflow(w *Workflow) {
	if r.seen[w] {
		return
	}
	r.seen[w] = true
	c := &checker{w: w}
	r.level(c, w.Steps, "steps")
	r.level(c, w.Finally, "finally")
	for _, p := range c.problems {
		r.problems.add(p)
	}
	for _, name := range sortedKeys(w.Included) {
		r.workflow(w.Included[name])
	}
}

func (r *resolver) level(c *checker, steps []Step, path string) {
	for _, s := range steps {
		at := join(path, s.ID)
		if s.Kind == KindAgent {
			r.agent(c, s, at)
		}
		for _, name := range slices.Concat(s.Tools, []string{s.Tool}) {
			if name != "" && !r.hasTool(name) {
				field := join(at, "tools")
				if s.Kind == KindTool {
					field = join(at, "tool")
				}
				c.add(field, fmt.Sprintf("there is no tool %q here", name), remedyFor(name, r.tools))
			}
		}
		r.level(c, s.Steps, join(at, "steps"))
	}
}

func (r *resolver) agent(c *checker, s Step, at string) {
	kind := cmp.Or(s.Agent, "worker")
	if !slices.ContainsFunc(r.Kinds, func(known string) bool { return strings.EqualFold(known, kind) }) {
		c.add(join(at, "agent"), fmt.Sprintf("there is no kind of agent %q here", kind), remedyFor(kind, r.Kinds))
	}
	if s.Model == "" {
		return
	}
	if err := r.Model(s.Model); err != nil {
		c.add(join(at, "model"), err.Error(), "or write small")
	}
}

func (r *resolver) hasTool(name string) bool {
	if r.tools == nil {
		r.tools = r.Tools()
	}
	return strings.HasPrefix(name, "mcp__") || slices.Contains(r.tools, name)
}

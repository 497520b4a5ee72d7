package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// Bounds of what a file may ask for.
const (
	mostRounds      = 1000
	mostConcurrency = 64
	mostRetries     = 10
	mostWait        = 30 * 24 * time.Hour
	mostTimeout     = 24 * time.Hour
	mostIncluded    = 5 // workflows within workflows
)

// Check returns all that is wrong with the workflow, as [Problems]; nil: it can run.
func (w *Workflow) Check() error {
	c := &checker{w: w}
	if !isName(w.Name) {
		c.add("name", fmt.Sprintf("%q is no name", w.Name), "use lower case letters, digits and dashes")
	}
	c.limits()
	inputs := c.inputs()
	if len(w.Steps) == 0 {
		c.add("steps", "there are none", "add a step with id: and kind:")
	}
	top := &scope{types: map[string]*Schema{"inputs": inputs}}
	c.level(w.Steps, "steps", top)
	c.returns(top)
	if len(c.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return c.problems
}

func isName(s string) bool {
	return len(s) <= 64 && regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(s)
}

func isID(s string) bool {
	return len(s) <= 64 && regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`).MatchString(s)
}

// reserved are names that references have for something else.
func reserved() []string { return []string{"inputs", "item", "round", "before", "history", "returns"} }

type checker struct {
	w        *Workflow
	problems Problems
}

// add tells of a problem of the field at a path, in the line of that or of what it stands in.
func (c *checker) add(path, what, remedy string) {
	p := Problem{File: c.w.file, Field: path, What: what, Remedy: remedy}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if p.Line = c.w.lines[at]; p.Line > 0 {
			break
		}
	}
	if p.Line == 0 && p.File != "" {
		p.Line = 1
	}
	c.problems = append(c.problems, p)
}

// scope is the types of what the steps of one list can refer to.
type scope struct {
	up    *scope
	types map[string]*Schema
	steps []Step // of the list, for advice
}

func (c *checker) limits() {
	l := c.w.Limits
	if l.Cost < 0 || l.Tokens < 0 || l.Turns < 0 {
		c.add("limits", "a limit is negative", "use a number above 0, or leave it out for no limit")
	}
	if l.Concurrency < 0 || l.Concurrency > mostConcurrency {
		c.add("limits.concurrency", fmt.Sprintf("it is %d", l.Concurrency), fmt.Sprintf("use 1 to %d", mostConcurrency))
	}
}

// inputs is the type of all inputs.
func (c *checker) inputs() *Schema {
	all := &Schema{Type: "object", Properties: map[string]*Schema{}}
	for _, name := range sortedKeys(c.w.Inputs) {
		at, s := "inputs."+name, c.w.Inputs[name]
		if !isID(name) {
			c.add(at, fmt.Sprintf("%q is no name", name), "use letters, digits, - and _")
		}
		if !c.schema(at, s) {
			continue
		}
		all.Properties[name] = s
		if s.Type == "" {
			c.add(at, "it has no type", "add type: string, or another one")
		}
		if s.Default != nil {
			if err := valid(s, s.Default); err != nil {
				c.add(at, "its default does not fit its schema: "+err.Error(), "change one of them")
			}
		}
	}
	return all
}

// schema reports whether a schema can be used.
func (c *checker) schema(path string, s *Schema) bool {
	if s == nil {
		c.add(path, "it is empty", "give it a JSON schema")
		return false
	}
	raw, err := json.Marshal(s)
	if err == nil {
		err = tool.Tool{Name: "value", Schema: wrapped(raw)}.CheckSchema()
	}
	if err != nil {
		c.add(path, "it is no JSON schema: "+err.Error(), "see json-schema.org")
		return false
	}
	return true
}

// wrapped is a schema of objects that have a value of another one.
func wrapped(schema []byte) json.RawMessage {
	return fmt.Appendf(nil, `{"type":"object","properties":{"value":%s}}`, schema)
}

// valid returns why JSON does not fit a schema.
func valid(s *Schema, raw json.RawMessage) error {
	r, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	return r.Validate(v)
}

func (c *checker) returns(top *scope) {
	s := &scope{up: top, types: map[string]*Schema{}, steps: c.w.Steps}
	for _, step := range c.w.Steps {
		s.types[step.ID] = c.w.output(step)
	}
	for _, name := range sortedKeys(c.w.Returns) {
		at := "returns." + name
		if !isID(name) {
			c.add(at, fmt.Sprintf("%q is no name", name), "use letters, digits, - and _")
		}
		c.ref(at+".from", c.w.Returns[name].From, s)
	}
}

// level checks the steps of one list.
func (c *checker) level(steps []Step, path string, up *scope) {
	seen := map[string]bool{}
	for _, s := range steps {
		at := join(path, s.ID)
		switch {
		case !isID(s.ID):
			c.add(join(at, "id"), fmt.Sprintf("%q is no id", s.ID), "use letters, digits, - and _, a letter first")
		case slices.Contains(reserved(), s.ID):
			c.add(join(at, "id"), fmt.Sprintf("%q means something else in references", s.ID), "call it something else")
		case seen[s.ID]:
			c.add(join(at, "id"), "another step here has this id", "call it something else")
		}
		seen[s.ID] = true
	}
	for i, s := range steps {
		at := join(path, s.ID)
		sc := &scope{up: up, types: map[string]*Schema{}, steps: steps}
		for _, id := range c.needs(steps, i, at) {
			sc.types[id] = c.w.output(stepOf(steps, id))
		}
		c.step(s, at, sc, steps)
	}
}

func stepOf(steps []Step, id string) Step {
	for _, s := range steps {
		if s.ID == id {
			return s
		}
	}
	return Step{}
}

// needed are the steps that a step needs itself: those it names, or the one above.
func needed(steps []Step, i int) []string {
	if steps[i].Needs != nil || i == 0 {
		return steps[i].Needs
	}
	return []string{steps[i-1].ID}
}

// needs are all that a step needs, directly or not.
func (c *checker) needs(steps []Step, i int, path string) (all []string) {
	seen := map[string]bool{}
	var visit func(n int)
	visit = func(n int) {
		for _, id := range needed(steps, n) {
			at := slices.IndexFunc(steps, func(s Step) bool { return s.ID == id })
			switch {
			case at < 0 && n == i:
				c.add(join(path, "needs"), fmt.Sprintf("there is no step %q beside it", id), remedyFor(id, ids(steps)))
			case at == i:
				c.add(join(path, "needs"), "the step needs itself", "remove the need that leads back to it")
				seen[id] = true
				return
			case at >= 0 && !seen[id]:
				seen[id] = true
				all = append(all, id)
				visit(at)
			}
		}
	}
	visit(i)
	return all
}

func ids(steps []Step) (out []string) {
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"

	"github.com/inspan/inspan/event"
)

// Limits on the content of a file.
const (
	mostRounds      = 1000
	mostConcurrency = 64
	mostAgents      = 10_000
	mostRetries     = 10
	mostWait        = 30 * 24 * time.Hour
	mostTimeout     = 24 * time.Hour
	mostIncluded    = 5 // workflows within workflows
	mostUses        = 50
)

// Check returns everything that is wrong with the workflow, as [Problems]. Nil means it can run.
func (w *Workflow) Check() error { return w.check(0, nil) }

// check is Check for a workflow at a depth of inclusion. The problems found while reading it are in formal.
func (w *Workflow) check(within int, formal Problems) error {
	c := &checker{w: w, types: types{w, map[*Workflow]*Schema{}}, problems: formal, formal: formal}
	if within > mostIncluded {
		c.add("included", "there are too many workflows within workflows", fmt.Sprintf("keep to %d levels", mostIncluded))
		return c.problems
	}
	for _, name := range sortedKeys(w.Included) {
		if err := w.Included[name].check(within+1, nil); err != nil {
			c.add("included."+name, err.Error(), "mend that first")
		}
	}
	c.plain("name", w.Name)
	l := c.w.Limits
	c.amount("limits.cost", l.Cost, 0)
	c.amount("limits.tokens", float64(l.Tokens), 0)
	c.amount("limits.turns", float64(l.Turns), 0)
	c.amount("limits.concurrency", float64(l.Concurrency), mostConcurrency)
	c.amount("limits.agents", float64(l.Agents), mostAgents)
	c.span("limits.time", l.Time, 0)
	inputs := c.inputs()
	switch {
	case w.Script != "" && len(w.Steps)+len(w.Finally)+len(w.Returns) > 0:
		c.add("steps", "a script stands beside steps or returns", "keep one of them")
	case w.Script == "" && len(w.Steps) == 0:
		c.add("steps", "there are none", "add a step with id: and kind:")
	}
	top := &scope{types: map[string]*Schema{"inputs": inputs}}
	c.level(w.Steps, "steps", top)
	c.level(w.Finally, "finally", &scope{up: top, types: c.types.outputs(w.Steps)})
	for _, s := range w.Finally {
		if stepOf(w.Steps, s.ID).ID != "" {
			c.add(join(join("finally", s.ID), "id"), "a step of the workflow has this id", "call it something else")
		}
	}
	s := &scope{up: top, types: c.types.outputs(c.w.Steps), steps: c.w.Steps}
	for _, name := range sortedKeys(c.w.Returns) {
		at := "returns." + name
		c.named(at, name)
		c.ref(at+".from", c.w.Returns[name].From, s)
	}
	if len(c.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(c.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return c.problems
}

// plain checks a name that appears in addresses and file names.
func (c *checker) plain(path, name string) {
	if len(name) > 64 || !regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`).MatchString(name) {
		c.add(path, fmt.Sprintf("%q is not a name", text.Short(name, 80)), "use lower case letters, digits and dashes, at most 64")
	}
}

// named checks a name that appears in references or in the log.
func (c *checker) named(path, name string) {
	if len(name) > 64 || !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`).MatchString(name) {
		c.add(path, fmt.Sprintf("%q is not a name", text.Short(name, 80)),
			"begin with a letter, and go on with letters, digits, - and _, 64 at most")
	}
}

// reserved are names that have another meaning in references or in the log.
func reserved() []string {
	return []string{"inputs", "item", "round", "before", "history", "returns", event.Workflow}
}

type checker struct {
	w        *Workflow
	types    types
	problems Problems
	formal   Problems // those among them that were found when the file was read
}

// add reports a problem with the field at a path, on the line of the field or of the part that contains it. It
// leaves out consequences of a reported problem.
func (c *checker) add(path, what, remedy string) {
	if slices.ContainsFunc(c.formal, func(p Problem) bool { return p.Field != "" && (inside(path, p.Field) || inside(p.Field, path)) }) {
		return
	}
	p := Problem{File: c.w.file, Field: path, What: what, Remedy: remedy}
	for at := path; at != ""; at = at[:max(0, strings.LastIndexByte(at, '.'))] {
		if p.Line = c.w.lines[at]; p.Line > 0 {
			break
		}
	}
	if p.Line == 0 && p.File != "" {
		p.Line = 1
	}
	c.problems.add(p)
}

// inside reports whether a field is another, or a part of it.
func inside(field, of string) bool { return field == of || strings.HasPrefix(field, of+".") }

// scope has the types of the values that steps of one list can refer to.
type scope struct {
	up    *scope
	types map[string]*Schema
	steps []Step // of the list, for advice
	self  string // step of the list that refers, or has the one that does
}

// amount checks a number that must be above 0 if given, and at most most; 0 means no maximum. In a workflow made in
// Go, 0 means that it is not given.
func (c *checker) amount(path string, n, most float64) {
	switch {
	case n > 0 && (most == 0 || n <= most) || n == 0 && c.w.lines[path] == 0:
	case most > 0:
		c.add(path, fmt.Sprintf("it is %v", n), fmt.Sprintf("use 1 to %v", most))
	default:
		c.add(path, fmt.Sprintf("it is %v", n), "use a number above 0, or leave it out")
	}
}

// span is amount for durations.
func (c *checker) span(path string, d Duration, most time.Duration) {
	switch t := time.Duration(d); {
	case t < 0 || t == 0 && c.w.lines[path] > 0:
		c.add(path, fmt.Sprintf("it is %v", t), "use a time above 0, or leave it out")
	case most > 0 && t > most:
		c.add(path, fmt.Sprintf("it is %v", t), fmt.Sprintf("use at most %.0fh", most.Hours()))
	}
}

// inputs returns the type of all inputs together.
func (c *checker) inputs() *Schema {
	all := &Schema{Type: "object", Properties: map[string]*Schema{}, AdditionalProperties: &Schema{Not: &Schema{}}}
	for _, name := range sortedKeys(c.w.Inputs) {
		at, s := "inputs."+name, c.w.Inputs[name]
		c.named(at, name)
		if !c.schema(at, s) {
			all.Properties[name] = &Schema{} // any value, so that what refers to it is looked at
			continue
		}
		all.Properties[name] = s
		if s.Type == "" {
			c.add(at, "it does not have one type", "add type: string, or another one")
			continue
		}
		if s.Default != nil {
			if err := valid(s, s.Default); err != nil {
				c.add(at, "its default does not fit its schema: "+err.Error(), "change one of them")
			}
		}
	}
	return all
}

// level checks the steps of one list.
func (c *checker) level(steps []Step, path string, up *scope) {
	seen := map[string]bool{}
	for _, s := range steps {
		at := join(path, s.ID)
		c.named(join(at, "id"), s.ID)
		switch {
		case slices.Contains(reserved(), s.ID):
			c.add(join(at, "id"), fmt.Sprintf("%q has a meaning of its own", s.ID), "call it something else")
		case seen[s.ID]:
			c.add(join(at, "id"), "another step here has this id", "call it something else")
		}
		seen[s.ID] = true
	}
	all := c.types.outputs(steps)
	for i, s := range steps {
		if c.problems.full() {
			return
		}
		at := join(path, s.ID)
		sc := &scope{up: up, types: map[string]*Schema{}, steps: steps, self: s.ID}
		for _, id := range c.needs(steps, i, at) {
			sc.types[id] = all[id]
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

// needed returns the steps that a step needs directly: those it names, or the one above.
func needed(steps []Step, i int) []string {
	if steps[i].Needs != nil || i == 0 {
		return steps[i].Needs
	}
	return []string{steps[i-1].ID}
}

// needs returns all steps that a step needs, directly or indirectly. A cycle is reported at its first step.
func (c *checker) needs(steps []Step, i int, path string) (all []string) {
	index, seen, way := indexOf(steps), make([]bool, len(steps)), []string{}
	var visit func(n int)
	visit = func(n int) {
		for _, id := range needed(steps, n) {
			at, there := index[id]
			switch {
			case !there && n == i:
				c.add(join(path, "needs"), fmt.Sprintf("there is no step %q beside it", id), remedyFor(id, ids(steps)))
			case !there || seen[at]:
			case at == i:
				if seen[at] = true; !slices.ContainsFunc(way, func(id string) bool { return index[id] < i }) {
					c.add(join(path, "needs"), "the step needs "+strings.Join(append(way, "itself"), ", which needs "),
						"remove one of these needs; a step without needs: needs the one above")
				}
			default:
				seen[at] = true
				all, way = append(all, id), append(way, id)
				visit(at)
				way = way[:len(way)-1]
			}
		}
	}
	visit(i)
	return all
}

// indexOf maps the ids of a list's steps to their positions.
func indexOf(steps []Step) map[string]int {
	out := make(map[string]int, len(steps))
	for i, s := range steps {
		if _, twice := out[s.ID]; !twice {
			out[s.ID] = i
		}
	}
	return out
}

func ids(steps []Step) (out []string) {
	for _, s := range steps {
		out = append(out, s.ID)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package workflow

import (
	"fmt"
	"maps"
	"slices"
)

// types computes the types of step results. It caches those of whole workflows, so that many steps with the
// same workflow take no longer than one.
type types struct {
	w     *Workflow
	whole map[*Workflow]*Schema
}

// output returns the type of a step's result.
func (t types) output(s Step) *Schema {
	out := t.own(s)
	if len(s.Artefacts) == 0 || len(out.Properties) == 0 {
		return out
	}
	out.Properties = maps.Clone(out.Properties)
	out.Properties["artefacts"] = object(nil)
	for name := range s.Artefacts {
		out.Properties["artefacts"].Properties[name] = &Schema{Type: "string"}
	}
	return out
}

// own is output without stored files.
func (t types) own(s Step) *Schema {
	text, number, flag := &Schema{Type: "string"}, &Schema{Type: "integer"}, &Schema{Type: "boolean"}
	switch s.Kind {
	case KindCheck:
		return object(map[string]*Schema{"passed": flag, "exit": number, "output": text, "failures": {Type: "array", Items: text}})
	case KindApproval:
		choice := &Schema{Type: "string"}
		for _, c := range s.choices() {
			choice.Enum = append(choice.Enum, c)
		}
		return object(map[string]*Schema{"approved": flag, "choice": choice, "answer": text})
	case KindLoop:
		return object(map[string]*Schema{"passed": flag, "rounds": number, "why": text, "last": object(t.outputs(s.Steps))})
	case KindEach:
		last := Step{}
		if len(s.Steps) > 0 {
			last = s.Steps[len(s.Steps)-1]
		}
		return object(map[string]*Schema{"items": {Type: "array", Items: t.output(last)}, "ok": number, "failed": number})
	case KindWorkflow:
		return t.brings(t.w.Included[s.Use])
	}
	switch {
	case s.Output != nil:
		copied := *s.Output
		return &copied
	case s.Kind == KindRun:
		return object(map[string]*Schema{"exit": number, "output": text})
	}
	return object(map[string]*Schema{"text": text})
}

// choices are the possible answers to an approval.
func (s Step) choices() []string {
	if len(s.Choices) == 0 {
		return []string{"approve", "reject"}
	}
	return s.Choices
}

// outputs returns the types of the results of several steps, by id.
func (t types) outputs(steps []Step) map[string]*Schema {
	out := map[string]*Schema{}
	for _, s := range steps {
		if out[s.ID] == nil {
			out[s.ID] = t.output(s)
		}
	}
	return out
}

// brings returns the type of a workflow's values; it is open if the workflow returns none.
func (t types) brings(w *Workflow) *Schema {
	if w == nil {
		return &Schema{}
	}
	if t.whole[w] != nil {
		return t.whole[w]
	}
	out := object(nil)
	t.whole[w] = out // also if it uses itself, which Check refuses
	sc := &scope{types: types{w, t.whole}.outputs(w.Steps), steps: w.Steps}
	sc.types["inputs"] = object(w.Inputs)
	for name, r := range w.Returns {
		if out.Properties[name] = sc.find(r.From); out.Properties[name] == nil {
			out.Properties[name] = &Schema{}
		}
	}
	return out
}

func object(properties map[string]*Schema) *Schema {
	if properties == nil {
		properties = map[string]*Schema{}
	}
	return &Schema{Type: "object", Properties: properties}
}

// inclusion finds the workflows that steps use, directly and indirectly.
type inclusion struct {
	find func(name string) (file string, data []byte, err error)
	left int // how many more may be found, so that files which use each other stay quick to read
}

// include finds the workflows used by one. Within are the names by which it is used, with those around it.
func (in *inclusion) include(w *Workflow, within []string, had Problems) Problems {
	c := &checker{w: w, problems: had, formal: had}
	w.uses(w.Steps, "steps", func(path, name string) {
		path = join(path, "use")
		switch {
		case w.Included[name] != nil:
		case slices.Contains(within, name):
			c.add(path, fmt.Sprintf("%s uses itself in the end", name), "remove one of the uses")
		case len(within) > mostIncluded:
			c.add(path, "there are too many workflows within workflows", fmt.Sprintf("keep to %d levels", mostIncluded))
		case in.left == 0:
			c.add(path, fmt.Sprintf("there are more than %d uses of workflows in all", mostUses), "use fewer")
		case in.find != nil:
			used, err := in.found(name, within)
			if err != nil && name != "" { // else it is missing
				c.add(path, err.Error(), "mend that first; 'inspan workflow list' names those that there are")
			}
			if err != nil {
				return
			}
			if w.Included == nil {
				w.Included = map[string]*Workflow{}
			}
			w.Included[name] = used
		}
	})
	return c.problems
}

// found finds one workflow with all that it uses, and checks it.
func (in *inclusion) found(name string, within []string) (*Workflow, error) {
	in.left--
	file, data, err := in.find(name)
	if err != nil {
		return nil, err
	}
	return in.parse(file, data, append(slices.Clone(within), name))
}

// parse reads a file with all workflows that it uses, and checks it. Within are the names by which it is used;
// none: its own.
func (in *inclusion) parse(file string, data []byte, within []string) (*Workflow, error) {
	w, had := read(file, data)
	if w == nil {
		return nil, had
	}
	if within == nil {
		within = []string{w.Name}
	}
	return w, w.check(0, in.include(w, within, had))
}

// uses calls f for each step that uses a workflow.
func (w *Workflow) uses(steps []Step, path string, f func(path, name string)) {
	if path == "steps" {
		w.uses(w.Finally, "finally", f)
		for i, name := range w.Uses {
			f(fmt.Sprintf("uses.%d", i+1), name)
		}
	}
	for _, s := range steps {
		at := join(path, s.ID)
		if s.Kind == KindWorkflow {
			f(at, s.Use)
		}
		w.uses(s.Steps, join(at, "steps"), f)
	}
}

package workflow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// output is the type of what a step brings.
func (w *Workflow) output(s Step) *Schema {
	out := w.own(s)
	if len(s.Artefacts) == 0 || out.Type != "object" {
		return out
	}
	out.Properties = maps.Clone(out.Properties)
	out.Properties["artefacts"] = object(nil)
	for name := range s.Artefacts {
		out.Properties["artefacts"].Properties[name] = &Schema{Type: "string"}
	}
	return out
}

// own is output without the files that are kept.
func (w *Workflow) own(s Step) *Schema {
	text, number, flag := &Schema{Type: "string"}, &Schema{Type: "integer"}, &Schema{Type: "boolean"}
	switch s.Kind {
	case KindCheck:
		return object(map[string]*Schema{"passed": flag, "exit": number, "output": text, "failures": {Type: "array", Items: text}})
	case KindApproval:
		return object(map[string]*Schema{"approved": flag, "choice": text, "answer": text})
	case KindLoop:
		return object(map[string]*Schema{"passed": flag, "rounds": number, "why": text, "last": w.outputs(s.Steps)})
	case KindEach:
		return object(map[string]*Schema{
			"items": {Type: "array", Items: w.output(s.Steps[max(0, len(s.Steps)-1)])}, "ok": number, "failed": number,
		})
	case KindWorkflow:
		return w.Included[s.Use].brings()
	}
	switch {
	case s.Output != nil:
		copied := *s.Output
		return &copied
	case s.Kind == KindRun:
		return object(map[string]*Schema{"exit": number, "output": text})
	case s.Kind == KindWait:
		return object(map[string]*Schema{"text": text})
	}
	return object(map[string]*Schema{"text": text})
}

// outputs is the type of what several steps bring, by id.
func (w *Workflow) outputs(steps []Step) *Schema {
	out := object(nil)
	for _, s := range steps {
		out.Properties[s.ID] = w.output(s)
	}
	return out
}

// brings is the type of what a workflow returns; of none it is open.
func (w *Workflow) brings() *Schema {
	if w == nil {
		return &Schema{}
	}
	out := object(nil)
	sc := &scope{types: w.outputs(w.Steps).Properties, steps: w.Steps}
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

// include finds the workflows that steps use, and those that these use. Within are the ones that
// this one is used by.
func (w *Workflow) include(find Source, within []string) error {
	c, within := &checker{w: w}, append(slices.Clone(within), w.Name)
	w.uses(w.Steps, "steps", func(path, name string) {
		switch {
		case w.Included[name] != nil:
		case slices.Contains(within, name):
			c.add(join(path, "use"), fmt.Sprintf("%s uses itself in the end", name), "remove one of the uses")
		case len(within) > mostIncluded:
			c.add(join(path, "use"), "there are too many workflows within workflows", fmt.Sprintf("keep to %d levels", mostIncluded))
		case find != nil:
			used, err := found(find, name)
			if err == nil {
				err = cmp.Or(used.include(find, within), used.Check())
			}
			if err != nil {
				c.add(join(path, "use"), err.Error(), "mend that first; 'inspan workflow list' names those that there are")
				return
			}
			if w.Included == nil {
				w.Included = map[string]*Workflow{}
			}
			w.Included[name] = used
		}
	})
	if len(c.problems) > 0 {
		return c.problems
	}
	return nil
}

func found(find Source, name string) (*Workflow, error) {
	file, data, err := find(name)
	if err != nil {
		return nil, err
	}
	return read(file, data)
}

// uses calls f for each step that uses a workflow.
func (w *Workflow) uses(steps []Step, path string, f func(path, name string)) {
	for _, s := range steps {
		at := join(path, s.ID)
		if s.Kind == KindWorkflow {
			f(at, s.Use)
		}
		w.uses(s.Steps, join(at, "steps"), f)
	}
}

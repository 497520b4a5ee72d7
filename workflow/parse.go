package workflow

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Limits on the steps of a file.
const (
	mostSteps = 500
	mostDeep  = 6 // steps within steps
)

// Problem is one thing that is wrong with a workflow.
type Problem struct {
	File   string // empty means it is not a file
	Line   int    // 0 means it is not a file
	Field  string // such as "steps.plan.prompt"
	What   string
	Remedy string // what to do about it
}

// Error names line, field and remedy.
func (p Problem) Error() string {
	at := ""
	if p.File != "" {
		at = p.File + ":"
	}
	if p.Line > 0 {
		at += fmt.Sprintf("%d:", p.Line)
	}
	if at != "" {
		at += " "
	}
	if p.Field != "" {
		at += p.Field + ": "
	}
	return at + p.What + "; " + p.Remedy
}

// Problems are all problems of a workflow, in the order of its lines.
type Problems []Problem

// mostProblems is how many problems are reported. The others appear when these are fixed.
const mostProblems = 50

func (p Problems) full() bool { return len(p) >= mostProblems }

// add adds a problem and keeps its text short, whatever the file contains.
func (p *Problems) add(one Problem) {
	if !p.full() {
		one.Field, one.What, one.Remedy = text.Cut(one.Field, 300), text.Cut(one.What, 2000), text.Cut(one.Remedy, 600)
		*p = append(*p, one)
	}
}

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Parse reads a workflow from a YAML file or a script (.js) and checks it, together with all workflows that it
// uses. Find returns the file of a workflow by its name; nil means there are none. The error is [Problems].
//
// If there are problems, the returned workflow has the readable parts, for [Workflow.Resolve]; it can't run.
//
// Reading an untrusted file is safe: nothing in it runs, and time and memory are bounded.
func Parse(file string, data []byte, find func(name string) (file string, data []byte, err error)) (*Workflow, error) {
	return (&inclusion{find, mostUses}).parse(file, data, nil)
}

// read reads one file without those it uses. The workflow is nil if the content is unreadable.
func read(file string, data []byte) (*Workflow, Problems) {
	if isScript(file) {
		return readScript(filepath.Base(file), data)
	}
	r := &reader{file: filepath.Base(file), lines: map[string]int{}}
	root := r.document(data)
	if root == nil {
		return nil, r.problems
	}
	return r.workflow(root, topFields(), "")
}

// workflow decodes a mapping, as far as its fields have the right form.
func (r *reader) workflow(root *yaml.Node, known []field, script string) (*Workflow, Problems) {
	raw, err := json.Marshal(r.fields(root, "", known, ""))
	w := &Workflow{file: r.file, lines: r.lines}
	if err == nil {
		err = json.Unmarshal(raw, w)
	}
	w.Script = script
	if err != nil {
		w = nil
		if len(r.problems) == 0 { // else it follows from these
			r.add(root, "", err.Error(), "see docs/WORKFLOWS.md")
		}
	}
	return w, r.problems
}

// reader reads the nodes of a file, and remembers their lines.
type reader struct {
	file     string
	lines    map[string]int
	problems Problems
	lost     bool // it can't be told what the file says
	steps    int
	deep     int // lists of steps that the one being read is in
	nodes    int
}

// add reports a problem: at most one for each value.
func (r *reader) add(n *yaml.Node, field, what, remedy string) {
	if slices.ContainsFunc(r.problems, func(p Problem) bool { return field != "" && p.Field == field && p.Line == n.Line }) {
		return
	}
	r.problems.add(Problem{File: r.file, Line: n.Line, Field: field, What: what, Remedy: remedy})
}

// fields reads a mapping with known fields. Path is its place, and kind the kind of step that it is.
func (r *reader) fields(n *yaml.Node, path string, known []field, kind Kind) map[string]any {
	out := map[string]any{}
	for i := 0; i+1 < len(n.Content) && !r.problems.full(); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		r.lines[at] = key.Line
		f := slices.IndexFunc(known, func(f field) bool { return f.name == key.Value })
		switch {
		case f < 0:
			r.add(key, at, "there is no such field", remedyFor(key.Value, names(known)))
		case kind != "" && known[f].kinds != nil && !slices.Contains(known[f].kinds, kind):
			r.add(key, at, fmt.Sprintf("steps of kind %s don't have it", kind), "remove it; it belongs to "+list(known[f].kinds))
		default:
			if v := r.value(value, at, known[f]); v != nil {
				out[key.Value] = v
			}
		}
	}
	for _, f := range known {
		if _, there := r.lines[join(path, f.name)]; !there && f.need && (f.kinds == nil || slices.Contains(f.kinds, kind)) {
			r.add(n, join(path, f.name), "it is missing", "add it: "+string(f.shape))
		}
	}
	return out
}

func remedyFor(name string, known []string) string {
	if near := words.Near(name, known); len(near) > 0 {
		return fmt.Sprintf("did you mean %q?", near[0])
	}
	if len(known) == 0 {
		return "there are none"
	}
	return "there are " + strings.Join(known, ", ")
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }

func list[T ~string](names []T) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}

// value reads a field.
func (r *reader) value(n *yaml.Node, path string, f field) any {
	switch f.shape {
	case isSteps:
		return r.stepList(n, path, f)
	case isFields, isNamed:
		return r.mapping(n, path, f)
	}
	switch bad := f.shape.misfit(n); {
	case bad != nil:
		r.add(bad, path, "it is "+shapeOf(bad), f.shape.remedy(n, bad))
		return f.shape.meant(n)
	case f.shape.fixed() && refers(n):
		r.add(n, path, "it has a reference, and is not one of the fields that take them",
			"write the value itself; references go into prompt, show, to, env, with and over")
	}
	if n.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.entry(n.Content[i], n.Content[i+1], path, f.shape)
		}
	}
	value := jsonOf(n)
	switch mapped, _ := value.(map[string]any); f.shape {
	case isSchema:
		if !r.schema(n, path) {
			return map[string]any{}
		}
	case isSchemas:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i].Value; !r.schema(n.Content[i+1], join(path, key)) {
				mapped[key] = map[string]any{} // any value, so that what refers to it is looked at
			}
		}
	}
	return value
}

// entry reads a value of a mapping with free names.
func (r *reader) entry(key, value *yaml.Node, path string, of shape) {
	at := join(path, key.Value)
	r.lines[at] = key.Line
	if of == isVars && isScalar(value, "!!float") && strings.HasSuffix(value.Value, "0") {
		r.add(value, at, fmt.Sprintf("the number %s is told as %v", value.Value, jsonOf(value)), "quote it, so that it is a text")
	}
}

// schema reports whether a node has the form of a JSON schema, and reports a problem if not.
func (r *reader) schema(n *yaml.Node, path string) bool {
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "it is "+shapeOf(n), "give it a JSON schema such as {type: string}")
		return false
	}
	raw, err := json.Marshal(jsonOf(n))
	if err == nil {
		err = json.Unmarshal(raw, new(Schema))
	}
	if err != nil {
		r.add(n, path, "it is not a JSON schema: "+err.Error(), "give it one such as {type: string}")
	}
	return err == nil
}

// refers reports whether a text, or one of several, contains a reference.
func refers(n *yaml.Node) bool {
	return strings.Contains(n.Value, "${") || slices.ContainsFunc(n.Content, refers)
}

// mapping reads a mapping with known fields, or several of them by name.
func (r *reader) mapping(n *yaml.Node, path string, f field) any {
	if n.Kind != yaml.MappingNode {
		remedy := "give it a mapping with " + strings.Join(names(f.of), ", ")
		if f.shape == isNamed {
			remedy = "give it a mapping by name"
		}
		r.add(n, path, "it is "+shapeOf(n), remedy)
		return nil
	}
	if f.shape == isFields {
		return r.fields(n, path, f.of, "")
	}
	out := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		at := join(path, n.Content[i].Value)
		r.lines[at] = n.Content[i].Line
		out[n.Content[i].Value] = r.mapping(n.Content[i+1], at, field{shape: isFields, of: f.of})
	}
	return out
}

// stepList reads a list of steps. From here on a step is identified by its id.
func (r *reader) stepList(n *yaml.Node, path string, f field) any {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.add(n, path, "it is "+shapeOf(n), "give it "+string(f.shape))
		return nil
	}
	if r.deep++; r.deep > mostDeep {
		r.add(n, path, "there are too many steps within steps",
			fmt.Sprintf("keep to %d levels; move some into a workflow that this one uses", mostDeep))
	}
	defer func() { r.deep-- }()
	var out []any
	for i, c := range n.Content {
		if r.steps++; r.steps == mostSteps+1 {
			r.add(c, path, fmt.Sprintf("the file has more than %d steps", mostSteps), "move some into a workflow that this one uses, or use each")
		}
		if r.problems.full() || r.steps > mostSteps || r.deep > mostDeep {
			return nil
		}
		if c.Kind != yaml.MappingNode {
			r.add(c, path, fmt.Sprintf("step %d is %s", i+1, shapeOf(c)), "give it id: and kind:")
			continue
		}
		out = append(out, r.step(c, join(path, cmp.Or(idOf(c), fmt.Sprint(i+1)))))
	}
	return out
}

// step reads a step. If its kind is unknown its other fields can't be checked. A step without an id gets one
// from its position.
func (r *reader) step(n *yaml.Node, at string) map[string]any {
	r.lines[at] = n.Line
	kind, id := Kind(""), at[strings.LastIndexByte(at, '.')+1:]
	for i := 0; i+1 < len(n.Content); i += 2 {
		if v := n.Content[i+1]; n.Content[i].Value == "kind" {
			if kind = Kind(v.Value); !slices.Contains(kinds(), kind) {
				r.add(v, join(at, "kind"), fmt.Sprintf("there is no kind %q", text.Short(v.Value, 60)),
					remedyFor(v.Value, strings.Split(list(kinds()), ", ")))
				return map[string]any{"id": id}
			}
		}
	}
	step := r.fields(n, at, stepFields(), kind)
	if word, is := step["when"].(string); is {
		step["join"] = word
		delete(step, "when")
	}
	step["id"] = cmp.Or[any](step["id"], id)
	return step
}

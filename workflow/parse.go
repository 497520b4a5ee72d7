package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/inspan/inspan/internal/words"
)

// Bounds of a file, so that reading one stays quick whatever it holds.
const (
	mostBytes = 256 << 10
	mostSteps = 500 // in a file
	mostDeep  = 6   // steps within steps
	mostNodes = 50_000
)

// Problem is something that is wrong with a workflow.
type Problem struct {
	File   string // empty: it is no file
	Line   int    // 0: it is no file
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

// Problems are all that are wrong with a workflow, in the order of its lines.
type Problems []Problem

// Error tells them, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Source finds the file of a workflow by its name.
type Source func(name string) (file string, data []byte, err error)

// Parse reads a workflow from a YAML file of that name, and checks it with all that it uses, which find
// finds; nil: there are none. The error is [Problems].
//
// Reading an untrusted file is safe: nothing in it runs, and time and memory are bounded.
func Parse(file string, data []byte, find Source) (*Workflow, error) {
	w, err := read(file, data)
	if err != nil {
		return nil, err
	}
	if err := w.include(find, nil); err != nil {
		return nil, err
	}
	return w, w.Check()
}

// read reads a file alone.
func read(file string, data []byte) (*Workflow, error) {
	r := &reader{file: filepath.Base(file), lines: map[string]int{}}
	root := r.document(data)
	if root == nil {
		return nil, r.problems
	}
	value := r.fields(root, "", topFields(), "")
	if len(r.problems) > 0 {
		return nil, r.problems
	}
	raw, err := json.Marshal(value)
	w := &Workflow{file: r.file, lines: r.lines}
	if err == nil {
		err = json.Unmarshal(raw, w)
	}
	if err != nil {
		r.add(root, "", err.Error(), "see docs/WORKFLOWS.md")
		return nil, r.problems
	}
	return w, nil
}

// reader reads the nodes of a file, and keeps where they stand.
type reader struct {
	file     string
	lines    map[string]int
	problems Problems
	steps    int
	nodes    int
}

func (r *reader) add(n *yaml.Node, field, what, remedy string) {
	r.problems = append(r.problems, Problem{File: r.file, Line: n.Line, Field: field, What: what, Remedy: remedy})
}

// document is the mapping that a file is; nil: it is none.
func (r *reader) document(data []byte) *yaml.Node {
	var doc, more yaml.Node
	at := &yaml.Node{Line: 1}
	if len(data) > mostBytes {
		r.add(at, "", fmt.Sprintf("the file has %d bytes", len(data)),
			fmt.Sprintf("keep it under %d; move steps into a workflow that it uses", mostBytes))
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF):
		r.add(at, "", "the file is empty", "begin with name: and steps:")
		return nil
	case err != nil:
		line, what := lineOf(err)
		r.add(&yaml.Node{Line: line}, "", "it is not YAML: "+what, "indent with spaces, and quote texts that hold a colon")
		return nil
	case doc.Content[0].Kind != yaml.MappingNode:
		r.add(doc.Content[0], "", "it is "+shapeOf(doc.Content[0]), "begin with name: and steps:")
		return nil
	case dec.Decode(&more) == nil:
		r.add(&more, "", "the file holds a second document", "remove the line --- and what follows it")
		return nil
	}
	return doc.Content[0]
}

// lineOf takes the line out of an error of the YAML reader.
func lineOf(err error) (line int, what string) {
	what = strings.TrimPrefix(err.Error(), "yaml: ")
	if n, _ := fmt.Sscanf(what, "line %d:", &line); n == 1 {
		_, what, _ = strings.Cut(what, ": ")
	}
	return max(line, 1), what
}

// fields reads a mapping with known fields. Path is where it stands, and kind that of a step.
func (r *reader) fields(n *yaml.Node, path string, known []field, kind Kind) map[string]any {
	out := map[string]any{}
	var names []string
	for _, f := range known {
		names = append(names, f.name)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		if _, twice := out[key.Value]; twice {
			r.add(key, at, "it stands here twice", "remove one of them")
			continue
		}
		r.lines[at] = key.Line
		f := slices.IndexFunc(known, func(f field) bool { return f.name == key.Value })
		switch {
		case f < 0:
			r.add(key, at, "there is no such field", remedyFor(key.Value, names))
		case kind != "" && known[f].kinds != nil && !slices.Contains(known[f].kinds, kind):
			r.add(key, at, fmt.Sprintf("steps of kind %s don't have it", kind), "remove it; it belongs to "+list(known[f].kinds))
		default:
			out[key.Value] = r.value(value, at, known[f])
		}
	}
	for _, f := range known {
		if _, there := out[f.name]; !there && f.need && (f.kinds == nil || slices.Contains(f.kinds, kind)) {
			r.add(n, join(path, f.name), "it is missing", "add it: "+string(f.shape))
		}
	}
	return out
}

func remedyFor(name string, known []string) string {
	if near := words.Near(name, known); len(near) > 0 {
		return fmt.Sprintf("did you mean %q?", near[0])
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
	if n.Kind == yaml.AliasNode {
		r.add(n, path, "it is an alias", "write out what it stands for")
		return nil
	}
	wrong := func() any {
		r.add(n, path, "it is "+shapeOf(n), "give it "+string(f.shape))
		return nil
	}
	switch f.shape {
	case isSteps:
		return r.stepList(n, path, f)
	case isFields:
		if n.Kind != yaml.MappingNode {
			return wrong()
		}
		return r.fields(n, path, f.of, "")
	case isNamed:
		return r.named(n, path, f)
	case isTexts:
		if n.Kind != yaml.SequenceNode || slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !isScalar(c, "!!str") }) {
			return wrong()
		}
	case isMap, isTextMap, isSchema, isSchemas:
		if n.Kind != yaml.MappingNode {
			return wrong()
		}
		if f.shape == isTextMap && slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !isScalar(c, "!!str") }) {
			return wrong()
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			r.lines[join(path, n.Content[i].Value)] = n.Content[i].Line
		}
	case isAnything:
	default:
		if !f.shape.fits(n) {
			return wrong()
		}
	}
	return r.plain(n, path)
}

// fits reports whether a scalar has the shape.
func (s shape) fits(n *yaml.Node) bool {
	switch s {
	case isText:
		return isScalar(n, "!!str")
	case isWord:
		return isScalar(n, "!!str") && n.Value != "" && !strings.ContainsAny(n.Value, "\n\r")
	case isBool:
		return isScalar(n, "!!bool")
	case isInteger:
		var i int64
		return isScalar(n, "!!int") && n.Decode(&i) == nil
	case isCount:
		return isInteger.fits(n) || isScalar(n, "!!str") && whole(n.Value) != ""
	case isNumber:
		return isScalar(n, "!!int", "!!float")
	case isTime:
		d, err := time.ParseDuration(n.Value)
		return n.Kind == yaml.ScalarNode && err == nil && d >= 0
	}
	return false
}

func isScalar(n *yaml.Node, tags ...string) bool {
	return n.Kind == yaml.ScalarNode && slices.Contains(tags, n.ShortTag())
}

// named reads a mapping by name of mappings with known fields.
func (r *reader) named(n *yaml.Node, path string, f field) any {
	out := map[string]any{}
	if n.Kind != yaml.MappingNode {
		r.add(n, path, "it is "+shapeOf(n), "give it "+string(f.shape))
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		r.lines[at] = key.Line
		if _, twice := out[key.Value]; twice {
			r.add(key, at, "it stands here twice", "remove one of them")
			continue
		}
		if value.Kind != yaml.MappingNode {
			r.add(value, at, "it is "+shapeOf(value), "give it "+string(isFields))
			continue
		}
		out[key.Value] = r.fields(value, at, f.of, "")
	}
	return out
}

// stepList reads a list of steps. A step is known by its id from here on.
func (r *reader) stepList(n *yaml.Node, path string, f field) any {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.add(n, path, "it is "+shapeOf(n), "give it "+string(f.shape))
		return nil
	}
	if strings.Count(path, ".steps") >= mostDeep {
		r.add(n, path, "there are too many steps within steps",
			fmt.Sprintf("keep to %d levels; move some into a workflow that this one uses", mostDeep))
		return nil
	}
	var out []any
	for i, c := range n.Content {
		if r.steps++; r.steps == mostSteps+1 {
			r.add(c, path, fmt.Sprintf("the file has more than %d steps", mostSteps), "move some into a workflow that this one uses, or use each")
		}
		if c.Kind != yaml.MappingNode {
			r.add(c, path, fmt.Sprintf("step %d is %s", i+1, shapeOf(c)), "give it id: and kind:")
			continue
		}
		id, kind := fmt.Sprint(i+1), Kind("")
		for k := 0; k+1 < len(c.Content); k += 2 {
			switch v := c.Content[k+1]; c.Content[k].Value {
			case "id":
				if v.Value != "" {
					id = v.Value
				}
			case "kind":
				if kind = Kind(v.Value); !slices.Contains(Kinds(), kind) {
					r.add(v, join(join(path, id), "kind"), fmt.Sprintf("there is no kind %q", v.Value),
						remedyFor(v.Value, strings.Split(list(Kinds()), ", ")))
					kind = "unknown"
				}
			}
		}
		at := join(path, id)
		r.lines[at] = c.Line
		if kind == "unknown" {
			continue // what belongs to it can't be told
		}
		out = append(out, r.fields(c, at, stepFields(), kind))
	}
	return out
}

// plain is a node as JSON has it.
func (r *reader) plain(n *yaml.Node, path string) any {
	if r.nodes++; r.nodes == mostNodes {
		r.add(n, path, "the file holds too many values", "make it smaller")
	}
	if r.nodes >= mostNodes {
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.add(n, path, "it holds an alias", "write out what it stands for")
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if _, twice := out[key.Value]; twice {
				r.add(key, join(path, key.Value), "it stands here twice", "remove one of them")
			}
			out[key.Value] = r.plain(n.Content[i+1], join(path, key.Value))
		}
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(n.Content))
		for _, c := range n.Content {
			out = append(out, r.plain(c, path))
		}
		return out
	case yaml.ScalarNode:
		return r.scalar(n, path)
	}
	return nil
}

// scalar is a single value. What is no JSON, such as a date, is its text.
func (r *reader) scalar(n *yaml.Node, path string) any {
	var v any
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool", "!!int", "!!float":
		if err := n.Decode(&v); err != nil {
			r.add(n, path, err.Error(), "quote it if it is a text")
		}
		if _, err := json.Marshal(v); err != nil {
			r.add(n, path, "it is no number that JSON has", "quote it if it is a text")
			return nil
		}
		return v
	}
	return n.Value
}

// shapeOf says what a node is.
func shapeOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "the number " + n.Value
	}
	return fmt.Sprintf("the text %q", words.OneLine(n.Value, 40))
}

package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/base/text"
)

// ErrInvalid says that arguments fit the schema of a tool but can't work, such as a malformed address. See
// [Tool.Effects].
var ErrInvalid = errors.New("its arguments are not valid")

// Check makes the arguments a model wrote fit the schema of the tool and returns them as compact JSON with sorted
// fields: the same bytes are judged, logged and run. Checking them again changes nothing.
//
// Small slips are repaired, by this table and nothing else, and only where the value as written does not fit the
// schema:
//
//	written         wanted    becomes
//	"5"             integer   5
//	" 5 "           integer   5
//	"5.0"           integer   5
//	5.0             integer   5
//	5e2             integer   500
//	"1.5"           number    1.5
//	5               string    "5"
//	1.50            string    "1.50"
//	true            string    "true"
//	"true"          boolean   true
//	"False"         boolean   false
//	"[1,2]"         array     [1,2]
//	"{\"a\":1}"     object    {"a":1}
//	"a"             array     ["a"]
//	7               array     [7]
//	{"a":1}         array     [{"a":1}]
//	null            optional  (left out)
//
// A text that is not a value of its enum becomes the value that differs from it only in case, "-", "_" and
// spaces; an empty one is left out of optional fields. A field in which the model comments on its own call
// (description, explanation ...) is left out if the schema does not know it.
//
// A field that the schema does not know gets the name of one that it does know, if that one is not given:
// file_path becomes path, cmd becomes command, and so on; the list is in aliases.go. If the only missing field
// is a list, fields of its items written next to it become its only item: {"old_string":…} becomes
// {"edits":[{"old_string":…}]}. Missing arguments are an empty object, an object in a string is that object,
// and so is one in {"arguments":…} or {"name":…,"input":…}, if the schema knows none of these fields.
//
// These are errors: fields that appear twice, fields that differ from another or from the schema only in case,
// unknown fields where the schema allows none (unless [Tool.Lenient]), and everything else that the schema forbids.
// The error is written for the model: it names each field with the expected and the given value, and shows a valid
// call.
func (t Tool) Check(args json.RawMessage) (json.RawMessage, error) {
	c, err := t.compile()
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
	}
	resolved, err := c.resolved()
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", t.Name, err)
	}
	v, err := decodeArgs(args)
	if err != nil {
		return nil, t.complain(c, args, []string{err.Error()})
	}
	v = t.mended(c.schema, v)
	f := fitter{root: c.schema, lenient: t.Lenient}
	v = f.fit("", c.schema, v)
	if _, ok := v.(map[string]any); !ok && len(f.problems) == 0 {
		f.problem("", "want object, got %s", describe(v))
	}
	if len(f.problems) == 0 {
		if err := resolved.Validate(native(v)); err != nil {
			f.problem("", "%s", plainError(err))
		}
	}
	if len(f.problems) > 0 {
		return nil, t.complain(c, args, f.problems)
	}
	return marshal(v)
}

// CheckSchema returns the reason why [Tool.Check] could not check any arguments: the schema is invalid, or applies
// itself without end. Nil means it can.
func (t Tool) CheckSchema() error {
	_, err := t.compile()
	return err
}

// mended applies Normalize to arguments.
func (t Tool) mended(s *jsonschema.Schema, v any) any {
	if w, ok := coerce(v, []string{"object"}); ok {
		v = w
	}
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	m = unwrapped(s, m)
	if t.Normalize != nil {
		t.Normalize(m)
	}
	return m
}

// unwrapped returns the arguments within an object that holds a whole call, or its arguments under one name. It is m
// if m may be meant as it is.
func unwrapped(s *jsonschema.Schema, m map[string]any) map[string]any {
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	var inner map[string]any
	for name, v := range m {
		_, known := s.Properties[name]
		switch name {
		case "arguments", "args", "parameters", "params", "input", "action_input", "tool_input":
			if w, ok := coerce(v, []string{"object"}); ok {
				v = w
			}
			object, is := v.(map[string]any)
			if known || !is || inner != nil {
				return m
			}
			inner = object
		case "name", "tool", "tool_name", "function", "action", "type", "id":
			if known {
				return m
			}
		default:
			return m
		}
	}
	if inner == nil || !closed && len(s.Required) == 0 {
		return m
	}
	return inner
}

// complain returns the error for the model, in terms of the schema that the model saw, unless the arguments
// were written for the other one. It stops after five problems: a longer list does not help.
func (t Tool) complain(c *compiled, args json.RawMessage, problems []string) error {
	if form, err := (Tool{Schema: t.ModelSchema}).compile(); t.ModelSchema != nil && err == nil {
		var given map[string]any
		_ = json.Unmarshal(args, &given) // what is no object is of neither form
		f := fitter{root: form.schema, lenient: t.Lenient}
		f.fit("", form.schema, given)
		other := slices.ContainsFunc(slices.Collect(maps.Keys(given)), func(name string) bool {
			return c.schema.Properties[name] != nil && form.schema.Properties[name] == nil
		})
		if len(f.problems) > 0 && given != nil && !other {
			problems = f.problems
		}
		c = form
	}
	if n := len(problems) - 5; n > 0 {
		problems = append(problems[:5:5], fmt.Sprintf("and %d more", n))
	}
	text := fmt.Sprintf("%s was not run, its arguments are not valid:\n- %s", t.Name, strings.Join(problems, "\n- "))
	f := fitter{root: c.schema}
	if example, err := marshal(f.example("", c.schema, 0)); err == nil {
		text += "\nA valid call: " + string(example)
	}
	return errors.New(text)
}

// plainError shortens the validator's message: of the schemas it went through, a model can use only the last, as
// the name of a field.
func plainError(err error) string {
	text, field := err.Error(), ""
	for strings.HasPrefix(text, "validating ") {
		where, rest, ok := strings.Cut(strings.TrimPrefix(text, "validating "), ": ")
		if !ok {
			break
		}
		text, field = rest, where
	}
	_, field, ok := strings.Cut(field, "/properties/")
	if !ok {
		return text
	}
	return strings.ReplaceAll(strings.ReplaceAll(field, "/properties/", "."), "/items", "[]") + ": " + text
}

// fitter walks a value along its schema, repairs it and collects the problems that it can't repair.
type fitter struct {
	root     *jsonschema.Schema
	lenient  bool // see [Tool.Lenient]
	problems []string
}

func (f *fitter) problem(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + ": " + text
	}
	f.problems = append(f.problems, text)
}

// fit returns v as the schema requires it. Values that it can't repair are returned unchanged, and noted as
// problems.
func (f *fitter) fit(path string, s *jsonschema.Schema, v any) any {
	kinds := f.kinds(s, 0)
	if len(kinds) > 0 && !accepts(kinds, v) {
		w, ok := coerce(v, kinds)
		if !ok {
			f.problem(path, "want %s, got %s", strings.Join(kinds, " or "), describe(v))
			return v
		}
		v = w
	}
	if text, ok := v.(string); ok && len(s.Enum) > 0 {
		return f.fitEnum(path, s.Enum, text)
	}
	switch v := v.(type) {
	case map[string]any:
		return f.fitObject(path, f.branch(s, "object"), v)
	case []any:
		return f.fitItems(path, f.branch(s, "array"), v)
	}
	return v
}

// fitEnum returns the value of an enum that a text stands for.
func (f *fitter) fitEnum(path string, values []any, given string) any {
	var names []string
	for _, value := range values {
		name, ok := value.(string)
		if !ok || name == given {
			return given // the validator looks at others
		}
		if names = append(names, name); loose(name) == loose(given) {
			return name
		}
	}
	hint := ""
	if near := text.Nearest(given, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	f.problem(path, "%.40q is none of %s%s", given, strings.Join(names, ", "), hint)
	return given
}

// loose returns a text without the details in which values of one enum never differ.
func loose(text string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(text))
}

func (f *fitter) fitItems(path string, s *jsonschema.Schema, list []any) any {
	if s == nil || s.Items == nil {
		return list
	}
	for i, v := range list {
		list[i] = f.fit(fmt.Sprintf("%s[%d]", path, i), s.Items, v)
	}
	return list
}

func (f *fitter) fitObject(path string, s *jsonschema.Schema, m map[string]any) any {
	if s == nil {
		return m
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	if len(s.Properties) > 0 || s.Properties != nil && closed { // else its fields are anything
		f.refuseVariants(path, s, m)
		dropRemarks(s, m)
		rename(s, m)
		f.gather(s, m)
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		f.fitField(path, s, m, name)
	}
	for _, name := range s.Required {
		if _, ok := m[name]; !ok {
			f.problem(join(path, name), "missing, want %s", f.want(s.Properties[name]))
		}
	}
	return m
}

func (f *fitter) fitField(path string, s *jsonschema.Schema, m map[string]any, name string) {
	prop, known := s.Properties[name]
	switch {
	case known && m[name] == "" && len(prop.Enum) > 0 && !slices.Contains(s.Required, name) && !slices.Contains(prop.Enum, any("")):
		delete(m, name)
	case known && m[name] == nil && !slices.Contains(s.Required, name) && !f.nullable(prop):
		delete(m, name)
	case known:
		m[name] = f.fit(join(path, name), prop, m[name])
	case s.PatternProperties != nil || s.AdditionalProperties == nil:
	case s.AdditionalProperties.Not == nil:
		m[name] = f.fit(join(path, name), s.AdditionalProperties, m[name])
	case f.lenient && text.Nearest(name, slices.Collect(maps.Keys(s.Properties))) == "":
		delete(m, name)
	default:
		f.unknown(path, s, name)
	}
}

func (f *fitter) unknown(path string, s *jsonschema.Schema, name string) {
	names := slices.Sorted(maps.Keys(s.Properties))
	hint := "the fields are " + strings.Join(names, ", ")
	if len(names) == 0 {
		hint = "there are no fields"
	}
	if near := text.Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	f.problem(path, "unknown field %q; %s", name, hint)
}

// dropRemarks removes fields in which a model comments on its own call, if the schema knows no such field and
// allows no others.
func dropRemarks(s *jsonschema.Schema, m map[string]any) {
	if s.AdditionalProperties == nil || s.AdditionalProperties.Not == nil {
		return
	}
	for _, name := range []string{
		"description", "explanation", "justification", "thought", "reasoning", "rationale", "intent", "purpose", "toolCallId", "security_risk",
	} {
		if _, known := s.Properties[name]; !known {
			delete(m, name)
		}
	}
}

// refuseVariants refuses field names that a careless reader could confuse: encoding/json, for one, ignores
// case.
func (f *fitter) refuseVariants(path string, s *jsonschema.Schema, m map[string]any) {
	exact := make(map[string]string, len(m)+len(s.Properties))
	for name := range s.Properties {
		exact[strings.ToLower(name)] = name
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		low := strings.ToLower(name)
		if other, ok := exact[low]; ok && other != name {
			f.problem(path, "field %q must be written %q", name, other)
			delete(m, name)
		}
		exact[low] = name
	}
}

// gather moves fields of an item that were written next to the list into the list.
func (f *fitter) gather(s *jsonschema.Schema, m map[string]any) {
	for _, list := range s.Required {
		items := f.branch(s.Properties[list], "array")
		if _, given := m[list]; given || items == nil || items.Items == nil {
			continue
		}
		item := f.branch(items.Items, "object")
		if item == nil || item.Properties == nil {
			continue
		}
		one := map[string]any{}
		for name, v := range m {
			if _, ours := s.Properties[name]; !ours {
				one[name] = v
			}
		}
		rename(item, one)
		if !knowsAll(item, one) {
			continue
		}
		maps.DeleteFunc(m, func(name string, _ any) bool { _, ours := s.Properties[name]; return !ours })
		m[list] = []any{one}
		return
	}
}

// knowsAll reports whether m has at least one field, and all its fields are in s.
func knowsAll(s *jsonschema.Schema, m map[string]any) bool {
	for name := range m {
		if _, ok := s.Properties[name]; !ok {
			return false
		}
	}
	return len(m) > 0
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// ErrInvalid says of arguments which fit the schema of a tool that no such call can work, as
// of an address that is none. See [Tool.Effects].
var ErrInvalid = errors.New("its arguments are not valid")

// Check makes the arguments a model wrote fit the schema of the tool and
// returns them as compact JSON with sorted fields: what is judged, logged and
// run are the same bytes. Checking them again changes nothing.
//
// Small slips are mended, by this table and nothing else, and only where the
// value as written does not fit the schema:
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
// A text that is none of an enum's values becomes the one that differs from it in case, and
// in "-", "_" and spaces, only; an empty one is left out of optional fields. A remark of the model on its own call (description,
// explanation ...), which the schema does not know, is left out.
//
// A field the schema does not know gets the name of one it does know, if that
// one is not given: file_path becomes path, cmd becomes command, and so on;
// the list is in aliases.go. Fields of the one missing list's items, written
// beside it, become its only item: {"old_string":…} becomes
// {"edits":[{"old_string":…}]}. No arguments at all are an empty object, and an
// object in a string is that object.
//
// Fields that appear twice, that differ from another or from the schema only
// in case, and, but for a [Tool.Lenient], unknown fields where the schema allows none, are errors. So is
// whatever the schema forbids. The error is written for the model: it names
// each field, what was wanted, what came, and shows a valid call.
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
	v = t.mended(v)
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

// CheckSchema returns why [Tool.Check] could check no arguments: the schema is none, or applies
// itself without end. Nil: it can.
func (t Tool) CheckSchema() error {
	_, err := t.compile()
	return err
}

// mended are arguments as Mend has them.
func (t Tool) mended(v any) any {
	if w, ok := coerce(v, []string{"object"}); ok {
		v = w
	}
	if m, ok := v.(map[string]any); ok && t.Mend != nil {
		t.Mend(m)
	}
	return v
}

// complain makes the error for the model, in the terms of the form that it was told of, unless its arguments
// were of the other one. A long list helps nobody, so it stops after five problems.
func (t Tool) complain(c *compiled, args json.RawMessage, problems []string) error {
	if form, err := (Tool{Schema: t.Form}).compile(); t.Form != nil && err == nil {
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

// plainError shortens what the validator says. It names the schemas it went
// through, of which a model can use the last, as the name of a field.
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

// fitter walks a value along its schema, mends it and collects what it cannot
// mend.
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

// fit returns v as the schema wants it. What it cannot make fit is returned
// unchanged, with a problem noted.
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

// fitEnum returns the value of an enum that a text means.
func (f *fitter) fitEnum(path string, values []any, text string) any {
	var names []string
	for _, value := range values {
		name, ok := value.(string)
		if !ok || name == text {
			return text // the validator looks at others
		}
		if names = append(names, name); loose(name) == loose(text) {
			return name
		}
	}
	hint := ""
	if near := Nearest(text, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	f.problem(path, "%.40q is none of %s%s", text, strings.Join(names, ", "), hint)
	return text
}

// loose is a text without what the values of one enum do not differ in.
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
	case f.lenient && Nearest(name, slices.Collect(maps.Keys(s.Properties))) == "":
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
	if near := Nearest(name, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	f.problem(path, "unknown field %q; %s", name, hint)
}

// dropRemarks leaves out what a model says of its own call in fields that the schema does
// not know, where it allows no others.
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

// refuseVariants refuses fields that a careless reader could take for one
// another: encoding/json, for one, ignores case.
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

// gather puts the fields of an item that were written beside the list into
// the list.
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

// knowsAll reports whether all fields of m, at least one, are s's.
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

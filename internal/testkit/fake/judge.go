package fake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Violation is a refusal that concerns the tools or the messages of a request: roles and their order, calls and
// their results, ids, empty texts, thoughts, images. An adapter must never send such a request.
type Violation struct{ Why error }

func (v Violation) Error() string { return v.Why.Error() }

func (v Violation) Unwrap() error { return v.Why }

// Judge fails the test of a fake server that gets a request with a Violation. The zero value fails none. Safe
// for concurrent use.
type Judge struct {
	mu    sync.Mutex
	t     testing.TB
	heard int
}

// Sit makes the judge fail t until it ends.
func (j *Judge) Sit(t testing.TB) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.t = t
	t.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		t.Logf("requests judged: %d", j.heard) // which the runner of the tests sums up
		j.heard = 0
		if j.t == t {
			j.t = nil
		}
	})
}

// Hear fails the test if err is a Violation, and returns err.
func (j *Judge) Hear(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.heard++
	var v Violation
	if errors.As(err, &v) {
		if j.t != nil {
			j.t.Errorf("the vendor refuses a request: %v", err)
		}
	}
	return err
}

// Schema is a JSON Schema as a vendor reads it: an object, or true or false.
type Schema = any

// Walk visits a schema and all schemas in it, outermost first, with the path to each, until visit returns an
// error. It does not enter values such as those of enum and default.
func Walk(s Schema, visit func(path []string, s map[string]any) error) error {
	return walk(nil, s, visit)
}

func walk(path []string, s Schema, visit func([]string, map[string]any) error) error {
	m, is := s.(map[string]any)
	if !is {
		return nil
	}
	if err := visit(path, m); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		at := append(slices.Clip(path), name)
		switch kindOf(name) {
		case "schema":
			if err := walk(at, m[name], visit); err != nil {
				return err
			}
		case "schemas":
			list, _ := m[name].([]any)
			for i, sub := range list {
				if err := walk(append(slices.Clip(at), fmt.Sprint(i)), sub, visit); err != nil {
					return err
				}
			}
		case "named schemas":
			named, _ := m[name].(map[string]any)
			for _, key := range slices.Sorted(maps.Keys(named)) {
				if err := walk(append(slices.Clip(at), key), named[key], visit); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// kindOf returns the form of a keyword's value in draft 2020-12 (https://json-schema.org/draft/2020-12/schema);
// empty means any.
func kindOf(keyword string) string {
	switch keyword {
	case "items", "contains", "additionalProperties", "propertyNames", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties",
		"contentSchema":
		return "schema"
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return "schemas"
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return "named schemas"
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return "number"
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return "integer"
	case "title", "description", "$comment", "pattern", "format", "$ref", "$schema", "$id", "$anchor":
		return "string"
	case "uniqueItems", "deprecated", "readOnly", "writeOnly":
		return "boolean"
	case "enum", "examples":
		return "array"
	case "required":
		return "names"
	case "type":
		return "types"
	}
	return ""
}

// Draft returns the faults of a schema by draft 2020-12, in the words of a common validator, and where. The words
// are empty if it is valid.
func Draft(s Schema) (path []string, words string) {
	_ = Walk(s, func(at []string, m map[string]any) error {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if words = misfit(kindOf(name), m[name]); words != "" {
				path = append(slices.Clip(at), name)
				return errors.New(words)
			}
		}
		return nil
	})
	return path, words
}

func misfit(kind string, v any) string {
	ok := true
	switch kind {
	case "schema":
		ok = isSchema(v)
		kind = "object', 'boolean"
	case "schemas":
		list, is := v.([]any)
		ok = is && len(list) > 0 && !slices.ContainsFunc(list, func(v any) bool { return !isSchema(v) })
		kind = "array"
	case "named schemas":
		var named map[string]any
		if named, ok = v.(map[string]any); ok {
			for _, sub := range named {
				if !isSchema(sub) {
					return python(sub) + " is not of type 'object', 'boolean'"
				}
			}
		}
		kind = "object"
	case "number", "integer":
		var n float64
		n, ok = v.(float64)
		ok = ok && (kind == "number" || n >= 0 && n == float64(int64(n)))
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "array":
		_, ok = v.([]any)
	case "names":
		var list []any
		if list, ok = v.([]any); ok && !distinctTexts(list) {
			return python(v) + " has non-unique elements"
		}
		kind = "array"
	case "types":
		list, is := v.([]any)
		if !is {
			list = []any{v}
		}
		for _, name := range list {
			if !slices.Contains([]any{"object", "array", "string", "number", "integer", "boolean", "null"}, name) {
				return python(v) + " is not valid under any of the given schemas"
			}
		}
		ok = len(list) > 0 && distinctTexts(list)
		kind = "array"
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%s is not of type '%s'", python(v), kind)
}

func isSchema(v any) bool {
	switch v.(type) {
	case map[string]any, bool:
		return true
	}
	return false
}

func distinctTexts(list []any) bool {
	seen := map[string]bool{}
	for _, v := range list {
		s, is := v.(string)
		if !is || seen[s] {
			return false
		}
		seen[s] = true
	}
	return true
}

// python returns a value as the vendors' validators, which are in Python, write it.
func python(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return "'" + v + "'"
	}
	raw, _ := json.Marshal(v) // it came from JSON
	return string(raw)
}

// Context returns a path in OpenAI's form.
func Context(path []string) string {
	quoted := make([]string, len(path))
	for i, p := range path {
		quoted[i] = "'" + p + "'"
	}
	text := strings.Join(quoted, ", ")
	if len(path) == 1 {
		text += ","
	}
	return "(" + text + ")"
}

// Dotted returns a path in the form of Google and Ollama.
func Dotted(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteString("." + p)
	}
	return b.String()
}

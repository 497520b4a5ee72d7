package prompted

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// undoubled returns a call that a model wrote in the doubled braces of a template, as Qwen2.5-Coder copies them,
// {{"name": …, "arguments": {…}}}, with single braces. Surplus braces at the end are dropped.
func undoubled(text string) string {
	rest, is := strings.CutPrefix(strings.TrimSpace(text), "{{")
	if !is {
		return text
	}
	rest = "{" + rest
	var call json.RawMessage
	d := json.NewDecoder(strings.NewReader(rest))
	if d.Decode(&call) != nil || strings.Trim(rest[d.InputOffset():], "} \t\r\n") != "" {
		return text
	}
	return string(call)
}

// argued reports whether a text names an offered tool and has arguments that fit it, in no form that is read as a call.
// Weak models write this as if they had used the tool, and each server and template has forms of its own.
func argued(text string, tools []llm.ToolSpec) bool {
	objects := objectsIn(text)
	return slices.ContainsFunc(tools, func(t llm.ToolSpec) bool {
		if !mentions(text, t.Name) {
			return false
		}
		return tagged(text, t) || strings.Contains(text, t.Name+"(") && byKeyword(text, t) ||
			slices.ContainsFunc(objects, func(o object) bool { return fits(o.fields, t.Schema) && mentions(text[:o.end], t.Name) })
	})
}

// object is an object in a text, or in another.
type object struct {
	fields map[string]any
	end    int // offset after it, or after the outer one
}

// mostObjects bounds the places where a text is searched for an object.
const mostObjects = 64

// objectsIn returns the objects in a text that are not empty.
func objectsIn(text string) (found []object) {
	at := 0
	for range mostObjects {
		n := strings.IndexByte(text[at:], '{')
		if n < 0 {
			break
		}
		at += n
		var v map[string]any
		d := json.NewDecoder(strings.NewReader(text[at:]))
		if d.Decode(&v) != nil {
			at++
			continue
		}
		at += int(d.InputOffset())
		for _, fields := range within(v) {
			found = append(found, object{fields, at})
		}
	}
	return found
}

// within returns the objects in a value, including those in its texts.
func within(v any) (out []map[string]any) {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > 0 {
			out = append(out, v)
		}
		for _, inner := range v {
			out = append(out, within(inner)...)
		}
	case []any:
		for _, inner := range v {
			out = append(out, within(inner)...)
		}
	case string:
		var inner map[string]any
		if json.Unmarshal([]byte(v), &inner) == nil {
			return within(inner)
		}
	}
	return out
}

// byKeyword reports whether a text calls a tool as a function of Python: NAME(field=…).
func byKeyword(text string, t llm.ToolSpec) bool {
	fields, _ := fieldsOf(t.Schema)
	for part := range strings.SplitSeq(text, t.Name+"(") {
		name, _, _ := strings.Cut(part, "=")
		if _, known := fields[strings.TrimSpace(name)]; known {
			return true
		}
	}
	return false
}

// tagged reports whether a text has all required fields of a tool as tags or in tags.
func tagged(text string, t llm.ToolSpec) bool {
	_, required := fieldsOf(t.Schema)
	return len(required) > 0 && !slices.ContainsFunc(required, func(name string) bool {
		return !strings.Contains(text, "<"+name+">") && !strings.Contains(text, ">"+name+"<") && !strings.Contains(text, `name="`+name+`"`)
	})
}

// fits reports whether arguments have all required fields of a schema and no others than its own.
func fits(args map[string]any, schema json.RawMessage) bool {
	fields, required := fieldsOf(schema)
	for name := range args {
		if _, ok := fields[name]; !ok {
			return false
		}
	}
	return !slices.ContainsFunc(required, func(name string) bool { _, ok := args[name]; return !ok })
}

// fieldsOf returns the fields of a schema, and the names of those that are required.
func fieldsOf(schema json.RawMessage) (fields map[string]json.RawMessage, required []string) {
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil, nil
	}
	return s.Properties, s.Required
}

// mentions reports whether a text has a name as a word of its own, or after a namespace, as in functions.bash.
func mentions(text, name string) bool {
	words := strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	return slices.ContainsFunc(words, func(w string) bool { return w == name || strings.HasSuffix(w, "."+name) })
}

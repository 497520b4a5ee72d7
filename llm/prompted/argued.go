package prompted

import (
	"encoding/json"
	"regexp"
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

// fencedObject matches a code block that holds a single object.
var fencedObject = regexp.MustCompile("(?s)```[a-zA-Z]*[ \t]*\r?\n\\s*(\\{.*?\\})\\s*\r?\n[ \t]*```")

// argued reports whether a text holds the arguments of a call without the call: an object in a code block that fits
// an offered tool named in the text before it. Weak models write this as if they had used the tool.
func argued(text string, tools []llm.ToolSpec) bool {
	for _, m := range fencedObject.FindAllStringSubmatchIndex(text, -1) {
		var args map[string]json.RawMessage
		if json.Unmarshal([]byte(text[m[2]:m[3]]), &args) != nil || len(args) == 0 {
			continue
		}
		if slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return fits(args, t.Schema) && mentions(text[:m[0]], t.Name) }) {
			return true
		}
	}
	return false
}

// fits reports whether arguments have all required fields of a schema and no others than its own.
func fits(args map[string]json.RawMessage, schema json.RawMessage) bool {
	var s struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	for name := range args {
		if _, ok := s.Properties[name]; !ok {
			return false
		}
	}
	return !slices.ContainsFunc(s.Required, func(name string) bool { _, ok := args[name]; return !ok })
}

// mentions reports whether a text has a name as a word of its own.
func mentions(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}), name)
}

package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Text Generation Inference makes models call tools by a grammar. Its older versions pass the generated text on as
// the arguments of a call without a name:
//	{"function":{"_name":"read","path":"a.go"}}
//
// A model that wants no tool calls one that was never offered, with its words in the arguments. See
// https://huggingface.co/docs/text-generation-inference/basic_tutorials/using_guidance.

// unwrap takes apart the calls that such a server has streamed.
func (d *decoder) unwrap() {
	d.calls = slices.DeleteFunc(d.calls, func(c *call) bool {
		name, args, ok := unwrapped(c.name, c.args.String())
		if ok {
			c.name = name
			c.args.Reset()
			c.args.WriteString(args)
		}
		words, none := noTool(c.name, c.args.String())
		if none = none && !d.offered(c.name); none {
			d.text.WriteString(words)
		}
		return none
	})
}

// unwrapped returns the name and arguments within args, if there are any.
func unwrapped(name, args string) (string, string, bool) {
	var fields map[string]json.RawMessage
	if !strings.Contains(args, `"_name"`) || json.Unmarshal([]byte(args), &fields) != nil {
		return "", "", false
	}
	if inner := fields["function"]; len(fields) == 1 && inner != nil {
		fields = nil
		if json.Unmarshal(inner, &fields) != nil {
			return "", "", false
		}
	}
	named, isText := asText(fields["_name"])
	if !isText || name != "" && name != named && name != "tools" {
		return "", "", false
	}
	delete(fields, "_name")
	rest, err := json.Marshal(fields)
	return named, string(rest), err == nil
}

// noTool returns the words of a model that wanted no tool.
func noTool(name, args string) (string, bool) {
	field := map[string]string{"no_tool": "content", "notify_error": "error"}[name]
	var fields map[string]any
	if field == "" || json.Unmarshal([]byte(args), &fields) != nil {
		return "", false
	}
	words, isText := fields[field].(string)
	return words, isText
}

// offered reports whether the request has the tool.
func (d *decoder) offered(name string) bool {
	return slices.ContainsFunc(d.req.Tools, func(t llm.ToolSpec) bool { return t.Name == name })
}

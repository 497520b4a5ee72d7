package prompted

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Rules of the prompted form:
//
//   - The tools are the last block of the system prompt, as in the templates of
//     models trained on this form.
//   - Each message depends on itself alone, so that a longer conversation only
//     adds messages.
//   - Calls of other models take the same form. Ids of calls are not shown, as
//     models would learn to invent them: results come in the order of the calls
//     and name the tool.
//   - A result cannot end its own block.

//go:embed tools.md
var toolsPrompt string

// rewrite returns the request without tools, calls and results.
func rewrite(req llm.Request) llm.Request {
	if len(req.Tools) > 0 {
		req.System = append(slices.Clone(req.System), describe(req.Tools))
		req.Tools = nil
	}
	messages := make([]llm.Message, len(req.Messages))
	for i, m := range req.Messages {
		messages[i] = llm.Message{Role: m.Role, Parts: spoken(m.Parts)}
	}
	req.Messages = messages
	return req
}

// describe writes the block of the system prompt that explains the tools.
func describe(tools []llm.ToolSpec) string {
	lines := make([]string, len(tools))
	for i, t := range tools {
		lines[i] = compact(function{"function", signature{t.Name, t.Description, schema(t.Schema)}})
	}
	return strings.Replace(strings.TrimSpace(toolsPrompt), "{{tools}}", strings.Join(lines, "\n"), 1)
}

type function struct {
	Type     string    `json:"type"`
	Function signature `json:"function"`
}

type signature struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// spoken returns parts with calls and results as text. Adjacent texts become one, so that no adapter separates
// them.
func spoken(parts llm.Parts) llm.Parts {
	var out llm.Parts
	for _, p := range parts {
		switch v := p.(type) {
		case llm.Text:
			out = say(out, v.Text)
		case llm.Call:
			out = say(out, compactCall(v))
		case llm.Result:
			out = say(out, response(v))
			for _, p := range v.Parts {
				if image, ok := p.(llm.Image); ok {
					out = append(out, image)
				}
			}
		default:
			out = append(out, p)
		}
	}
	return out
}

// say adds text as a paragraph of its own.
func say(parts llm.Parts, text string) llm.Parts {
	if strings.TrimSpace(text) == "" {
		return parts
	}
	if n := len(parts); n > 0 {
		if t, ok := parts[n-1].(llm.Text); ok {
			parts[n-1] = llm.Text{Text: strings.TrimRight(t.Text, space) + "\n" + text}
			return parts
		}
	}
	return append(parts, llm.Text{Text: text})
}

func compactCall(c llm.Call) string {
	return "<tool_call>\n" + `{"name": ` + compact(c.Name) + `, "arguments": ` +
		string(wire.AppendJSON(nil, wire.Object(c.Args))) + "}\n</tool_call>"
}

// response writes a result. Its first line names the tool.
func response(r llm.Result) string {
	head := `{"name": ` + compact(r.Name)
	if r.Error {
		head += `, "error": true`
	}
	text := strings.ReplaceAll(r.Parts.Text(), "</tool_response>", `<\/tool_response>`)
	return "<tool_response>\n" + head + "}\n" + text + "\n</tool_response>"
}

// schema returns the schema of a tool's arguments, an empty object if it has none.
func schema(raw json.RawMessage) json.RawMessage {
	if raw = wire.Object(raw); string(raw) == "{}" {
		raw = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return raw
}

// compact returns the JSON of a value that has one, without the escapes for HTML.
func compact(v any) string {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // only strings and valid JSON are encoded
	return strings.TrimSuffix(buf.String(), "\n")
}

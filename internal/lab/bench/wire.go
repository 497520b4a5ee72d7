package bench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// The model of a bench speaks the protocols of the harnesses: OpenAI's chat completions and responses,
// Anthropic's messages and Gemini's generateContent, streamed or whole. It returns only one text, or one call
// of the harness's tool for commands.

// question is a request to the model of a bench.
type question struct {
	wire   string // chat, responses, messages or gemini
	model  string
	stream bool
	shell  *offered // nil means no tool runs commands, so it is not about the task
	form   *schema  // of the response, if it must be JSON; only Gemini's is read
}

// offered is a tool.
type offered struct {
	Name       string
	Parameters schema
}

// schema has the parts of a schema that are needed to fill it in.
type schema struct {
	Properties map[string]struct {
		Type any `json:"type"`
	} `json:"properties"`
	Required []string `json:"required"`
}

// wireOf returns the protocol of a path; empty means it is not for a model.
func wireOf(path string) string {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return "chat"
	case strings.HasSuffix(path, "/responses"):
		return "responses"
	case strings.HasSuffix(path, "/messages"):
		return "messages"
	case strings.Contains(strings.ToLower(path), "generatecontent"):
		return "gemini"
	}
	return ""
}

// readQuestion decodes a request of a protocol.
func readQuestion(wire, path string, body []byte) (q question, err error) {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  any    `json:"tools"`
		How    struct {
			Schema *schema `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	err = json.Unmarshal(body, &in)
	q = question{wire: wire, model: in.Model, stream: in.Stream, form: in.How.Schema}
	if wire == "gemini" {
		model, method, _ := strings.Cut(path[strings.LastIndex(path, "/")+1:], ":")
		q.model, q.stream = model, strings.HasPrefix(method, "stream")
	}
	var tools []offered
	collectTools(in.Tools, &tools)
	for _, name := range []string{
		"bash", "shell_command", "exec_command", "run_shell_command", "shell", "execute_command", "terminal",
	} {
		if i := slices.IndexFunc(tools, func(t offered) bool { return strings.EqualFold(t.Name, name) && t.takes() != "" }); i >= 0 {
			q.shell = &tools[i]
			break
		}
	}
	return q, err
}

// collectTools finds all tools with a schema, wherever a protocol puts them.
func collectTools(value any, into *[]offered) {
	switch v := value.(type) {
	case []any:
		for _, one := range v {
			collectTools(one, into)
		}
	case map[string]any:
		name, _ := v["name"].(string)
		for _, key := range []string{"parameters", "input_schema", "parametersJsonSchema"} {
			if raw, err := json.Marshal(v[key]); name != "" && v[key] != nil && err == nil {
				t := offered{Name: name}
				if json.Unmarshal(raw, &t.Parameters) == nil {
					*into = append(*into, t)
				}
				return
			}
		}
		for _, key := range []string{"function", "functionDeclarations", "tools"} {
			collectTools(v[key], into)
		}
	}
}

// takes returns the name of the argument for the command; empty means there is none.
func (t *offered) takes() string {
	for _, name := range []string{"command", "cmd"} {
		if _, ok := t.Parameters.Properties[name]; ok {
			return name
		}
	}
	return ""
}

// args returns the arguments of a call that runs a command. Other required arguments get any value.
func (t *offered) args(command string) map[string]any {
	out, name := t.Parameters.filled(10_000), t.takes()
	if out[name] = command; t.Parameters.kind(name) == "array" {
		out[name] = []string{"bash", "-c", command}
	}
	return out
}

func (s *schema) kind(name string) string {
	return strings.ToLower(fmt.Sprint(s.Properties[name].Type))
}

// filled returns a value for every required field, and the number where that is a number.
func (s *schema) filled(number int) map[string]any {
	out := map[string]any{}
	for _, name := range s.Required {
		switch s.kind(name) {
		case "boolean":
			out[name] = false
		case "number", "integer":
			out[name] = number
		case "array":
			out[name] = []string{}
		default:
			out[name] = "bench"
		}
	}
	return out
}

// beside returns the response to a request that is not about the task.
func (q question) beside() said {
	text := "ok"
	if q.form != nil {
		raw, _ := json.Marshal(q.form.filled(0)) // of strings, numbers and booleans
		text = string(raw)
	}
	return said{text: text, id: "beside"}
}

// said is the model's response: a text, or a call if tool is not empty.
type said struct {
	text, tool, id string
	args           map[string]any
}

// answers are the model's responses in each protocol, one event a line.
//
//go:embed wire.txt
var answers string

// render returns a response, one event a line. A call is always a stream, as harnesses request it so.
func (q question) render(s said) []string {
	kind := "whole"
	switch {
	case s.tool != "":
		kind = "call"
	case q.stream:
		kind = "text"
	}
	args, _ := json.Marshal(s.args) // of strings, numbers and booleans
	lines := text.Filled(answers, q.wire+" "+kind, "$MODEL", q.model, "$TEXT", s.text, "$TOOL", s.tool, "$ID", s.id,
		"$ARGS", json.RawMessage(args), "$QUOTED", string(args))
	return strings.Split(string(lines), "\n")
}

// write sends a response. Half, if not nil, is called in the middle of a stream, and ends it there.
func (q question) write(w http.ResponseWriter, s said, half func()) {
	lines := q.render(s)
	if !q.stream && s.tool == "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, lines[0]) // the client may have disconnected, here and below
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, line := range lines {
		if half != nil && i == len(lines)/2 {
			half()
			return
		}
		line = "data: " + line + "\n\n"
		if rest, ok := strings.CutPrefix(line, `data: {"type":"`); ok { // the protocols with that field name their events twice
			kind, _, _ := strings.Cut(rest, `"`)
			line = "event: " + kind + "\n" + line
		}
		_, _ = io.WriteString(w, line)
		_ = http.NewResponseController(w).Flush()
	}
}

package heal_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/models/heal"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/openai"
)

// server answers requests, and keeps them.
type server struct {
	sent   []map[string]json.RawMessage
	answer func(body map[string]json.RawMessage, text string) (refusal string)
	reply  string
}

const (
	chat = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	msgs = `{"type":"message","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
)

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil || int64(len(data)) != r.ContentLength {
		return nil, err
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(data, &body); err != nil {
		return nil, err
	}
	s.sent = append(s.sent, body)
	status, text := 200, s.reply
	if refusal := s.answer(body, string(data)); refusal != "" {
		status, text = 400, refusal
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text))}, nil
}

func request() llm.Request {
	return llm.Request{
		System: []string{"be brief"}, MaxOutput: 9000, Effort: "high", Session: "s",
		Tools: []llm.ToolSpec{{Name: "read", Schema: []byte(`{"type":"object","properties":{"strict":{"type":"string"}}}`)}, {Name: "odd", Schema: []byte(`{"type":"object","properties":{"a":{"type":"array"}}}`)}},
		Messages: []llm.Message{
			{Role: llm.User, Parts: llm.Say("go")},
			{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "c1", Name: "read", Args: []byte(`{"reasoning_effort":"high"}`)}}},
			{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "c1", Name: "read", Parts: llm.Say("x")}}},
		},
	}
}

// ask returns the causes of repeated requests, and the error.
func ask(t *testing.T, m llm.Model) (retries []string, failed *llm.Error) {
	t.Helper()
	for c, err := range m.Stream(t.Context(), request()) {
		if err != nil {
			failed = llm.AsError(err)
		}
		if c.Retry != nil {
			retries = append(retries, c.Retry.Cause.Message)
		}
	}
	return retries, failed
}

// TestRefusals checks that each kind of refusal heals by the one change that it names, in the words of real servers
// (with their issues), and that the change lasts.
func TestRefusals(t *testing.T) {
	has := func(field string) func(map[string]json.RawMessage, string) bool {
		return func(b map[string]json.RawMessage, _ string) bool { return b[field] != nil }
	}
	holds := func(part string) func(map[string]json.RawMessage, string) bool {
		return func(_ map[string]json.RawMessage, text string) bool { return strings.Contains(text, part) }
	}
	for name, c := range map[string]struct {
		refusal string
		bad     func(map[string]json.RawMessage, string) bool
		field   string
		claude  bool
	}{
		"stream_options":      {`{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`, has("stream_options"), "stream_options", false},
		"its field":           {`{"detail":[{"type":"extra_forbidden","loc":["body","stream_options","include_usage"],"msg":"Extra inputs are not permitted"}]}`, holds("include_usage"), "stream_options", false},
		"reasoning_effort":    {`{"code":"invalid-argument","error":"Model grok-4 does not support parameter reasoning_effort."}`, has("reasoning_effort"), "reasoning_effort", false},
		"in camel case":       {`{"error":{"message":"Argument not supported on this model: reasoningEffort"}}`, has("reasoning_effort"), "reasoning_effort", false},
		"in several words":    {`{"error":{"message":"Stream options are unsupported"}}`, has("stream_options"), "stream_options", false},
		"by its place alone":  {`{"error":{"message":"This is not supported.","param":"stream_options"}}`, has("stream_options"), "stream_options", false},
		"thoughts":            {`{"error":{"message":"Reasoning is not enabled for this model."}}`, has("reasoning_effort"), "reasoning_effort", false},
		"system instructions": {`{"error":{"message":"Developer instruction is not enabled for models/gemma-3-27b-it"}}`, holds(`"role":"system"`), "role system", false},
		"two roles":           {`{"error":{"message":"Only user and assistant roles are supported!"}}`, holds(`"role":"system"`), "role system", false},
		"Claude's length":     {`{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9000 > 4096, which is the maximum allowed number of output tokens for claude-3-opus"}}`, holds(`"max_tokens":9000`), "max_tokens", true},
		"prompt_cache_key":    {`{"message":"body.prompt_cache_key: property 'prompt_cache_key' is unsupported","code":"wrong_api_format"}`, has("prompt_cache_key"), "prompt_cache_key", false},
		"max_tokens":          {`{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`, has("max_tokens"), "max_tokens", false},
		"too many tokens":     {`{"error":{"message":"max_tokens is too large: 9000. This model supports at most 4096 completion tokens","param":"max_tokens"}}`, holds(`"max_tokens":9000`), "max_tokens", false},
		"the system role":     {`{"error":{"message":"System role not supported"}}`, holds(`"role":"system"`), "role system", false},
		"system to developer": {`{"error":{"message":"Invalid role 'system'; use 'developer' with this model","code":"unsupported_value"}}`, holds(`"role":"system"`), "role system", false},
		"reasoning_content": {`{"error":{"message":"The reasoning_content in the thinking mode must be passed back to the API."}}`, func(_ map[string]json.RawMessage, text string) bool {
			return !strings.Contains(text, `"reasoning_content":""`)
		}, "reasoning_content", false},
		"a tool by its place":  {`{"error":{"message":"Invalid schema for function: array schema missing items.","param":"tools[1].function.parameters","code":"invalid_function_parameters"}}`, holds(`"name":"odd"`), "tool odd", false},
		"a tool by its name":   {`{"error":{"message":"Invalid schema for function 'odd': In context=('properties', 'a'), array schema missing items."}}`, holds(`"name":"odd"`), "tool odd", false},
		"Claude's cache marks": {`{"type":"error","error":{"type":"invalid_request_error","message":"system.0.cache_control: Extra inputs are not permitted"}}`, holds("cache_control"), "cache_control", true},
		"Claude's tool":        {`{"type":"error","error":{"type":"invalid_request_error","message":"tools.1.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12"}}`, holds(`"name":"odd"`), "tool odd", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{reply: chat, answer: func(b map[string]json.RawMessage, text string) string {
				if c.bad(b, text) {
					return c.refusal
				}
				return ""
			}}
			path := filepath.Join(t.TempDir(), "facts", "f.json")
			model := func() llm.Model {
				at := llm.Endpoint{ID: "m", BaseURL: "http://x/v1", Dialect: "moonshot", HTTP: &heal.Transport{Next: s}}
				if name != "prompt_cache_key" {
					at.Dialect = "vllm"
				}
				var m llm.Model = (*openai.Model)(&at)
				if c.claude {
					at.Dialect, s.reply = "anthropic", msgs
					m = (*anthropic.Model)(&at)
				}
				return &heal.Model{Model: m, Facts: &heal.Facts{Path: path, Route: "p/m"}}
			}
			retries, err := ask(t, model())
			if err != nil || len(retries) != 1 || len(s.sent) != 2 {
				t.Fatalf("%d requests, retries %q, %v", len(s.sent), retries, err)
			}
			if arguments, _ := json.Marshal(s.sent[1]["messages"]); !strings.Contains(string(arguments), "reasoning_effort") {
				t.Errorf("what the model has written was changed: %s", arguments)
			}
			all := heal.All(filepath.Dir(path))
			if len(all) != 1 || all[0].Route != "p/m" || len(all[0].List()) != 1 || all[0].List()[0].Field != c.field {
				t.Fatalf("kept: %+v", all)
			}
			if words := all[0].List()[0].Words(); !strings.Contains(retries[0], words) || all[0].List()[0].Said == "" {
				t.Errorf("told %q, want %q", retries[0], words)
			}
			if retries, err = ask(t, model()); err != nil || len(retries) != 0 || len(s.sent) != 3 {
				t.Errorf("another program sends %d requests, retries %q, %v", len(s.sent)-2, retries, err)
			}
			data, _ := os.ReadFile(path)
			old := strings.Replace(string(data), time.Now().Format("2006-01"), "2020-01", 1)
			if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
				t.Fatal(err)
			}
			if retries, err = ask(t, model()); err != nil || len(retries) != 1 {
				t.Errorf("an old fact: retries %q, %v", retries, err)
			}
		})
	}
}

// TestGemini checks that a system instruction that Gemini refuses goes into the first message, and what makes a model
// think goes away.
func TestGemini(t *testing.T) {
	for refusal, part := range map[string]string{
		`{"error":{"code":400,"message":"Developer instruction is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`: `"systemInstruction"`,
		`{"error":{"code":400,"message":"Thinking level is not supported for this model.","status":"INVALID_ARGUMENT"}}`:                `"thinkingLevel"`,
		`{"error":{"code":400,"message":"Thinking is not enabled for models/gemini-2.0-flash","status":"INVALID_ARGUMENT"}}`:            `"thinkingConfig"`,
	} {
		s := &server{answer: func(_ map[string]json.RawMessage, text string) string {
			if strings.Contains(text, part) {
				return refusal
			}
			return ""
		}, reply: `data: {"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}` + "\n\n"}
		at := llm.Endpoint{ID: "gemini-3-pro", BaseURL: "http://x", HTTP: &heal.Transport{Next: s}}
		retries, err := ask(t, &heal.Model{Model: (*gemini.Model)(&at), Facts: &heal.Facts{}})
		if err != nil || len(retries) != 1 || len(s.sent) != 2 {
			t.Errorf("%s: %d requests, retries %q, %v", part, len(s.sent), retries, err)
			continue
		}
		if all := string(s.sent[1]["systemInstruction"]) + string(s.sent[1]["contents"]); strings.Count(all, "be brief") != 1 {
			t.Errorf("%s: %s", part, all)
		}
	}
}

// TestFinal checks that a refusal is final if it names nothing that a request can do without, that no refusal heals
// twice by the same fact, and that a change that did not help is not kept.
func TestFinal(t *testing.T) {
	for refusal, requests := range map[string]int{
		`{"error":{"message":"messages.0.content: text content blocks must be non-empty"}}`:                                      1,
		`{"error":{"message":"Invalid value for 'model'"}}`:                                                                      1,
		`{"error":{"message":"The strict reasoning of a request must be about what it thinks"}}`:                                 1,
		`{"error":{"message":"messages with role 'tool' must be a response to a preceding message with 'tool_calls', invalid"}}`: 1,
		`not json, and unsupported`: 1,
		`{"error":{"message":"stream_options is unsupported","type":"invalid_request_error"}}`: 2,
	} {
		s := &server{reply: chat, answer: func(map[string]json.RawMessage, string) string { return refusal }}
		facts := &heal.Facts{}
		at := llm.Endpoint{ID: "m", BaseURL: "http://x/v1", HTTP: &heal.Transport{Next: s}}
		_, err := ask(t, &heal.Model{Model: (*openai.Model)(&at), Facts: facts})
		if err == nil || len(s.sent) != requests || len(facts.List()) != 0 {
			t.Errorf("%s: %d requests, %v, kept %+v", refusal, len(s.sent), err, facts.List())
		}
	}
}

// TestUnknownNames checks that a refusal which nothing heals is asked for once, and says which field it is about, also
// where its words don't.
func TestUnknownNames(t *testing.T) {
	for refusal, want := range map[string]string{
		`{"error":{"message":"Invalid value.","type":"invalid_request_error","param":"messages[1].content"}}`:                                                "(in messages[1].content)",
		`{"detail":[{"type":"string_type","loc":["body","messages",1,"user","content"],"msg":"Input should be a valid string"}]}`:                            "messages.1.user.content",
		`[{"error":{"code":400,"message":"Invalid argument.","details":[{"fieldViolations":[{"field":"contents[0].parts[0].data","description":"bad"}]}]}}]`: "(in contents[0].parts[0].data)",
		`{"error":{"message":"messages.0.content: blank","param":"messages.0.content"}}`:                                                                     "messages.0.content: blank",
		`{"error":{"message":"The quota of this project does not cover a request like that","param":null}}`:                                                  "does not cover a request like that",
	} {
		s := &server{reply: chat, answer: func(map[string]json.RawMessage, string) string { return refusal }}
		facts := &heal.Facts{}
		at := llm.Endpoint{ID: "m", BaseURL: "http://x/v1", HTTP: &heal.Transport{Next: s}}
		retries, err := ask(t, &heal.Model{Model: (*openai.Model)(&at), Facts: facts})
		if err == nil || !strings.HasSuffix(strings.TrimRight(err.Message, "."), want) && !strings.Contains(err.Message, want) || strings.Count(err.Message, "messages.0") > 1 ||
			len(retries) > 0 || len(s.sent) != 1 || len(facts.List()) != 0 {
			t.Errorf("%s: %v, %d requests, retries %q, kept %+v", refusal, err, len(s.sent), retries, facts.List())
		}
	}
}

// TestToolIsTold checks that the model hears once which tool it lacks.
func TestToolIsTold(t *testing.T) {
	s := &server{reply: chat, answer: func(_ map[string]json.RawMessage, text string) string {
		if strings.Contains(text, `"name":"odd"`) {
			return `{"error":{"message":"invalid schema","param":"tools[1].function.parameters"}}`
		}
		return ""
	}}
	at := llm.Endpoint{ID: "m", BaseURL: "http://x/v1", HTTP: &heal.Transport{Next: s}}
	if _, err := ask(t, &heal.Model{Model: (*openai.Model)(&at), Facts: &heal.Facts{}}); err != nil {
		t.Fatal(err)
	}
	if text := string(s.sent[1]["messages"]); strings.Count(text, "can't be called with this model") != 1 || !strings.Contains(text, ": odd.") {
		t.Errorf("the model hears %s", text)
	}
}

// TestOthers checks that requests which no model of this package made pass unchanged.
func TestOthers(t *testing.T) {
	s := &server{reply: "{}", answer: func(map[string]json.RawMessage, string) string { return "" }}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://x", strings.NewReader(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&heal.Transport{Next: s}).RoundTrip(r)
	if err != nil || string(s.sent[0]["a"]) != "1" {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

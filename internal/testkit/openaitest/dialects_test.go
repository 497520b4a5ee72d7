package openaitest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// TestValidateAs checks that the fake objects to what each server refuses.
func TestValidateAs(t *testing.T) {
	const (
		user    = `{"role":"user","content":"hi"}`
		call    = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result  = `{"role":"tool","tool_call_id":"call_1","content":"x"}`
		named   = `{"role":"tool","tool_call_id":"call_1","name":"f","content":"x"}`
		system  = `{"role":"system","content":"x"}`
		picture = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
		image   = `{"role":"user","content":[` + picture + `]}`
		one     = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}`
		tools   = `"tools":[` + one + `],`
		both    = `{"role":"assistant","content":"x","reasoning_content":"y","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		same    = `{"role":"assistant","content":null,"reasoning_content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		thought = `{"role":"assistant","content":"x","reasoning_content":"hm"}`
	)
	nine := func(s string) string { return strings.ReplaceAll(s, "call_1", "abcdefghi") }
	messages := func(list ...string) string { return `"messages":[` + strings.Join(list, ",") + `]` }
	for _, c := range []struct{ dialect, body, want string }{
		{"openai", messages(user, call, result), ""},
		{"openai", messages(user, thought, user), "reasoning_content' is unsupported"},
		{"openai", messages(user, call, named), "name' is unsupported"},
		{"", messages(user, thought, user), ""},
		{"mistral", messages(user, nine(call), nine(named)), ""},
		{"mistral", messages(user, call, result), "length of 9"},
		{"mistral", messages(user, nine(call), nine(result), user), "Unexpected role 'user' after role 'tool'"},
		{"mistral", messages(user, `{"role":"assistant","content":"x"}`), "Expected last role"},
		{"mistral", messages(user, thought, user), "reasoning_content' is unsupported"},
		{"mistral", `"stream_options":{},` + messages(user), "stream_options"},
		{"mistral", `"max_completion_tokens":1,` + messages(user), "max_completion_tokens"},
		{"vllm", `"prompt_cache_key":"x",` + messages(user), "prompt_cache_key"},
		{"vllm", messages(user, call, named), ""},
		{"deepseek", messages(user, call, result), "reasoning_content in the thinking mode must be passed back"},
		{"moonshot", messages(user, strings.Replace(call, `"content"`, `"reasoning_content":"","content"`, 1), result), ""},
		{"moonshot", `"reasoning_effort":"low",` + messages(user), "reasoning_effort"},
		{"litellm", messages(user, call, result), "expects the `tools=` param"},
		{"groq", messages(user, thought, user), "reasoning_content' is unsupported"},
		{"deepseek", tools + messages(user, `{"role":"assistant","content":"x"}`, user), "must be passed back"},
		{"deepseek", messages(user, `{"role":"assistant","content":"x"}`, user), ""},
		{"deepseek", messages(image), "unknown variant `image_url`"},
		{"mistral", messages(image, image), "roles must alternate"},
		{"mistral", messages(`{"role":"user","content":[` + strings.Repeat(picture+",", 8) + picture + `]}`), "Too many images: 9"},
		{"mistral", messages(user, `{"role":"assistant","content":" "}`, user), "text content is empty"},
		{"moonshot", messages(user, same, result, user, same, result), "call_1 is duplicated"},
		{"openai", messages(user, call, result, user, call, result), ""},
		{"openai", messages(user, `{"role":"assistant","content":"x","tool_calls":[]}`), "empty array"},
		{"openai", tools + messages(user), ""},
		{"openai", `"tools":[` + one + `,` + one + `],` + messages(user), "must be unique"},
		{"azure", messages(strings.Repeat(user+`,{"role":"assistant","content":"x"},`, 1024) + user), "maximum length 2048"},
		{"openai", messages(`{"role":"developer","content":"x"}`, user), ""},
		{"lmstudio", messages(`{"role":"developer","content":"x"}`, user), "role: developer"},
		{"lmstudio", messages(system), "No user query found"},
		{"lmstudio", tools + `"tool_choice":{"type":"function"},` + messages(user), "Invalid tool_choice type"},
		{"zai", messages(system), "No user query found"},
		{"vllm", messages(user, system), "must be at the beginning"},
		{"vllm", messages(user, user), "roles must alternate"},
		{"vllm", messages(system, user, call, named, user), ""},
		{"llamacpp", messages(user, `{"role":"assistant","content":"x"}`), "prefill is incompatible"},
		{"llamacpp", messages(user, both, result), ""},
		{"groq", `"tools":[` + strings.Repeat(one+",", 128) + one + `],` + messages(user), "array too long"},
		{"openrouter", `"session_id":"x","reasoning":{"effort":"low"},` + messages(user), ""},
	} {
		err := ValidateAs(c.dialect, []byte(`{"model":"m",`+c.body+`}`))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.dialect, c.body, err, c.want)
		}
	}
}

// TestGPTOSS checks that a thought and a text of one message with calls are too much for gpt-oss.
func TestGPTOSS(t *testing.T) {
	body := `{"model":"gpt-oss-20b","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x","reasoning_content":"y","tool_calls":[` +
		`{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`
	for dialect, want := range map[string]string{"llamacpp": "both content and thinking", "lmstudio": "both content and thinking", "litellm": "tools="} {
		if err := ValidateAs(dialect, []byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dialect, err)
		}
	}
}

// TestForms checks the forms in which errors and lists come.
func TestForms(t *testing.T) {
	refuse := func(*http.Request, []byte) Answer { return Answer{Status: 400, Message: "no", Type: "t"} }
	for _, c := range []struct{ dialect, method, path, want string }{
		{"vllm", "POST", "/chat/completions", `"object":"error"`},
		{"tgi", "POST", "/chat/completions", `{"error":"no","error_type":"t"}`},
		{"groq", "POST", "/chat/completions", `{"error":{"code":null,"message":"no"`},
		{"groq", "GET", "/models", `"context_window":7`},
		{"groq", "GET", "/nothing", `404`},
		{"tgi", "GET", "/models", `404`},
		{"together", "GET", "/models", `[{`},
	} {
		s := &Server{Dialect: c.dialect, Answer: refuse, Models: []llm.Info{{Model: "m", Window: 7}}}
		req, err := http.NewRequestWithContext(t.Context(), c.method, Start(t, s)+c.path,
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s of %s: %s, %v, want %s", c.method, c.path, c.dialect, body, err, c.want)
		}
	}
}

package openaitest

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/llm"
)

// TestValidateAs holds that the fake objects to what each server does.
func TestValidateAs(t *testing.T) {
	const (
		user    = `{"role":"user","content":"hi"}`
		call    = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		result  = `{"role":"tool","tool_call_id":"call_1","content":"x"}`
		named   = `{"role":"tool","tool_call_id":"call_1","name":"f","content":"x"}`
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
		{"openrouter", `"session_id":"x","reasoning":{"effort":"low"},` + messages(user), ""},
	} {
		err := ValidateAs(c.dialect, []byte(`{"model":"m",`+c.body+`}`))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %q", c.dialect, c.body, err, c.want)
		}
	}
}

// TestForms holds the forms in which errors and lists come.
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

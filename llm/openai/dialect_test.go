package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/llm"
)

func TestDialectOf(t *testing.T) {
	for _, c := range []struct{ base, dialect, want string }{
		{"", "", "openai"},
		{"https://api.openai.com/v1", "", "openai"},
		{"https://eu.api.openai.com/v1", "", "openai"},
		{"https://my.openai.azure.com/openai/v1", "", "azure"},
		{"https://my.services.ai.azure.com/openai/v1/", "", "azure"},
		{"https://openrouter.ai/api/v1", "", "openrouter"},
		{"https://api.z.ai/api/coding/paas/v4", "", "zai"},
		{"https://api.x.ai/v1", "", "xai"},
		{"https://api.together.xyz/v1", "", "together"},
		{"http://localhost:8000/v1", "vllm", "vllm"},
		{"https://proxy.example/v1", "mistral", "mistral"}, // the name goes before the host
		{"https://api.openai.com/v1", "tgi", "tgi"},
		{"http://localhost:8000/v1", "", ""},
		{"https://evil-openai.com/v1", "", ""},
		{"https://api.openai.com.evil.example/v1", "", ""},
		{"https://evil.example/api.openai.com", "", ""},
		{"://", "", ""},
	} {
		got, err := DialectOf(llm.Endpoint{BaseURL: c.base, Dialect: c.dialect})
		if err != nil || got.Name != c.want {
			t.Errorf("%q as %q is %q, %v, want %q", c.base, c.dialect, got.Name, err, c.want)
		}
	}
	if _, err := DialectOf(llm.Endpoint{Dialect: "opnai"}); err == nil || !strings.Contains(err.Error(), "openrouter") {
		t.Errorf("got %v, want an error that tells what is known", err)
	}
}

// TestTable checks that each row can be used as it is, or names what it lacks.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, row := range dialects() {
		if row.Name == "" || seen[row.Name] {
			t.Errorf("the name %q is empty or there twice", row.Name)
		}
		seen[row.Name] = true
		if row.Local == (len(row.hosts) > 0) {
			t.Errorf("%s is at home and at %v", row.Name, row.hosts)
		}
		if row.BaseURL == "" {
			if _, e := ask(t, &Model{ID: "m", Dialect: row.Name}, greeting()); e == nil ||
				e.Kind != llm.KindInvalid || !strings.Contains(e.Message, "base URL") {
				t.Errorf("%s without a base URL: %v", row.Name, e)
			}
			continue
		}
		if !row.Local && !row.at(row.BaseURL) {
			t.Errorf("%s is not at %s", row.Name, row.BaseURL)
		}
		var url string
		m := &Model{ID: "m", Dialect: row.Name, HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
			url = r.URL.String()
			return nil, http.ErrHandlerTimeout
		})}
		if _, e := ask(t, m, greeting()); e == nil || url != row.BaseURL+"/chat/completions" {
			t.Errorf("%s asks %s, %v", row.Name, url, e)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestUnknownDialect(t *testing.T) {
	at := llm.Endpoint{ID: "m", Provider: "mine", Dialect: "opnai", BaseURL: "http://127.0.0.1:1"}
	chat, responses := Model(at), Responses(at)
	for _, m := range []llm.Model{&chat, &responses} {
		if _, e := ask(t, m, greeting()); e == nil || e.Kind != llm.KindInvalid ||
			e.Provider != "mine" || !strings.Contains(e.Message, `"opnai"`) {
			t.Errorf("got %v", e)
		}
		if got := m.Info().Route(); got != "mine/m" {
			t.Errorf("Route = %q", got)
		}
	}
	if _, err := Discover(t.Context(), at); llm.AsError(err).Kind != llm.KindInvalid {
		t.Errorf("got %v", err)
	}
}

// worked is a conversation with a call in it, and no tools any more.
func worked() llm.Request {
	return llm.Request{
		Session: "s-1", MaxOutput: 99, Effort: "high",
		Messages: []llm.Message{
			{Role: llm.User, Parts: llm.Say("What time is it?")},
			{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "call_1", Name: "now", Args: json.RawMessage(`{}`)}}},
			{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "call_1", Name: "now", Parts: llm.Say("noon")}, llm.Text{Text: "And?"}}},
		},
	}
}

func everyoneBut(name string) []string {
	list := []string{""}
	for _, d := range Dialects() {
		if d.Name != name {
			list = append(list, d.Name)
		}
	}
	return list
}

// TestQuirks checks how the requests for each server differ.
func TestQuirks(t *testing.T) {
	bridge := `{"role":"assistant","content":"I have the results."},{"role":"user","content":"And?"}`
	quirks := []struct {
		what, text string
		dialects   []string // those whose requests hold the text
	}{
		{"new limit", `"max_completion_tokens":99`, []string{"openai", "azure", "groq", "cerebras"}},
		{"cache key", `"prompt_cache_key":"s-1"`, []string{"openai", "azure", "mistral", "moonshot"}},
		{"session", `"session_id":"s-1"`, []string{"openrouter"}},
		{"empty thought", `"reasoning_content":""`, []string{"deepseek", "moonshot"}},
		{"name of a result", `"role":"tool","tool_call_id":"call_1","name":"now"`, []string{"vllm", "llamacpp", "lmstudio", "tgi"}},
		{"bridge", bridge, []string{"mistral"}},
		{"mock tools", `"tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],` +
			`"tool_choice":"none"`, []string{"litellm", ""}},
		{"usage asked for", `"stream_options":{"include_usage":true}`, everyoneBut("mistral")},
		{"effort as an object", `"reasoning":{"effort":"high"}`, []string{"openrouter"}},
		{"thinking switch", `"thinking":{"type":"enabled"}`, []string{"zai"}},
	}
	for _, q := range quirks {
		for _, d := range append(Dialects(), Dialect{}) {
			at := Model{ID: "m", Dialect: d.Name, BaseURL: "http://localhost/v1"}
			if got, want := strings.Contains(string(encoded(&at, worked())), q.text), slices.Contains(q.dialects, d.Name); got != want {
				t.Errorf("%s at %q: %v, want %v", q.what, d.Name, got, want)
			}
		}
	}
}

func TestCacheMark(t *testing.T) {
	for _, c := range []struct {
		dialect, id string
		want        bool
	}{{"openrouter", "anthropic/claude-sonnet-5", true}, {"openrouter", "openai/gpt-5", false}, {"vllm", "anthropic/x", false}} {
		got := string(encoded(&Model{ID: c.id, Dialect: c.dialect}, worked()))
		if strings.Contains(got, `,"cache_control":{"type":"ephemeral"}`) != c.want {
			t.Errorf("%s at %s: %s", c.id, c.dialect, got)
		}
	}
}

// TestMistral checks the requirements of Mistral's models on any server: their templates refuse what the vendor's API
// refuses.
func TestMistral(t *testing.T) {
	for _, m := range []*Model{
		{ID: "mistral-large-latest", Dialect: "mistral"},
		{ID: "any", BaseURL: "https://api.mistral.ai/v1"},
		{ID: "mistralai/Devstral-Small-2", Dialect: "vllm"},
		{ID: "mistralai/ministral-8b", Dialect: "openrouter"},
		{ID: "Codestral.gguf", BaseURL: "http://localhost:9/v1"},
	} {
		got := string(encoded(m, worked()))
		if !strings.Contains(got, `"I have the results."`) || strings.Contains(got, `"call_1"`) {
			t.Errorf("%s: %s", m.ID, got)
		}
	}
	if got := string(encoded(&Model{ID: "ft:gpt-5:mistral"}, worked())); strings.Contains(got, "I have the results.") {
		t.Error(got)
	}
}

// TestMistralThoughts checks that thoughts which come as parts of the content go back as such.
func TestMistralThoughts(t *testing.T) {
	thinking := func(s string) string {
		return delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"` + s + `"}]}]`)
	}
	r, shown, err := decodeAll(strings.NewReader(thinking("h") + thinking("m") +
		delta(`"content":[{"type":"text","text":"Look"}]`) + delta(`"content":"ing."`) +
		delta(`"tool_calls":[{"index":0,"id":"abcdefghi","function":{"name":"now","arguments":"{}"}}]`) + finish(`"tool_calls"`) + done))
	if err != nil || shown != "hmLooking." || r.Parts.Text() != "Looking." {
		t.Fatalf("got %+v, %q, %v", r.Parts, shown, err)
	}
	m := &Model{Provider: "p", ID: "m", Dialect: "mistral"}
	got := string(encoded(m, llm.Request{Messages: []llm.Message{{Role: llm.Assistant, Parts: r.Parts}}}))
	want := `"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Looking."}],` +
		`"tool_calls":[{"id":"abcdefghi"`
	if !strings.Contains(got, want) {
		t.Errorf("got %s, want %s in it", got, want)
	}
}

// TestAzure checks that its v1 API is reached with deployments as models.
func TestAzure(t *testing.T) {
	server := &openaitest.Server{Dialect: "azure", Key: "k-azure", Answer: func(r *http.Request, _ []byte) openaitest.Answer {
		return openaitest.Answer{Parts: llm.Say(r.URL.Path)}
	}}
	m := &Model{
		ID: "gpt-5", BaseURL: "https://res.openai.azure.com/openai/v1/", HTTP: openaitest.Transport(t, server),
		Key: func(context.Context) (string, error) { return "k-azure", nil },
	}
	m.BaseURL = strings.Replace(m.BaseURL, "https:", "http:", 1) // the fake has no certificate
	r, e := ask(t, m, greeting())
	if e != nil || r.Parts.Text() != "/openai/v1/chat/completions" {
		t.Errorf("got %+v, %v", r.Parts, e)
	}
	if i := m.Info(); i.Window == 0 || i.Provider != "openai" {
		t.Errorf("got %+v", i)
	}
}

// TestFirstByte checks that a server which reads a long prompt has the time to, and that OpenAI's own do not get it.
func TestFirstByte(t *testing.T) {
	for dialect, want := range map[string]time.Duration{
		"openai": 2 * time.Minute,
		"azure":  2 * time.Minute, "llamacpp": 5 * time.Minute, "": 5 * time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &Model{ID: "m", Dialect: dialect, BaseURL: "http://x", HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			})}
			start := time.Now()
			if _, e := ask(t, m, greeting()); e == nil || e.Phase != "first byte" || time.Since(start) != want {
				t.Errorf("%q: %v after %v, want %v", dialect, e, time.Since(start), want)
			}
		})
	}
}

// TestConversationHeader checks that xAI learns by a header which conversation a request belongs to.
func TestConversationHeader(t *testing.T) {
	for _, c := range []struct{ dialect, session, want string }{{"xai", "s-1", "s-1"}, {"xai", "", ""}, {"vllm", "s-1", ""}} {
		var got string
		m := &Model{ID: "grok", Dialect: c.dialect, HTTP: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.Header.Get("X-Grok-Conv-Id")
			return nil, http.ErrHandlerTimeout
		})}
		if _, e := ask(t, m, llm.Request{Session: c.session, Messages: greeting().Messages}); e == nil {
			t.Error("got a reply")
		}
		if got != c.want {
			t.Errorf("%s with session %q sends %q", c.dialect, c.session, got)
		}
	}
}

// TestEffort checks how each server is asked for reasoning, and which models are not.
func TestEffort(t *testing.T) {
	field := `"reasoning_effort":"high"`
	cases := []struct {
		dialect, id string
		tools       bool
		want        string // empty means nothing
	}{
		{"openai", "gpt-5", true, field},
		{"openai", "gpt-5.2", true, field},
		{"openai", "gpt-5.4", true, ""},
		{"openai", "gpt-5.4", false, field},
		{"openai", "gpt-6-sol", true, ""},
		{"openai", "gpt-4.1", false, ""},
		{"openai", "gpt-5-chat-latest", false, ""},
		{"openai", "o3", true, field},
		{"azure", "gpt-5", true, field},
		{"azure", "my-deployment", true, ""},
		{"vllm", "gpt-oss", true, field},
		{"openrouter", "x/y", true, `"reasoning":{"effort":"high"}`},
		{"groq", "openai/gpt-oss-120b", true, field},
		{"groq", "qwen/qwen3-32b", true, ""},
		{"mistral", "mistral-medium-3-5", true, field},
		{"xai", "grok-4.7", true, field},
		{"xai", "grok-4.20-non-reasoning", true, ""},
		{"moonshot", "kimi-k2.6", true, ""},
		{"zai", "glm-5.2", true, `"thinking":{"type":"enabled"}`},
		{"deepseek", "deepseek-flash", true, field},
	}
	for _, c := range cases {
		req := llm.Request{Effort: "high"}
		if c.tools {
			req.Tools = []llm.ToolSpec{{Name: "now"}}
		}
		got := string(encoded(&Model{ID: c.id, Dialect: c.dialect}, req))
		asked := strings.Contains(got, "reasoning") && !strings.Contains(c.id, "reasoning") || strings.Contains(got, "thinking")
		if !strings.Contains(got, c.want) || asked != (c.want != "") {
			t.Errorf("%s at %s with tools %v: %s, want %s", c.id, c.dialect, c.tools, got, c.want)
		}
	}
	if got := string(encoded(&Model{ID: "mistral-small", Dialect: "mistral"}, llm.Request{Effort: "low"})); strings.Contains(got, "effort") {
		t.Error(got)
	}
}

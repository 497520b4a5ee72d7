package profile_test

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/llm"
)

func TestFor(t *testing.T) {
	weak := profile.Profile{Edit: "lines", Schema: "plain", Tools: "native"}
	none := profile.Profile{Edit: "lines", Schema: "plain", Tools: "prompt"}
	strong := profile.Profile{Edit: "replace", Schema: "full", Tools: "native"}
	patches := profile.Profile{Edit: "patch", Schema: "full", Tools: "native"}
	for want, routes := range map[profile.Profile][]string{
		weak: {
			"ollama/llama3.2", "ollama/llama3.1:8b", "hf/meta-llama/Llama-3.2-3B-Instruct", "ollama/qwen2.5-coder:7b", "ollama/qwen2.5:1.5b",
			"vllm/Qwen/Qwen3-8B", "ollama/qwen3:0.6b", "ollama/gemma3:12b", "ollama/phi4", "hf/mistralai/Mistral-7B-Instruct-v0.3", "ollama/mistral",
		},
		none: {
			"ollama/gemma2:9b", "hf/google/gemma-2-9b-it", "ollama/phi3:mini", "hf/microsoft/Phi-3.5-mini-instruct", "ollama/codellama:34b",
			"ollama/deepseek-r1:14b", "hf/deepseek-ai/DeepSeek-R1-Distill-Llama-70B",
		},
		patches: {"openai/gpt-5.4", "openai/gpt-6-sol", "openrouter/openai/gpt-5-mini", "azure/my-codex"},
		strong: {
			"anthropic/claude-opus-4-8", "openai/gpt-4.1", "ollama/qwen3-coder:30b", "ollama/qwen3:32b", "ollama/llama3.3:70b",
			"hf/meta-llama/Llama-3.1-70B",
			"ollama/deepseek-r1:671b", "deepseek/deepseek-chat", "mistral/mistral-large", "ollama/qwen3:30b-a3b", "ollama/gpt-oss:20b", "/", "",
		},
	} {
		for _, route := range routes {
			if got := profile.For(route, nil); got != want {
				t.Errorf("%s: %+v, want %+v", route, got, want)
			}
		}
	}
}

// TestOwn checks that settings go first, field by field.
func TestOwn(t *testing.T) {
	own := []profile.Profile{
		{Match: "OLLAMA/*:8b", Edit: "write", First: "high"},
		{Match: "ollama/*", Edit: "replace", Rest: "low", First: "low", Prompt: "Be brief."},
		{Match: "[", Trouble: "high"},
	}
	want := profile.Profile{Edit: "write", Schema: "plain", Tools: "native", First: "high", Rest: "low", Prompt: "Be brief."}
	if got := profile.For("ollama/library/Llama3.1:8b", own); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestCheck(t *testing.T) {
	ok := profile.Profile{
		Match: "*", Edit: "lines", Schema: "plain",
		Tools: "prompt", First: "high", Rest: "low", Trouble: "medium", Prompt: "x",
	}
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
	for want, p := range map[string]profile.Profile{
		`match: ""`:                     {},
		`match: "["`:                    {Match: "["},
		`edit: unknown value "diff"`:    {Match: "*", Edit: "diff"},
		`schema: unknown value "small"`: {Match: "*", Schema: "small"},
		`tools: unknown value "none"`:   {Match: "*", Tools: "none"},
		`first: unknown value "huge"`:   {Match: "*", First: "huge"},
		`rest: unknown value "none"`:    {Match: "*", Rest: "none"},
		`trouble: unknown value "x"`:    {Match: "*", Trouble: "x"},
	} {
		if err := p.Check(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v, want %s", p, err, want)
		}
	}
}

// hearer keeps the request it is sent.
type hearer struct{ got *llm.Request }

func (hearer) Info() llm.Info { return llm.Info{Provider: "p", Model: "m"} }

func (m hearer) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	*m.got = req
	return func(yield func(llm.Chunk, error) bool) { yield(llm.Chunk{Reply: &llm.Reply{}}, nil) }
}

func ask(t *testing.T, m llm.Model, req llm.Request) {
	t.Helper()
	for _, err := range m.Stream(t.Context(), req) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEffort(t *testing.T) {
	prompt := llm.Message{Role: llm.User, Parts: llm.Say("go")}
	result := func(errs ...bool) llm.Message {
		m := llm.Message{Role: llm.User}
		for _, e := range errs {
			m.Parts = append(m.Parts, llm.Result{Name: "x", Error: e})
		}
		return m
	}
	all := profile.Profile{First: "high", Rest: "low", Trouble: "medium"}
	for _, c := range []struct {
		name    string
		p       profile.Profile
		req     llm.Request
		want    string
		purpose string
	}{
		{"first", all, llm.Request{Messages: []llm.Message{prompt}}, "high", ""},
		{"later", all, llm.Request{Messages: []llm.Message{prompt, result(false, false)}}, "low", ""},
		{"trouble", all, llm.Request{Messages: []llm.Message{prompt, result(false, true)}}, "medium", ""},
		{"the next run", all, llm.Request{Messages: []llm.Message{prompt, result(true), prompt}}, "high", ""},
		{"not set", profile.Profile{First: "high"}, llm.Request{Effort: "medium", Messages: []llm.Message{result(false)}}, "medium", ""},
		{"no trouble set", profile.Profile{Rest: "low"}, llm.Request{Effort: "high", Messages: []llm.Message{result(true)}}, "high", ""},
		{"summary", all, llm.Request{Effort: "medium", Messages: []llm.Message{prompt}}, "medium", "summary"},
		{"nothing said", all, llm.Request{Effort: "medium"}, "medium", ""},
	} {
		var got llm.Request
		c.req.Purpose = c.purpose
		ask(t, c.p.Model(hearer{&got}), c.req)
		if got.Effort != c.want {
			t.Errorf("%s: %q, want %q", c.name, got.Effort, c.want)
		}
	}
}

// TestModel checks that tools are made plain for the model, and only for it.
func TestModel(t *testing.T) {
	const full = `{"type":"object","properties":{"a":{"type":"string","pattern":"^x"}}}`
	var got llm.Request
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "a", Schema: json.RawMessage(full)}, {Name: "b"}}}
	ask(t, profile.Profile{Schema: "plain"}.Model(hearer{&got}), req)
	want := []llm.ToolSpec{
		{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","description":"(pattern ^x)"}}}`)},
		{Name: "b", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}
	if diff := cmp.Diff(want, got.Tools); diff != "" {
		t.Error(diff)
	}
	if string(req.Tools[0].Schema) != full {
		t.Error("the request was changed")
	}
	if m := (profile.Profile{Schema: "full"}).Model(hearer{&got}); m != (hearer{&got}) {
		t.Errorf("a profile that changes nothing makes a %T", m)
	}
}

// TestSchedule checks that planning and verifying are thought about hardest, that an effort that was asked for stays,
// and that models whose vendors do not take the question are not asked.
func TestSchedule(t *testing.T) {
	said := llm.Message{Role: llm.User, Parts: llm.Say("x")}
	result := llm.Message{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "1"}}}
	for _, tt := range []struct {
		route, asked string
		last         llm.Message
		want         string
	}{
		{"anthropic/claude-opus-4-6", "", said, "high"},
		{"anthropic/claude-opus-4-6", "", result, "medium"},
		{"openai/gpt-5.2", "low", said, "low"},
		{"openai/gpt-4.1", "", said, ""},
		{"ollama/qwen3", "", said, ""},
		{"gemini/gemini-3-pro", "", result, "medium"},
		{"openrouter/anthropic/claude-sonnet-5", "", said, "high"},
	} {
		m := &asked{route: tt.route}
		for _, err := range profile.Scheduled(m).Stream(t.Context(), llm.Request{Effort: tt.asked, Messages: []llm.Message{tt.last}}) {
			t.Error(err)
		}
		if m.effort != tt.want {
			t.Errorf("%s, asked for %q: %q, want %q", tt.route, tt.asked, m.effort, tt.want)
		}
	}
}

// asked is a model that remembers the effort it was asked for.
type asked struct{ route, effort string }

func (m *asked) Info() llm.Info {
	provider, model, _ := strings.Cut(m.route, "/")
	return llm.Info{Provider: provider, Model: model}
}

func (m *asked) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	m.effort = req.Effort
	return func(func(llm.Chunk, error) bool) {}
}

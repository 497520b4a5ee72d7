package router_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// hybrid is a small free model on the desk and two in the cloud, one dear.
func hybrid() *router.Model {
	desk := &vendor{info: llm.Info{Provider: "ollama", Model: "small", Window: 32_768, NoTools: true}}
	cheap := &vendor{info: llm.Info{
		Provider: "cloud", Model: "cheap", Window: 200_000,
		Prices: llm.Prices{{Input: 1}, {Input: 10, From: "2027-01-01"}},
	}}
	best := &vendor{info: llm.Info{Provider: "cloud", Model: "best", Window: 1_000_000, Images: true}}
	return &router.Model{
		ID:     "hybrid",
		Routes: []router.Route{{Name: "desk", Model: desk, Local: true}, {Name: "cheap", Model: cheap}, {Name: "best", Model: best}},
	}
}

// hardAtBest are rules that give hard tasks to the best model, and hardAtSmaller to one with a small window.
func hardAtBest(m *router.Model) {
	m.Rules = []router.Rule{
		{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"best", "desk"}},
		{Name: "easy", When: router.Cond{Hard: new(false)}, Use: []string{"desk", "best"}},
	}
}

func hardAtSmaller(m *router.Model) {
	m.Routes[0].Model.(*vendor).info.Window, m.Routes[1].Model.(*vendor).info.Window = 100_000, 20_000
	m.Rules = []router.Rule{{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cheap", "desk"}}}
}

func at(clock string) time.Time {
	day, _ := time.Parse(time.DateTime, "2026-11-21 "+clock)
	return day
}

// TestDecide checks who is chosen, and the words that say why.
func TestDecide(t *testing.T) {
	yes, no := true, false
	rules := []router.Rule{
		{Name: "secret", When: router.Cond{Private: &yes}, Use: []string{"desk"}},
		{Name: "summary", When: router.Cond{Step: "summary"}, Use: []string{"cheap"}},
		{Name: "long", When: router.Cond{MinTokens: 150_000}, Use: []string{"best"}},
		{
			Name: "middling", When: router.Cond{Hard: &yes, Private: &no, Step: "prompt"},
			Use: []string{"cheap", "best"},
		},
		{Name: "easy", When: router.Cond{Hard: &no, MaxTokens: 100_000}, Use: []string{"desk", "cheap"}},
		{Name: "thrifty", When: router.Cond{Step: "results"}, Use: []string{"best", "cheap"}, MaxCost: 0.05},
	}
	const signs = "the task is short"
	for _, tt := range []struct {
		name string
		set  func(m *router.Model)
		f    router.Features
		v    router.View
		want router.Decision
	}{
		{
			name: "easy",
			f:    router.Features{Tokens: 1830, Why: signs, Step: "prompt"},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 1,830 tokens, at most 100,000",
				Use: []string{"desk", "cheap"},
			},
		},
		{
			name: "does not fit",
			f:    router.Features{Tokens: 40_000, Why: signs},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 40,000 tokens, at most 100,000", Use: []string{"cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 40,000 tokens of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "no room for the reply",
			f:    router.Features{Tokens: 32_000, Why: signs, MaxOutput: 1000},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 32,000 tokens, at most 100,000", Use: []string{"cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 32,000 tokens and 1,000 for the reply of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "just fits",
			f:    router.Features{Tokens: 32_768 - 4096, Why: signs},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 28,672 tokens, at most 100,000",
				Use: []string{"desk", "cheap"},
			},
		},
		{
			name: "takes no tools",
			f:    router.Features{Tokens: 100, Tools: true, Why: signs},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 100 tokens, at most 100,000", Use: []string{"cheap"},
				Reserve: []string{"desk"},
				Passed:  []router.Passed{{"desk", "takes no tools", llm.KindNoTools}},
			},
		},
		{
			name: "middling, and without images",
			f:    router.Features{Tokens: 100, Hard: true, Why: signs, Step: "prompt", Images: true},
			want: router.Decision{
				Rule: "middling", Reason: "the task is short; not private; step prompt; 100 tokens",
				Use: []string{"best"}, Reserve: []string{"cheap"},
				Passed: []router.Passed{{"cheap", "takes no images", llm.KindInvalid}},
			},
		},
		{
			name: "unhealthy",
			f:    router.Features{Tokens: 100, Why: signs},
			v: router.View{Models: map[string]router.Condition{
				"ollama/small": {Until: at("12:03:00"), Kind: llm.KindStreamCut},
				"cloud/cheap":  {Until: at("12:00:00")},
			}},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 100 tokens, at most 100,000", Use: []string{"cheap"},
				Reserve: []string{"desk"},
				Passed:  []router.Passed{{"desk", "unhealthy until 12:03:00: stream cut", llm.KindStreamCut}},
			},
		},
		{
			name: "purpose",
			f:    router.Features{Tokens: 100, Step: "summary"},
			want: router.Decision{Rule: "summary", Reason: "step summary; 100 tokens", Use: []string{"cheap"}},
		},
		{
			name: "long",
			f:    router.Features{Tokens: 150_000, Hard: true},
			want: router.Decision{Rule: "long", Reason: "150,000 tokens, at least 150,000", Use: []string{"best"}},
		},
		{
			name: "private",
			f:    router.Features{Tokens: 100, Hard: true, Private: "a private key"},
			want: router.Decision{Rule: "secret", Reason: "private: it holds a private key; 100 tokens", Use: []string{"desk"}},
		},
		{
			name: "too dear",
			f:    router.Features{Tokens: 60_000, Hard: true, Step: "results"},
			want: router.Decision{Rule: "thrifty", Reason: "step results; 60,000 tokens", Passed: []router.Passed{
				{"best", "its price is not known", llm.KindBudget},
				{"cheap", "costs $0.0600 for this prompt, more than $0.0500", llm.KindBudget},
			}},
		},
		{
			name: "dearer next year",
			f:    router.Features{Tokens: 40_000, Hard: true, Step: "results"},
			v:    router.View{At: at("12:00:00").AddDate(1, 0, 0)},
			want: router.Decision{Rule: "thrifty", Reason: "step results; 40,000 tokens", Passed: []router.Passed{
				{"best", "its price is not known", llm.KindBudget},
				{"cheap", "costs $0.4000 for this prompt, more than $0.0500", llm.KindBudget},
			}},
		},
		{
			name: "no rule",
			set:  func(m *router.Model) { m.Rules = nil },
			f:    router.Features{Tokens: 100, Hard: true, Step: "prompt"},
			want: router.Decision{Rule: "default", Reason: "in the order of the routes; 100 tokens", Use: []string{"desk", "cheap", "best"}},
		},
		{
			name: "no rule for private text",
			set:  func(m *router.Model) { m.Rules = m.Rules[1:] },
			f:    router.Features{Tokens: 150_000, Hard: true, Private: "an AWS key"},
			want: router.Decision{Rule: "long", Reason: "150,000 tokens, at least 150,000", Passed: []router.Passed{
				{"best", "leaves the machine, but the text is private: it holds an AWS key", llm.KindInvalid},
				{"desk", "does not fit: 150,000 tokens of 32,768", llm.KindWindow},
			}},
		},
		{
			name: "local beyond the rule",
			set:  func(m *router.Model) { m.Rules = m.Rules[1:2] },
			f:    router.Features{Tokens: 100, Step: "summary", Private: "an AWS key"},
			want: router.Decision{
				Rule: "summary", Reason: "step summary; 100 tokens", Use: []string{"desk"},
				Passed: []router.Passed{{"cheap", "leaves the machine, but the text is private: it holds an AWS key", llm.KindInvalid}},
			},
		},
		{
			name: "forced",
			set:  func(m *router.Model) { m.Force = "desk" },
			f:    router.Features{Tokens: 40_000, Pin: "cloud/best"},
			v:    router.View{Models: map[string]router.Condition{"ollama/small": {Until: at("13:00:00"), Kind: llm.KindAuth}}},
			want: router.Decision{
				Rule: "forced", Reason: "asked for by name; 40,000 tokens", Reserve: []string{"desk"},
				Passed: []router.Passed{{"desk", "unhealthy until 13:00:00: auth", llm.KindAuth}},
			},
		},
		{
			name: "forced, but private",
			set:  func(m *router.Model) { m.Force = "best" },
			f:    router.Features{Tokens: 10, Private: "a private key"},
			want: router.Decision{
				Rule: "forced", Reason: "asked for by name; 10 tokens",
				Passed: []router.Passed{{"best", "leaves the machine, but the text is private: it holds a private key", llm.KindInvalid}},
			},
		},
		{
			name: "pinned",
			f:    router.Features{Tokens: 100_000, Why: signs, Step: "results", Pin: "cloud/best"},
			want: router.Decision{
				Rule: "pinned", Reason: "it works on this task; 100,000 tokens", Use: []string{"best", "cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 100,000 tokens of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "pinned, whatever it costs",
			f:    router.Features{Tokens: 10_000, Hard: true, Step: "results", Pin: "cloud/best"},
			want: router.Decision{Rule: "pinned", Reason: "it works on this task; 10,000 tokens", Use: []string{"best", "cheap"}},
		},
		{
			name: "taken over",
			f:    router.Features{Tokens: 100, Hard: true, Why: "it is stuck", Stuck: true, Step: "results", Pin: "ollama/small"},
			set:  hardAtBest,
			want: router.Decision{Rule: "hard", Reason: "taken over from desk: it is stuck; 100 tokens", Use: []string{"best", "desk"}},
		},
		{
			name: "taken over once",
			f:    router.Features{Tokens: 100, Hard: true, Why: "it is stuck", Stuck: true, Step: "results", Pin: "cloud/best"},
			set:  hardAtBest,
			want: router.Decision{Rule: "pinned", Reason: "it works on this task; 100 tokens", Use: []string{"best", "desk"}},
		},
		{
			name: "not for how the task looked",
			f:    router.Features{Tokens: 100, Hard: true, Why: "the task is a long text", Step: "results", Pin: "ollama/small"},
			set:  hardAtBest,
			want: router.Decision{Rule: "pinned", Reason: "it works on this task; 100 tokens", Use: []string{"desk", "best"}},
		},
		{
			name: "taken over when it is cut",
			f:    router.Features{Tokens: 30_000, Hard: true, Why: "it is stuck", Stuck: true, Pin: "ollama/small"},
			set:  hardAtSmaller,
			want: router.Decision{
				Rule: "pinned", Reason: "it works on this task; 30,000 tokens", Use: []string{"desk"}, Cut: 20_000,
				Passed: []router.Passed{{"cheap", "does not fit: 30,000 tokens of 20,000", llm.KindWindow}},
			},
		},
		{
			name: "cut, and still too long",
			f:    router.Features{Tokens: 30_000, Hard: true, Why: "it is stuck", Stuck: true, Pin: "ollama/small", Cut: true},
			set:  hardAtSmaller,
			want: router.Decision{
				Rule: "pinned", Reason: "it works on this task; 30,000 tokens", Use: []string{"desk"},
				Passed: []router.Passed{{"cheap", "does not fit: 30,000 tokens of 20,000", llm.KindWindow}},
			},
		},
		{
			name: "a person's own label",
			f:    router.Features{Tokens: 100, Why: signs, Said: []string{"cart"}},
			set: func(m *router.Model) {
				m.Rules = append([]router.Rule{{Name: "shop", When: router.Cond{Said: "cart"}, Use: []string{"best"}}}, m.Rules...)
			},
			want: router.Decision{Rule: "shop", Reason: "the rule's expression matches the task; 100 tokens", Use: []string{"best"}},
		},
		{
			name: "pinned, but private",
			f:    router.Features{Tokens: 100, Pin: "cloud/best", Private: "an AWS key"},
			want: router.Decision{
				Rule: "secret", Reason: "private: it holds an AWS key; 100 tokens", Use: []string{"desk"},
				Passed: []router.Passed{{"best", "leaves the machine, but the text is private: it holds an AWS key", llm.KindInvalid}},
			},
		},
		{
			name: "pinned, but too small",
			f:    router.Features{Tokens: 40_000, Why: signs, Pin: "ollama/small"},
			want: router.Decision{
				Rule: "easy", Reason: "the task is short; 40,000 tokens, at most 100,000", Use: []string{"cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 40,000 tokens of 32,768", llm.KindWindow}},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := hybrid()
			m.Rules = rules
			if tt.set != nil {
				tt.set(m)
			}
			if err := m.Check(); err != nil {
				t.Fatal(err)
			}
			if tt.v.At.IsZero() {
				tt.v.At = at("12:00:00")
			}
			if diff := cmp.Diff(tt.want, m.Decide(tt.f, tt.v)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRefusal checks the error when no route may answer.
func TestRefusal(t *testing.T) {
	m := hybrid()
	m.Routes = m.Routes[1:]
	for _, tt := range []struct {
		text string
		kind llm.Kind
		want string
	}{
		{
			"the key is AKIAQ3EGRIM5UDP7XV2K", llm.KindInvalid,
			"no route may answer; cheap: leaves the machine, but the text is private: it holds an AWS key; best: leaves",
		},
		{strings.Repeat("word ", 1_200_000), llm.KindWindow, "no route may answer; cheap: does not fit: 1,260,000 tokens of 200,000; best: does"},
	} {
		var last error
		for _, err := range m.Stream(t.Context(), say(tt.text)) {
			last = err
		}
		got := llm.AsError(last)
		if got == nil || got.Kind != tt.kind || !strings.HasPrefix(got.Message, tt.want) || strings.Contains(got.Message, "AKIA") {
			t.Errorf("got  %v\nwant %s: %s", last, tt.kind, tt.want)
		}
	}
	m = hybrid()
	m.Rules = []router.Rule{{Name: "free", Use: []string{"best"}, MaxCost: 0.01}}
	if got, want := told(t, m, say("hi")), "failed: budget"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestFeatures checks the features of a request.
func TestFeatures(t *testing.T) {
	req := llm.Request{
		System: []string{strings.Repeat("s", 300)},
		Tools:  []llm.ToolSpec{{Name: "read", Schema: json.RawMessage(`{}`)}},
		Messages: []llm.Message{
			{Role: llm.User, Parts: llm.Parts{llm.Text{Text: "List a.go"}, llm.Image{MediaType: "image/png"}}},
			{Role: llm.Assistant, Parts: llm.Parts{llm.Call{ID: "1", Name: "read", Args: json.RawMessage(`{}`)}}},
			{Role: llm.User, Parts: llm.Parts{llm.Result{CallID: "1", Error: true, Parts: llm.Parts{llm.Image{MediaType: "image/png"}}}}},
		},
		MaxOutput: 77, Pin: "a/b",
	}
	want := router.Features{
		Tokens: req.Tokens(), MaxOutput: 77, Why: "the task names a file", Step: "results", Pin: "a/b", Images: true, Tools: true,
	}
	if diff := cmp.Diff(want, hybrid().Features(req)); diff != "" {
		t.Error(diff)
	}
	req.Purpose = "summary"
	if got := hybrid().Features(req).Step; got != "summary" {
		t.Errorf("Step = %q", got)
	}
	if got := hybrid().Features(llm.Request{}); got.Step != "prompt" || got.Tokens != 0 || got.Private != "" {
		t.Errorf("an empty request has %+v", got)
	}
}

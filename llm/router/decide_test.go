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

// priced gives the model of a route a price.
func priced(m *router.Model, route string, input, cached float64) {
	for _, r := range m.Routes {
		if r.Name == route {
			r.Model.(*vendor).info.Prices = llm.Prices{{Input: input, CacheRead: cached}}
		}
	}
}

func at(clock string) time.Time {
	day, _ := time.Parse(time.DateTime, "2026-11-21 "+clock)
	return day
}

// TestDecide holds who is chosen, and the words that say why.
func TestDecide(t *testing.T) {
	yes, no := true, false
	rules := []router.Rule{
		{Name: "secret", When: router.Cond{Private: &yes}, Use: []string{"desk"}},
		{Name: "summary", When: router.Cond{Step: "summary"}, Use: []string{"cheap"}},
		{Name: "long", When: router.Cond{MinTokens: 150_000}, Use: []string{"best"}},
		{
			Name: "middling", When: router.Cond{MinComplexity: 0.5, MaxComplexity: 0.7, Private: &no, Step: router.StepPrompt},
			Use: []string{"cheap", "best"},
		},
		{Name: "easy", When: router.Cond{MaxComplexity: 0.7, MaxTokens: 100_000}, Use: []string{"desk", "cheap"}},
		{Name: "thrifty", When: router.Cond{Step: router.StepResults}, Use: []string{"best", "cheap"}, MaxCost: 0.05},
	}
	const signs = "12 words, 0 files"
	for _, tt := range []struct {
		name string
		set  func(m *router.Model)
		f    router.Features
		v    router.View
		want router.Decision
	}{
		{
			name: "easy",
			f:    router.Features{Tokens: 1830, Complexity: 0.23, Signs: signs, Step: router.StepPrompt},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.23 (12 words, 0 files) < 0.7; 1,830 tokens <= 100,000",
				Use: []string{"desk", "cheap"},
			},
		},
		{
			name: "does not fit",
			f:    router.Features{Tokens: 40_000, Complexity: 0.23, Signs: signs},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.23 (12 words, 0 files) < 0.7; 40,000 tokens <= 100,000", Use: []string{"cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 40,000 tokens of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "no room for the reply",
			f:    router.Features{Tokens: 32_000, Signs: signs, MaxOutput: 1000},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.00 (12 words, 0 files) < 0.7; 32,000 tokens <= 100,000", Use: []string{"cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 32,000 tokens and 1,000 for the reply of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "just fits",
			f:    router.Features{Tokens: 32_768 - 4096, Signs: signs},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.00 (12 words, 0 files) < 0.7; 28,672 tokens <= 100,000",
				Use: []string{"desk", "cheap"},
			},
		},
		{
			name: "takes no tools",
			f:    router.Features{Tokens: 100, Tools: true, Signs: signs},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.00 (12 words, 0 files) < 0.7; 100 tokens <= 100,000", Use: []string{"cheap"},
				Reserve: []string{"desk"},
				Passed:  []router.Passed{{"desk", "takes no tools", llm.KindNoTools}},
			},
		},
		{
			name: "middling, and without images",
			f:    router.Features{Tokens: 100, Complexity: 0.5, Signs: signs, Step: router.StepPrompt, Images: true},
			want: router.Decision{
				Rule: "middling", Reason: "complexity 0.50 (12 words, 0 files) >= 0.5 < 0.7; not private; step prompt; 100 tokens",
				Use: []string{"best"}, Reserve: []string{"cheap"},
				Passed: []router.Passed{{"cheap", "takes no images", llm.KindInvalid}},
			},
		},
		{
			name: "unhealthy",
			f:    router.Features{Tokens: 100, Signs: signs},
			v: router.View{Models: map[string]router.Condition{
				"ollama/small": {Until: at("12:03:00"), Kind: llm.KindStreamCut},
				"cloud/cheap":  {Until: at("12:00:00")},
			}},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.00 (12 words, 0 files) < 0.7; 100 tokens <= 100,000", Use: []string{"cheap"},
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
			f:    router.Features{Tokens: 150_000, Complexity: 1},
			want: router.Decision{Rule: "long", Reason: "150,000 tokens >= 150,000", Use: []string{"best"}},
		},
		{
			name: "private",
			f:    router.Features{Tokens: 100, Complexity: 1, Private: "a private key"},
			want: router.Decision{Rule: "secret", Reason: "private: it holds a private key; 100 tokens", Use: []string{"desk"}},
		},
		{
			name: "too dear",
			f:    router.Features{Tokens: 60_000, Complexity: 0.8, Step: router.StepResults},
			want: router.Decision{Rule: "thrifty", Reason: "step results; 60,000 tokens", Passed: []router.Passed{
				{"best", "its price is not known", llm.KindBudget},
				{"cheap", "costs $0.0600 for this prompt, more than $0.0500", llm.KindBudget},
			}},
		},
		{
			name: "dearer next year",
			f:    router.Features{Tokens: 40_000, Complexity: 0.8, Step: router.StepResults},
			v:    router.View{At: at("12:00:00").AddDate(1, 0, 0)},
			want: router.Decision{Rule: "thrifty", Reason: "step results; 40,000 tokens", Passed: []router.Passed{
				{"best", "its price is not known", llm.KindBudget},
				{"cheap", "costs $0.4000 for this prompt, more than $0.0500", llm.KindBudget},
			}},
		},
		{
			name: "no rule",
			f:    router.Features{Tokens: 100, Complexity: 0.8, Step: router.StepPrompt},
			want: router.Decision{Rule: "default", Reason: "in the order of the routes; 100 tokens", Use: []string{"desk", "cheap", "best"}},
		},
		{
			name: "no rule for private text",
			set:  func(m *router.Model) { m.Rules = m.Rules[1:] },
			f:    router.Features{Tokens: 150_000, Complexity: 0.8, Private: "an AWS key"},
			want: router.Decision{Rule: "long", Reason: "150,000 tokens >= 150,000", Passed: []router.Passed{
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
			f:    router.Features{Tokens: 100_000, Complexity: 0.1, Signs: signs, Step: router.StepResults, Pin: "cloud/best"},
			want: router.Decision{
				Rule: "pinned", Reason: "it made the calls of this run; 100,000 tokens", Use: []string{"best", "cheap"},
				Passed: []router.Passed{{"desk", "does not fit: 100,000 tokens of 32,768", llm.KindWindow}},
			},
		},
		{
			name: "pinned, whatever it costs",
			f:    router.Features{Tokens: 10_000, Complexity: 0.8, Step: router.StepResults, Pin: "cloud/best"},
			want: router.Decision{Rule: "pinned", Reason: "it made the calls of this run; 10,000 tokens", Use: []string{"best", "cheap"}},
		},
		{
			name: "escalated",
			f:    router.Features{Tokens: 100, Complexity: 0.75, Signs: signs, Step: router.StepResults, Pin: "ollama/small", Failing: 6},
			set: func(m *router.Model) {
				m.Rules = usual().Rules
				m.Rules[0].Use, m.Rules[1].Use = []string{"best", "desk"}, []string{"desk", "best"}
			},
			want: router.Decision{
				Rule: "hard", Reason: "escalated: 6 failed calls since a check succeeded; complexity 0.75 (12 words, 0 files) >= 0.7; 100 tokens",
				Use: []string{"best", "desk"},
			},
		},
		{
			name: "goes on",
			f:    router.Features{Tokens: 100, Complexity: 0.2, Signs: signs, Step: router.StepPrompt, GoesOn: true, Last: "cloud/cheap"},
			want: router.Decision{Rule: router.RuleGoesOn, Reason: "it answered what this goes on with; 100 tokens", Use: []string{"cheap", "desk"}},
		},
		{
			name: "a cold cache that costs more than a warm one",
			f: router.Features{
				Tokens: 30_000, Complexity: 0.2, Signs: signs,
				Step: router.StepPrompt, Last: "cloud/best", Cached: 29_000, At: at("11:58:00"),
			},
			set: func(m *router.Model) {
				m.Rules = []router.Rule{{Name: "easy", Use: []string{"cheap", "best"}}}
				priced(m, "best", 3, 0.3)
			},
			want: router.Decision{
				Rule:   router.RuleCache,
				Reason: "the prompt costs $0.0117 there, with its cache, and $0.0300 at cheap; 30,000 tokens", Use: []string{"best", "cheap"},
			},
		},
		{
			name: "a cache that is gone",
			f: router.Features{
				Tokens: 30_000, Complexity: 0.2, Signs: signs,
				Step: router.StepPrompt, Last: "cloud/best", Cached: 29_000, At: at("11:50:00"),
			},
			set: func(m *router.Model) {
				m.Rules = []router.Rule{{Name: "easy", Use: []string{"cheap", "best"}}}
				priced(m, "best", 3, 0.3)
			},
			want: router.Decision{Rule: "easy", Reason: "30,000 tokens", Use: []string{"cheap", "best"}},
		},
		{
			name: "hard by little, and dear to switch to",
			f: router.Features{
				Tokens: 50_000, Complexity: 0.75, Signs: signs,
				Step: router.StepPrompt, Last: "cloud/cheap", Cached: 49_000, At: at("11:59:00"),
			},
			set: func(m *router.Model) {
				m.Rules = []router.Rule{{Name: "hard", When: router.Cond{MinComplexity: 0.7}, Use: []string{"best", "cheap"}}}
				priced(m, "best", 3, 0.3)
			},
			want: router.Decision{
				Rule:   router.RuleCache,
				Reason: "the prompt costs $0.0010 there, with its cache, and $0.1500 at best; 50,000 tokens", Use: []string{"cheap", "best"},
			},
		},
		{
			name: "clearly hard",
			f: router.Features{
				Tokens: 50_000, Complexity: 0.9, Signs: signs,
				Step: router.StepPrompt, Last: "cloud/cheap", Cached: 49_000, At: at("11:59:00"),
			},
			set: func(m *router.Model) {
				m.Rules = []router.Rule{{Name: "hard", When: router.Cond{MinComplexity: 0.7}, Use: []string{"best", "cheap"}}}
				priced(m, "best", 3, 0.3)
			},
			want: router.Decision{Rule: "hard", Reason: "complexity 0.90 (12 words, 0 files) >= 0.7; 50,000 tokens", Use: []string{"best", "cheap"}},
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
			f:    router.Features{Tokens: 40_000, Complexity: 0.1, Signs: signs, Pin: "ollama/small"},
			want: router.Decision{
				Rule: "easy", Reason: "complexity 0.10 (12 words, 0 files) < 0.7; 40,000 tokens <= 100,000", Use: []string{"cheap"},
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

// TestRefusal holds what is said when nobody may answer.
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
		{strings.Repeat("word ", 800_000), llm.KindWindow, "no route may answer; cheap: does not fit: 1,142,857 tokens of 200,000; best: does"},
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

// TestFeatures holds what is seen of a request.
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
		Tokens: (300+6+9+6)*2/7 + 2*1500, MaxOutput: 77, Complexity: 0.15 + 0.25*2/150 - 0.1 + 0.06 + 0.11, Failing: 1,
		Signs: "2 words, 1 file, list, 1 failed call, 1 turn", Step: router.StepResults, Pin: "a/b", Images: true, Tools: true,
	}
	near := cmp.Comparer(func(x, y float64) bool { return x-y < 1e-9 && y-x < 1e-9 })
	if diff := cmp.Diff(want, hybrid().Features(req), near); diff != "" {
		t.Error(diff)
	}
	req.Purpose = "summary"
	if got := hybrid().Features(req).Step; got != "summary" {
		t.Errorf("Step = %q", got)
	}
	if got := hybrid().Features(llm.Request{}); got.Step != router.StepPrompt || got.Tokens != 0 || got.Private != "" {
		t.Errorf("an empty request has %+v", got)
	}
}

package journeys_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestSecretsOfCallsBeside checks that a call does not get a secret whose placeholder got its meaning from a parallel
// call after the judgement.
func TestSecretsOfCallsBeside(t *testing.T) {
	const token = "ghp_0123456789abcdefABCDEF0123456789abcd"
	got, read := make(chan string, 1), make(chan struct{})
	finds := tool.New("finds", "Finds a key.", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		defer close(read)
		return tool.Text("the key is " + token), nil
	})
	finds.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	serve := tool.New("serve", "Is elsewhere.", func(_ context.Context, _ *tool.Call, in struct {
		Text string `json:"text"`
	},
	) (tool.Result, error) {
		<-read
		got <- in.Text
		return tool.Text("done"), nil
	})
	serve.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.External}}, nil
	}
	stands := placeholder(t, token)
	model, err := script.Parse([]byte("-- reply --\ncall: finds {}\ncall: serve {\"text\":\"" + stands + "\"}\n-- reply --\ndone\n"))
	if err != nil {
		t.Fatal(err)
	}
	agent := inspan.Agent{
		Model: model, Secrets: inspan.Secrets{Key: []byte(testKey)}, Tools: []tool.Tool{finds, serve}, Mode: "auto",
		Env: tool.Env{Root: "/w"}, Rules: []inspan.Rule{{Action: tool.Allow, Text: "serve"}},
	}
	for _, err := range agent.Run(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
	}
	if text := <-got; text != stands {
		t.Errorf("it got %q", text)
	}
}

// TestRuleOfTwo checks that a call with a way out asks, whatever the rules say, once the conversation contains both
// outside text and private data, and that a call that would give a secret to a server always asks.
func TestRuleOfTwo(t *testing.T) {
	does := func(name string, e tool.Effect) tool.Tool {
		out := tool.New(name, "Does "+name+".", func(context.Context, *tool.Call, struct {
			Text string `json:"text,omitempty"`
		},
		) (tool.Result, error) {
			return tool.Text("done"), nil
		})
		out.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) { return []tool.Effect{e}, nil }
		return out
	}
	tools := []tool.Tool{
		does("fetch", tool.Effect{Kind: tool.Network, Text: "example.com"}),
		does("diary", tool.Effect{Kind: tool.Read, Path: "/home/ann/diary"}),
		does("serve", tool.Effect{Kind: tool.External, Text: "serve"}),
		does("look", tool.Effect{Kind: tool.Read, Path: "/w/a"}),
	}
	for _, tc := range []struct {
		name   string
		mode   tool.Mode
		calls  string
		denied string
		by     string
	}{
		{"text from elsewhere alone", "auto", "fetch look fetch", "", ""},
		{"private alone", "auto", "diary look fetch", "", ""},
		{"both", "auto", "fetch diary fetch", "fetch", "rule of two"},
		{"both, the other way round", "auto", "diary fetch look fetch", "fetch", "rule of two"},
		{"reading goes on", "auto", "fetch diary look", "", ""},
		{"with a secret", "auto", "fetch secret", "secret", "rule of two"},
		{"a secret for a host that a rule names", "auto", "secret", "", ""},
		{"a server without a secret", "auto", "serve serve", "", ""},
		{"a secret for a server", "auto", "served", "served", "secrets"},
		{"yolo", "yolo", "fetch diary fetch served", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			replies := ""
			for name := range strings.FieldsSeq(tc.calls) {
				args := "{}"
				if to := map[string]string{"secret": "fetch", "served": "serve"}[name]; to != "" {
					name, args = to, `{"text":"TOKENVALUE12345678"}`
				}
				replies += "-- reply --\ncall: " + name + " " + args + "\n"
			}
			model, err := script.Parse([]byte(replies + "-- reply --\ndone\n"))
			if err != nil {
				t.Fatal(err)
			}
			agent := inspan.Agent{
				Model: model, Tools: tools, Mode: tc.mode, Unattended: true, Env: tool.Env{Root: "/w"},
				Rules:   []inspan.Rule{{Action: tool.Allow, Text: "network"}, {Action: tool.Allow, Text: "serve"}},
				Secrets: inspan.Secrets{Values: func() map[string]string { return map[string]string{"TOKEN": "TOKENVALUE12345678"} }},
			}
			var judged []event.Judged
			for e, err := range agent.Run(t.Context(), "go") {
				if err != nil {
					t.Fatal(err)
				}
				if j, ok := e.Body.(event.Judged); ok {
					judged = append(judged, j)
				}
			}
			for i, j := range judged {
				want := tool.Allow
				if tc.denied != "" && i == len(judged)-1 {
					want = tool.Deny
				}
				if j.Action != want || want == tool.Deny && j.By != tc.by {
					t.Errorf("call %d: %s by %s: %s", i+1, j.Action, j.By, j.Reason)
				}
			}
		})
	}
}

package providers_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/providers"
	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/llm"
)

// keys are the keys that inspan keeps.
type keys map[string]string

func (k keys) HasKey(name string) bool { return k[name] != "" }

func (k keys) Key(_ context.Context, name string) (key, where string, err error) {
	if k[name] == "sealed" {
		return "", "", errors.New("the keychain is locked")
	}
	return k[name], "the keychain", nil
}

// TestAdvice checks the messages about a refused key, a missing model and an unreachable server: they are the same for
// a run, the screen and the doctor, and never contain the key.
func TestAdvice(t *testing.T) {
	const secret = "sk-ant-wrong-key-0123456789"
	claude := anthropictest.Start(t, &anthropictest.Server{Key: "right", Models: []string{"claude-haiku-4-5", "claude-opus-4-8", "claude-other"}})
	open := anthropictest.Start(t, &anthropictest.Server{
		Models: []string{"claude-haiku-4-5", "claude-opus-4-8", "x", "y"},
		Answer: func(_ *http.Request, _ []byte) anthropictest.Answer {
			return anthropictest.Answer{Status: 404, Type: "not_found_error", Message: "model: claude-opus-48"}
		},
	})
	google := geminitest.Start(t, &geminitest.Server{Key: "right"})
	llama := ollamatest.Start(t, &ollamatest.Server{
		Models: []llm.Info{{Model: "qwen3-coder"}},
		Answer: func(*http.Request, []byte) ollamatest.Answer {
			return ollamatest.Answer{Status: 404, Message: "model 'qwen' not found"}
		},
	})
	for name, c := range map[string]struct {
		model string
		p     config.Provider
		env   map[string]string
		kept  keys
		want  []string
	}{
		"a wrong key in a variable": {
			"anthropic/m",
			config.Provider{BaseURL: claude},
			map[string]string{"ANTHROPIC_API_KEY": secret},
			nil,
			[]string{"(HTTP 401): invalid x-api-key. The key comes from the variable ANTHROPIC_API_KEY; correct it there, or unset it and run 'inspan setup'"},
		},
		"a wrong key in the keychain": {
			"anthropic/m",
			config.Provider{BaseURL: claude},
			nil,
			keys{"anthropic": secret},
			[]string{"invalid x-api-key. The key comes from the keychain; set ANTHROPIC_API_KEY to use another, or run 'inspan setup'"},
		},
		"a sealed keychain": {
			"anthropic/m", config.Provider{BaseURL: claude}, nil, keys{"anthropic": "sealed"}, []string{"no API key: the keychain is locked"},
		},
		"a command with a wrong key": {
			"anthropic/m",
			config.Provider{BaseURL: claude, KeyCommand: "echo " + secret},
			nil, nil,
			[]string{"invalid x-api-key. The key is the output of providers.anthropic.key_command in ", "x.toml; correct the command"},
		},
		"Google's wrong key": {
			"gemini/m",
			config.Provider{BaseURL: google},
			map[string]string{"GEMINI_API_KEY": secret},
			nil,
			[]string{"API key not valid", "The key comes from the variable GEMINI_API_KEY"},
		},
		"no such model": {
			"anthropic/claude-opus-48",
			config.Provider{BaseURL: open},
			map[string]string{"ANTHROPIC_API_KEY": secret},
			nil,
			[]string{`(HTTP 404): model: claude-opus-48. Anthropic has no model "claude-opus-48"; it has claude-opus-4-8, claude-haiku-4-5 and 2 more; ` +
				"'inspan models anthropic' lists them"},
		},
		"no such local model": {
			"ollama/qwen", config.Provider{BaseURL: llama}, nil, nil, []string{`Ollama has no model "qwen"; it has `, "'ollama pull qwen' gets it"},
		},
		"nobody listens": {
			"ollama/m",
			config.Provider{BaseURL: "http://127.0.0.1:1"},
			nil, nil,
			[]string{
				"ollama: temporary failure: no server listens at 127.0.0.1:1 (connection refused). Start it with 'ollama serve', ",
				"or correct providers.ollama.base_url in ",
			},
		},
		"no network": {
			"anthropic/m",
			config.Provider{BaseURL: "http://no-such-host.invalid"},
			map[string]string{"ANTHROPIC_API_KEY": secret},
			nil,
			[]string{"the name no-such-host.invalid can't be looked up (", "). Check the network; behind a proxy, set HTTPS_PROXY"},
		},
		"another server": {
			"mine/m",
			config.Provider{Kind: "openai", BaseURL: "http://127.0.0.1:1"},
			nil, nil,
			[]string{"no server listens at 127.0.0.1:1 (connection refused). Start it, or correct providers.mine.base_url in "},
		},
	} {
		provider, _, _ := strings.Cut(c.model, "/")
		s := set(t, config.Config{Providers: map[string]config.Provider{provider: c.p}})
		s.Keys, s.Advice.Setup, s.Note = c.kept, "run 'inspan setup'", func(string, string) {}
		for variable, value := range c.env {
			t.Setenv(variable, value)
		}
		choice, err := s.Model(t.Context(), c.model, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var e *llm.Error
		for _, err := range choice.Model.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}) {
			e = llm.AsError(err)
		}
		if e == nil {
			t.Errorf("%s: it answers", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(e.Error(), want) {
				t.Errorf("%s:\n %s\nlacks\n %s", name, e.Error(), want)
			}
		}
		if strings.Count(strings.ToLower(e.Error()), "refused") > 1 || strings.Contains(e.Error(), "dial tcp") {
			t.Errorf("%s is said in the words of the system as well: %v", name, e)
		}
		failed, todo := providers.Remedy(e)
		if strings.Contains(e.Error()+failed+todo, secret) {
			t.Errorf("%s: the key is in %v", name, e)
		}
		if name != "a sealed keychain" && (todo == "" || strings.Contains(failed, todo)) {
			t.Errorf("%s: %q and %q", name, failed, todo)
		}
		for variable := range c.env {
			t.Setenv(variable, "")
		}
	}
}

// TestKeptKey checks that a key that inspan keeps makes a provider ready, and that a variable comes before it.
func TestKeptKey(t *testing.T) {
	var sent []string
	server := anthropictest.Start(t, &anthropictest.Server{Answer: func(r *http.Request, _ []byte) anthropictest.Answer {
		sent = append(sent, r.Header.Get("X-Api-Key"))
		return anthropictest.Answer{Parts: llm.Say("hello")}
	}})
	s := set(t, config.Config{Providers: map[string]config.Provider{"anthropic": {BaseURL: server}}})
	noted := map[string]string{}
	s.Keys, s.Note = keys{"anthropic": "kept"}, func(name, key string) { noted[name] = key }
	if p := named(t, s.List(), "anthropic"); !p.Ready {
		t.Errorf("not ready: %s", p.Need)
	}
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("hi")}}}
	for _, value := range []string{"", "set"} {
		t.Setenv("ANTHROPIC_API_KEY", value)
		choice, err := s.Model(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		said(t, choice.Model, req)
	}
	if strings.Join(sent, " ") != "kept set" || noted["the key of anthropic"] != "kept" {
		t.Errorf("sent %q, noted %v", sent, noted)
	}
}

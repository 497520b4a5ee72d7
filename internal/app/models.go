package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/anthropic"
	"github.com/inspan/inspan/llm/gemini"
	"github.com/inspan/inspan/llm/ollama"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// Provider is a place where models are to be had, as far as the settings and
// the environment tell.
type Provider struct {
	Name string
	config.Provider
	Ready bool   // a key is there, or none is needed
	Need  string // what is missing, for people
}

// presets are the providers that need no settings beyond a key. The order is
// that in which a model is chosen when none is named.
func presets() []Provider {
	return []Provider{
		{Name: "anthropic", Provider: config.Provider{Kind: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", Default: "claude-sonnet-5-5"}},
		{Name: "openai", Provider: config.Provider{Kind: "openai-responses", KeyEnv: "OPENAI_API_KEY", Default: "gpt-6-sol"}},
		{Name: "gemini", Provider: config.Provider{Kind: "gemini", KeyEnv: "GEMINI_API_KEY", Default: "gemini-3.8-flash"}},
		{Name: "openrouter", Provider: config.Provider{Kind: "openai", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY", Default: "openrouter/auto"}},
		{Name: "huggingface", Provider: config.Provider{Kind: "openai", BaseURL: "https://router.huggingface.co/v1", KeyEnv: "HF_TOKEN"}},
		{Name: "ollama", Provider: config.Provider{Kind: "ollama", BaseURL: "http://localhost:11434"}},
		{Name: "llamacpp", Provider: config.Provider{Kind: "openai", BaseURL: "http://localhost:8080/v1"}},
		{Name: "vllm", Provider: config.Provider{Kind: "openai", BaseURL: "http://localhost:8000/v1"}},
		{Name: "lmstudio", Provider: config.Provider{Kind: "openai", BaseURL: "http://localhost:1234/v1"}},
	}
}

// Providers lists the configured providers by name, then the presets, each
// overlaid with what the settings say of it.
func (a *App) Providers() []Provider {
	list := []Provider{}
	known := presets()
	for _, name := range slices.Sorted(maps.Keys(a.Config.Providers)) {
		if !slices.ContainsFunc(known, func(p Provider) bool { return p.Name == name }) {
			list = append(list, Provider{Name: name, Provider: a.Config.Providers[name]})
		}
	}
	for _, p := range known {
		if set, ok := a.Config.Providers[p.Name]; ok {
			p.Provider = overlay(p.Provider, set)
		}
		list = append(list, p)
	}
	for i := range list {
		list[i].Ready, list[i].Need = ready(list[i].Provider)
	}
	return list
}

// overlay adds what the settings say of a preset.
func overlay(base, set config.Provider) config.Provider {
	if set.BaseURL == "" {
		set.BaseURL = base.BaseURL
	}
	if set.KeyEnv == "" && set.KeyCommand == "" {
		set.KeyEnv = base.KeyEnv
	}
	if set.Default == "" {
		set.Default = base.Default
	}
	return set
}

func ready(p config.Provider) (ok bool, need string) {
	switch {
	case p.KeyCommand != "", p.KeyEnv == "", os.Getenv(p.KeyEnv) != "":
		return true, ""
	}
	return false, "set " + p.KeyEnv
}

// Choice is a model and why it was taken.
type Choice struct {
	Model llm.Model
	Why   string // for people; empty if it was named
}

// Model returns the model with the name "provider/model", or the one the
// session had, or the one of the settings, or the first that is configured.
func (a *App) Model(name, had string) (Choice, error) {
	for _, n := range []string{name, had, a.Config.Model} {
		if n != "" {
			m, err := a.named(n)
			return Choice{Model: m}, err
		}
	}
	for _, p := range a.Providers() {
		_, set := a.Config.Providers[p.Name]
		if p.Ready && p.Default != "" && (set || p.KeyEnv != "") {
			m, err := a.build(p, p.Default)
			why := fmt.Sprintf("no model named; taking %s/%s (choose with --model, see 'inspan models')", p.Name, p.Default)
			return Choice{Model: m, Why: why}, err
		}
	}
	return Choice{}, configError{errors.New("no model is configured\n" + howToGetOne)}
}

const howToGetOne = `To get one, do one of these:
  export ANTHROPIC_API_KEY=...          a key from console.anthropic.com, then run again
  export OPENAI_API_KEY=...             a key from platform.openai.com, then run again
  inspan run --model ollama/MODEL ...   a model of a local Ollama, without a key
To try inspan offline, without any key:
  inspan demo
  inspan run --model script "bash: ls"`

func (a *App) named(name string) (llm.Model, error) {
	provider, model, _ := strings.Cut(name, "/")
	if provider == script.Provider {
		return scripted(model)
	}
	var names []string
	for _, p := range a.Providers() {
		names = append(names, p.Name)
		if p.Name != provider {
			continue
		}
		if model == "" {
			model = p.Default
		}
		if model == "" {
			return nil, configError{fmt.Errorf("model %q: name it as %s/MODEL", name, provider)}
		}
		if !p.Ready {
			return nil, configError{fmt.Errorf("model %q: no key: %s, or set key_command for the provider in %s", name, p.Need, a.ConfigPath)}
		}
		return a.build(p, model)
	}
	hint := ""
	if near := tool.Nearest(provider, append(names, script.Provider)); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	}
	return nil, configError{fmt.Errorf("model %q: no provider %q%s; models are named provider/model, see 'inspan models'", name, provider, hint)}
}

// scripted is the offline model: with no name it follows commands in the
// prompt, otherwise the name is a script file.
func scripted(file string) (llm.Model, error) {
	if file == "" || file == "commands" {
		return &script.Model{}, nil
	}
	archive, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	m, err := script.Parse(archive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	m.ID = file
	return m, nil
}

// build makes the adapter for the wire a provider speaks.
func (a *App) build(p Provider, id string) (llm.Model, error) {
	known := p.Models[id]
	at := llm.Endpoint{
		Provider: p.Name, ID: id, BaseURL: p.BaseURL, Key: key(p.Provider),
		Window: known.Window, MaxOutput: known.MaxOutput, Images: known.Images,
	}
	if known.Price != nil {
		at.Prices = llm.Prices{*known.Price}
	}
	switch p.Kind {
	case "anthropic":
		return (*anthropic.Model)(&at), nil
	case "openai":
		return (*openai.Model)(&at), nil
	case "openai-responses":
		return (*openai.Responses)(&at), nil
	case "gemini":
		return (*gemini.Model)(&at), nil
	case "ollama":
		return (*ollama.Model)(&at), nil
	}
	return nil, fmt.Errorf("provider %s: unknown kind %q", p.Name, p.Kind)
}

// keyTimeout bounds a key command; a person may have to touch a device.
const keyTimeout = 30 * time.Second

// key returns what gets the provider's key, nil if it has none.
func key(p config.Provider) func(context.Context) (string, error) {
	switch {
	case p.KeyCommand != "":
		return func(ctx context.Context) (string, error) {
			ctx, cancel := context.WithTimeout(ctx, keyTimeout)
			defer cancel()
			return runKeyCommand(ctx, p.KeyCommand)
		}
	case p.KeyEnv != "":
		return func(context.Context) (string, error) { return os.Getenv(p.KeyEnv), nil }
	}
	return nil
}

// runKeyCommand returns what the command prints.
func runKeyCommand(ctx context.Context, command string) (string, error) {
	key, err := output(ctx, os.Environ(), "sh", "-c", command)
	if err != nil {
		return "", fmt.Errorf("key_command: %w", err)
	}
	return key, nil
}

package web

import (
	"context"
	"fmt"
	"os"

	"github.com/inspan/inspan/internal/safety/netguard"
)

// Settings are the settings of the tools that reach servers.
type Settings struct {
	Off bool `toml:"off"` // no web tools
	// brave, tavily, exa, searxng, anthropic, openai or gemini; empty means there is no web_search
	Search  string            `toml:"search"`
	BaseURL string            `toml:"search_url"`     // address of the engine; empty: the vendor's own
	Model   string            `toml:"search_model"`   // model that searches, for anthropic, openai and gemini
	KeyEnv  string            `toml:"search_key_env"` // environment variable that holds its key
	Secrets map[string]Secret `toml:"secrets"`        // that http_request may send, by the name the model uses
}

// Secret is a value that requests may carry and no model sees.
type Secret struct {
	Env   string   `toml:"env"`   // environment variable that holds it
	Hosts []string `toml:"hosts"` // where it may go, as "api.example.com" or "*.example.com"
	Plain bool     `toml:"plain"` // also over http without TLS
}

// Check returns an error for invalid settings; it begins with the key.
func (w Settings) Check() error {
	if w.Search != "" {
		if err := w.Engine().Check(); err != nil {
			return fmt.Errorf("search: %w", err)
		}
	}
	for name, s := range w.Secrets {
		if s.Env == "" || len(s.Hosts) == 0 {
			return fmt.Errorf("secrets.%s: it needs env, the variable that holds it, and hosts, where it may go", name)
		}
		for _, host := range s.Hosts {
			if err := netguard.CheckHost(host); err != nil {
				return fmt.Errorf("secrets.%s: %w", name, err)
			}
		}
	}
	return nil
}

// Engine returns the search engine. Its key is read for each search.
func (w Settings) Engine() Search {
	s := Search{Provider: w.Search, Model: w.Model, BaseURL: w.BaseURL}
	if w.KeyEnv != "" {
		s.Key = fromEnv(w.KeyEnv)
	}
	return s
}

// Value returns the secret.
func (s Secret) Value(ctx context.Context) (string, error) { return fromEnv(s.Env)(ctx) }

func fromEnv(name string) func(context.Context) (string, error) {
	return func(context.Context) (string, error) {
		value := os.Getenv(name)
		if value == "" {
			return "", fmt.Errorf("the environment variable %s is not set", name)
		}
		return value, nil
	}
}

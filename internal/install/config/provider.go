package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// Router chooses among models by rules.
type Router struct {
	Routes  map[string]string `toml:"routes"`  // "provider/model" by the name that rules use
	Rules   []router.Rule     `toml:"rules"`   // the first that matches decides; none: the route "cloud" for hard tasks, "local" for all others
	Begin   string            `toml:"begin"`   // how a task counts before its run shows how hard it is: "local" or "cloud"; empty: by the judge, or by how it looks
	Judge   string            `toml:"judge"`   // "provider/model" that rates how hard a new task is; empty: none
	Private []string          `toml:"private"` // regular expressions of text that must stay on local models, beside secrets
}

// Models returns the settings that name a model, by their keys.
func (c Config) Models() (out []Setting) {
	add := func(key, name string) {
		if name != "" {
			out = append(out, Setting{Key: key, Value: name})
		}
	}
	add("model", c.Model)
	add("agents.small", c.Agents.Small)
	for _, name := range c.Fallback {
		add("fallback", name)
	}
	if c.Reviewer != nil {
		add("reviewer.model", c.Reviewer.Model)
	}
	if c.Router != nil {
		add("router.judge", c.Router.Judge)
		for _, route := range slices.Sorted(maps.Keys(c.Router.Routes)) {
			add("router.routes."+bare(route), c.Router.Routes[route])
		}
	}
	return out
}

// Provider is a provider of models.
type Provider struct {
	Kind       string `toml:"kind"`        // wire, one of Kinds; empty: that of the name, else openai
	BaseURL    string `toml:"base_url"`    // empty: the vendor's own
	KeyEnv     string `toml:"key_env"`     // environment variable that holds the key
	KeyCommand string `toml:"key_command"` // command that prints the key
	// a login ('inspan models login') instead of a key; nil means a key, or none
	OAuth     *ProviderOAuth   `toml:"oauth"`
	Dialect   string           `toml:"dialect"`             // which server speaks the wire; empty: detected by address
	Region    string           `toml:"region"`              // of a cloud
	Project   string           `toml:"project"`             // of Google Cloud
	Local     *bool            `toml:"local"`               // data sent to it stays local; not set: detected by address
	Requests  int              `toml:"requests_per_minute"` // limit of inspan; 0: none
	Tokens    int              `toml:"tokens_per_minute"`   // of prompts, limit of inspan; 0: none
	Deadlines Deadlines        `toml:"deadlines"`           // of one request
	Default   string           `toml:"default"`             // default model
	Models    map[string]Model `toml:"models"`              // facts about single models
}

// Deadlines bound one request, as "90s"; a phase that is not set has the provider's default. See llm.Deadlines.
type Deadlines struct {
	Connect   time.Duration `toml:"connect"`
	FirstByte time.Duration `toml:"first_byte"`
	Idle      time.Duration `toml:"idle"`
	Total     time.Duration `toml:"total"`
}

// Model adds or corrects facts about a model in the catalogue.
type Model struct {
	Window    int        `toml:"window"`     // context window in tokens
	MaxOutput int        `toml:"max_output"` // longest reply in tokens
	Price     *llm.Price `toml:"price"`      // US dollars per million tokens
	Images    bool       `toml:"images"`     // accepts images
	NoTools   bool       `toml:"no_tools"`   // no tool support; tools go into the prompt
}

// Kinds lists the wire protocols of providers: Anthropic Messages, OpenAI Chat Completions and compatible ones,
// OpenAI Responses, Gemini's generateContent, and Ollama's own API.
func Kinds() []string {
	return []string{"anthropic", "openai", "openai-responses", "gemini", "ollama"}
}

// check returns an error for each invalid setting; it begins with the key.
func (p Provider) check() error {
	var address error
	if u, err := url.Parse(p.BaseURL); p.BaseURL != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		address = fmt.Errorf("base_url: %q is not an address such as \"http://localhost:8000/v1\"", p.BaseURL)
	}
	dialects := map[string][]string{"anthropic": {"anthropic", "bedrock", "vertex"}, "gemini": {"vertex"}, "ollama": {"ollama"}}
	known, few := dialects[p.Kind]
	if !few {
		known = []string{p.Dialect}
	}
	out := []error{address, oneOf("dialect", p.Dialect, known...)}
	for _, d := range []struct {
		key string
		time.Duration
	}{{"connect", p.Deadlines.Connect}, {"first_byte", p.Deadlines.FirstByte}, {"idle", p.Deadlines.Idle}, {"total", p.Deadlines.Total}} {
		out = append(out, notNegative("deadlines."+d.key, d.Duration))
	}
	out = append(out, notNegative("requests_per_minute", p.Requests), notNegative("tokens_per_minute", p.Tokens))
	for _, id := range slices.Sorted(maps.Keys(p.Models)) {
		m, key := p.Models[id], "models."+bare(id)
		out = append(out,
			notNegative(key+".window", m.Window), notNegative(key+".max_output", m.MaxOutput), keyed(key+".price", checkPrice(m.Price)))
	}
	return errors.Join(out...)
}

func checkPrice(p *llm.Price) error {
	if p == nil {
		return nil
	}
	if min(p.Input, p.CacheRead, p.CacheWrite, p.CacheHour, p.Output) < 0 || p.Above < 0 {
		return errors.New("prices can't be negative")
	}
	for _, tier := range slices.Sorted(maps.Keys(p.Tiers)) {
		if p.Tiers[tier] <= 0 {
			return fmt.Errorf("tiers.%s: %g is not a factor; 0.5 halves the price", tier, p.Tiers[tier])
		}
	}
	if _, err := time.Parse(time.DateOnly, p.From); p.From != "" && err != nil {
		return fmt.Errorf("from: %q is not a day such as 2026-11-21", p.From)
	}
	return checkPrice(p.Long)
}

// Package providers knows the models that a person can have: who provides them, what they are
// called, with which keys and limits they are asked, and which stands in for which.
//
// # Models over models
//
// An agent's model may consist of several. internal/install/providers builds it from the settings, from outside in:
//
//	retry            sends again, waits                           root, for every agent
//	  recorder       writes down                                  --record
//	   checks        refuse inputs and outputs                    [[check]]
//	    budget       dollars of a day                             max_cost_per_day
//	      router     chooses, falls back                          fallback, [router]
//	        limit    requests and tokens a minute, pauses         one for each provider
//	          profile    effort and schemas by a table            [[profiles]]
//	            prompted   tools for models without               as the model turns out
//	              adapter  the wire
//
// The kind of a failure alone decides the next step (llm.Kind.Policy):
//
//   - retry: transient, rate_limited, overloaded, timeout, stream_cut; retry waits and asks again; after the second
//     failure in a row, or a long wait, the router asks the next model
//   - await: quota; the router asks the next model; retry waits, for hours in unattended runs
//   - renew: auth_expired; retry asks once more, with a fresh key
//   - heal: invalid_history; the loop simplifies reasoning, then images, then calls and results (healed)
//   - shrink: payload_too_large; the loop drops images
//   - compact: context_overflow; the router asks a model with a larger window; else the loop compacts; else the run
//     stops
//   - elsewhere: auth, billing, model_not_found, no_reply, tools_unsupported; the router asks the next model; for
//     tools the prompt describes them; else the run stops
//   - stop: content_refused, invalid_request, budget, panic, cancelled; the run stops
//
// Every wait is a failed event with its seconds, so a wait outlasts the process. The next driver waits for the rest.
//
// One place bounds each wait, and each ends with its context:
//
//   - before a request is sent again: retry_for: a minute; unattended 15 minutes; for a quota, unattended, 25 hours.
//     All waits of one request together; retry.go
//   - left over in the log of a session: the same bound, of the agent that resumes it; if more is left, it asks the
//     model at once; Retry.Remaining in retry.go
//   - for the rate limit of a key, or the end of its pause: a minute; a longer wait fails with the time, and sends
//     nothing; llm/limit
//   - of a failed model, in the router: an hour; llm/router/health.go
//
// A vendor can pause a key for an hour, or 25 hours for a quota. Every five minutes one request of all processes
// tries anyway. If it succeeds, the pause is over. One place reads the vendor's demands (wire.RetryAfter,
// wire.Reply.Complete) and caps them at 31 days. If the demanded wait exceeds retry_for, the run ends at once, with
// the time in its message.
package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/cloud"
	"github.com/inspan/inspan/llm/openai"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// Set is the models of an installation and their providers. Its sessions share what is learned about models.
type Set struct {
	*config.Installation
	Token  func(ctx context.Context, provider string, o config.ProviderOAuth) (string, error) // of providers with a login
	Keys   Keys                                                                               // nil means no stored keys
	Note   func(name, key string)                                                             // is called with each key that a command printed
	Spent  func(context.Context) (float64, error)                                             // US dollars spent today (UTC)
	Given  llm.Model                                                                          // from the program that embeds the agent; nil means none
	Prices *catalog.Book                                                                      // the person's own price book; nil means the built-in one
	Advice Advice

	health router.Health
	google cloud.Google
}

// Advice holds texts about choosing a model, which differ by front end. They are appended to errors; empty means
// nothing is.
type Advice struct {
	NoModel string // no model is configured
	Choose  string // a default model was chosen, or the chosen one is wrong
	Setup   string // stores a key, as in "run 'inspan setup'"
}

// KeyVariables returns the environment variables that hold provider keys.
func (s *Set) KeyVariables() []string {
	var out []string
	for _, p := range s.known() {
		if p.KeyEnv != "" {
			out = append(out, p.KeyEnv)
		}
	}
	return out
}

// Provider is a provider of models, according to the settings and the environment.
type Provider struct {
	Name string
	config.Provider
	Ready bool   // it has a key, or needs none
	Need  string // what is missing, for people
	book  *catalog.Book
}

// presets returns the providers that need no settings except a key. The order is that in which a default model
// is chosen. Servers with the Chat Completions API come from the table of dialects.
func presets() []Provider {
	list := []Provider{
		{Name: "anthropic", Provider: config.Provider{Kind: "anthropic", KeyEnv: "ANTHROPIC_API_KEY", Default: "claude-sonnet-5-5"}},
		{Name: "openai", Provider: config.Provider{Kind: "openai-responses", KeyEnv: "OPENAI_API_KEY", Default: "gpt-6-sol"}},
		{Name: "gemini", Provider: config.Provider{Kind: "gemini", KeyEnv: "GEMINI_API_KEY", Default: "gemini-3.8-flash"}},
		{Name: "ollama", Provider: config.Provider{Kind: "ollama", BaseURL: ollamaAt(os.Getenv("OLLAMA_HOST"))}},
	}
	defaults := map[string]string{"openrouter": "openrouter/auto"}
	for _, d := range openai.Dialects() {
		if d.BaseURL == "" || d.Name == "openai" {
			continue
		}
		list = append(list, Provider{Name: d.Name, Provider: config.Provider{
			Kind: "openai", Dialect: d.Name, BaseURL: d.BaseURL, KeyEnv: d.KeyEnv, Default: defaults[d.Name],
		}})
	}
	return list
}

// ollamaAt returns the address of the server that OLLAMA_HOST names, as Ollama's own client reads it: a host, a
// port or both, or an address. Addresses that listen on all networks mean this machine.
func ollamaAt(named string) string {
	scheme, rest, some := strings.Cut(strings.TrimSpace(named), "://")
	if !some {
		scheme, rest = "http", scheme
	}
	usual := map[string]string{"http": "80", "https": "443"}[scheme]
	if !some {
		usual = "11434"
	}
	at, path, _ := strings.Cut(rest, "/")
	host, port, err := net.SplitHostPort(at)
	if err != nil {
		host, port = strings.Trim(at, "[]"), usual
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return strings.TrimRight(scheme+"://"+net.JoinHostPort(host, cmp.Or(port, usual))+"/"+path, "/")
}

// List lists the configured providers by name, then the presets, each overlaid with its settings.
func (s *Set) List() []Provider {
	list := s.known()
	for i := range list {
		list[i].Ready, list[i].Need = s.ready(list[i].Name, list[i].Provider)
	}
	return list
}

// known is List without checking which are ready.
func (s *Set) known() []Provider {
	list := []Provider{}
	for _, name := range slices.Sorted(maps.Keys(s.Config.Providers)) {
		if p := s.Config.Providers[name]; !preset(name) {
			p.Kind = cmp.Or(p.Kind, "openai") // the most common API
			list = append(list, Provider{Name: name, Provider: p, book: s.book()})
		}
	}
	for _, p := range presets() {
		if set, ok := s.Config.Providers[p.Name]; ok {
			p.Provider = overlay(p.Provider, set)
		}
		p.book = s.book()
		list = append(list, p)
	}
	return list
}

// Aim gives the provider of a model the address and the key from the environment.
func (s *Set) Aim(model string) error { return s.Installation.Aim(model, s.Route) }

// Check returns an error for each configured provider that can't be used; it begins with the key. Code that
// loads settings calls it.
func Check(c config.Config) error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if p := c.Providers[name]; p.Kind == "" && p.BaseURL == "" && !preset(name) {
			out = append(out, fmt.Errorf("providers.%s.base_url: it is missing; inspan knows no provider of this name", config.Key(name)))
		}
	}
	return errors.Join(out...)
}

// preset reports whether a provider needs no settings except a key.
func preset(name string) bool {
	return slices.ContainsFunc(presets(), func(p Provider) bool { return p.Name == name })
}

// overlay overlays a preset with its settings.
func overlay(base, set config.Provider) config.Provider {
	set.Kind = cmp.Or(set.Kind, base.Kind)
	if set.BaseURL == "" {
		set.BaseURL = base.BaseURL
	}
	if set.KeyEnv == "" && set.KeyCommand == "" && set.OAuth == nil {
		set.KeyEnv = base.KeyEnv
	}
	if set.Default == "" {
		set.Default = base.Default
	}
	if set.Dialect == "" && set.Kind == base.Kind {
		set.Dialect = base.Dialect
	}
	return set
}

// Keeps reports whether requests to a model stay on the user's machine or network. Requests to a vendor's
// commercial model don't, whatever the address: a local gateway forwards them.
func (p Provider) Keeps(id string) bool {
	_, sold := p.prices().Sold(id)
	return p.Stays() && (p.Local != nil || !sold)
}

// prices returns the price book in use.
func (p Provider) prices() *catalog.Book {
	if p.book == nil {
		return catalog.BuiltIn()
	}
	return p.book
}

// Stays reports whether requests to the provider stay on the user's machine or network, judging by the address.
// LiteLLM forwards them.
func (p Provider) Stays() bool {
	switch {
	case p.Local != nil:
		return *p.Local
	case p.Name == script.Provider:
		return true
	case p.Dialect == "litellm":
		return false
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil || p.BaseURL == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return p.here() || err == nil && ip.IsPrivate()
}

// here reports whether the provider's server runs on this machine, judging by its address.
func (p Provider) here() bool {
	u, err := url.Parse(p.BaseURL)
	if err != nil || p.BaseURL == "" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return strings.EqualFold(u.Hostname(), "localhost") || err == nil && ip.IsLoopback()
}

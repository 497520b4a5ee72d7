package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// Choice is a model and the reason for choosing it.
type Choice struct {
	Model llm.Model
	Why   string // for people; empty if the model was named
}

// Model returns the model with the name "provider/model" or a name for [Set.Route], otherwise that of the
// resumed session, that of the settings, or the first configured one. The fallbacks of the settings follow it.
// A local server is asked for its window. A model that the embedding program provides takes precedence over all
// except another name, and has no fallbacks.
func (s *Set) Model(ctx context.Context, name, had string) (Choice, error) {
	if s.Given != nil && (name == "" || name == s.Given.Info().Route()) {
		return Choice{Model: s.Given}, nil
	}
	for _, n := range []string{name, had, s.Config.Model} {
		if n != "" {
			m, p, err := s.named(ctx, n)
			if errors.Is(err, errUnknown) && !strings.Contains(n, "/") {
				err = s.atHome(ctx, n, err)
			}
			if err != nil {
				return Choice{}, err
			}
			why := ""
			if at := p.Name + "/" + m.Info().Model; !strings.Contains(n, "/") && p.Name != n && m.Info().Model != n {
				why = fmt.Sprintf("%s means the model %s", n, at)
			}
			return s.choice(ctx, m, p, why)
		}
	}
	if p, found := s.first(); found {
		m, err := s.build(ctx, p, p.Default)
		if err != nil {
			return Choice{}, err
		}
		return s.choice(ctx, m, p, fmt.Sprintf("no model named; using %s/%s%s", p.Name, p.Default, s.Advice.Choose))
	}
	return Choice{}, config.Error{Err: s.none()}
}

// errNoModel says that no model is configured.
var errNoModel = errors.New("no model is configured")

func (s *Set) none() error { return fmt.Errorf("%w%s", errNoModel, s.Advice.NoModel) }

// Missing returns the reason why the named model, that of the settings, or any model can't be used: none is
// configured, or its provider has no key. Nil means no known obstacle. It sends no request.
func (s *Set) Missing(name string) error {
	name = cmp.Or(name, s.Config.Model)
	provider, _, _ := strings.Cut(name, "/")
	switch {
	case s.Given != nil, provider == script.Provider, provider == router.Provider:
		return nil
	case name != "":
		if p, _, err := s.find(name); err == nil {
			return s.keyless(name, p)
		}
		return nil // another check reports it
	}
	if _, found := s.first(); !found {
		return config.Error{Err: s.none()}
	}
	return nil
}

// Known returns the reason why the named model can't be used: its provider is unknown or has no key. It sends no
// request.
func (s *Set) Known(name string) error {
	if provider, _, _ := strings.Cut(name, "/"); s.Given != nil || provider == script.Provider || provider == router.Provider {
		return nil
	}
	p, _, err := s.find(name)
	if err != nil {
		return err
	}
	return s.keyless(name, p)
}

// Ready checks a model, by name or that of the settings or the default, before its first use. It returns its
// route, what is missing in a few words, and the reason with a remedy. It only contacts local servers.
func (s *Set) Ready(ctx context.Context, name string) (route, lacks string, why error) {
	route = cmp.Or(name, s.Config.Model)
	provider, _, _ := strings.Cut(route, "/")
	if err := s.Missing(route); errors.Is(err, errNoModel) {
		return "", "no model", err
	}
	p, _ := s.first()
	switch {
	case s.Given != nil, provider == script.Provider, provider == router.Provider:
		return route, "", nil
	case route == "":
		route = p.Name + "/" + p.Default
	default:
		if p, _, why = s.find(route); why != nil {
			return route, "unknown model", why
		}
	}
	if why = s.keyless(route, p); why != nil {
		return route, "no key for " + p.Name, why
	}
	if !p.Stays() {
		return route, "", nil
	}
	asking, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if e := llm.AsError(s.discover(asking, p).Err); e != nil && e.Status == 0 {
		why = e
		if failed, remedy := s.unreached(p, e); failed != "" {
			why = errors.New(failed + "; " + remedy)
		}
		return route, p.Name + " does not answer", why
	}
	return route, "", nil
}

// first returns the provider that is used if no model is named.
func (s *Set) first() (Provider, bool) {
	for _, p := range s.List() {
		_, set := s.Config.Providers[p.Name]
		if p.Ready && p.Default != "" && (set || p.KeyEnv != "") {
			return p, true
		}
	}
	return Provider{}, false
}

// keyless returns an error if the model's provider lacks a key, nil if it has or needs none.
func (s *Set) keyless(name string, p Provider) error {
	if p.Ready {
		return nil
	}
	return config.Error{Err: fmt.Errorf("model %q: %w: %s%s, or set key_command for the provider in %s",
		name, errNoKey, p.Need, s.orSetup(", or "), s.ConfigPath)}
}

func (s *Set) choice(ctx context.Context, m llm.Model, p Provider, why string) (Choice, error) {
	if len(s.Config.Fallback) > 0 && p.Name != router.Provider {
		chain, err := s.chain(ctx, m, p)
		return Choice{Model: chain, Why: why}, err
	}
	return Choice{Model: m, Why: why}, nil
}

// errNoKey says that the key of a provider is missing.
var errNoKey = errors.New("no key")

// named returns the model with the name, and its provider.
func (s *Set) named(ctx context.Context, name string) (llm.Model, Provider, error) {
	provider, model, _ := strings.Cut(name, "/")
	switch provider {
	case script.Provider:
		m, err := scripted(model)
		return m, Provider{Name: provider}, err
	case router.Provider:
		m, err := s.routed(ctx, cmp.Or(model, "auto"), s.named)
		return m, Provider{Name: provider}, err
	}
	p, model, err := s.find(name)
	if err != nil {
		return nil, p, err
	}
	if err := s.keyless(name, p); err != nil {
		return nil, p, err
	}
	m, err := s.build(ctx, p, model)
	return m, p, err
}

// described returns the model with the name for its description only: it needs no key, and no request is sent.
func (s *Set) described(ctx context.Context, name string) (llm.Model, Provider, error) {
	if provider, _, _ := strings.Cut(name, "/"); provider == script.Provider {
		return s.named(ctx, name)
	}
	p, model, err := s.find(name)
	if err != nil {
		return nil, p, err
	}
	at := s.Endpoint(p, model)
	m, err := adapter(p.Kind, &at)
	return m, p, err
}

// find returns the provider and the id of the named model.
func (s *Set) find(name string) (Provider, string, error) {
	route, err := s.Route(name)
	if err != nil {
		return Provider{}, "", err
	}
	provider, model, _ := strings.Cut(route, "/")
	names := []string{script.Provider, router.Provider}
	for _, p := range s.List() {
		names = append(names, p.Name)
		if p.Name != provider {
			continue
		}
		if model = cmp.Or(model, p.Default); model == "" {
			return p, "", config.Error{Err: fmt.Errorf("model %q: name it as %s/MODEL", name, provider)}
		}
		return p, model, nil
	}
	for _, k := range every(s.List()) {
		names = append(names, k.id)
	}
	if strings.Contains(name, "://") {
		return Provider{}, "", config.Error{Err: fmt.Errorf(
			"model %q: %w model, but the address of a server; name the server, and then a model of it: "+
				"inspan config set providers.home.base_url=%s model=home/MODEL", name, errUnknown, name)}
	}
	hint, what := "", "provider"
	if route == provider {
		what = "provider or known model"
	}
	if near := text.Nearest(provider, names); near != "" {
		hint = fmt.Sprintf("; did you mean %q?", near)
	} else {
		hint = "; there are " + strings.Join(s.usable(), ", ") + " and others"
	}
	return Provider{}, "", config.Error{Err: fmt.Errorf("model %q: %w %s %q%s; models are named provider/model, see 'inspan models'",
		name, errUnknown, what, provider, hint)}
}

// errUnknown says that the provider or model is unknown.
var errUnknown = errors.New("no")

// atHome returns the error about an unknown name, with suggestions from local servers.
func (s *Set) atHome(ctx context.Context, name string, err error) error {
	var routes []string
	for _, f := range s.Discover(ctx) {
		for _, m := range f.Models {
			if tagged(m.Model, name) {
				routes = append(routes, f.Provider.Name+"/"+m.Model)
			}
		}
	}
	if len(routes) == 0 {
		return err
	}
	return config.Error{Err: fmt.Errorf("model %q: %w provider or known model %q; did you mean %s?",
		name, errUnknown, name, strings.Join(routes[:min(3, len(routes))], " or "))}
}

// tagged reports whether a name is that of a server's model, ignoring its tag or its owner.
func tagged(id, name string) bool {
	id, name = strings.ToLower(id), strings.ToLower(name)
	short := id[strings.LastIndexByte(id, '/')+1:]
	bare, _, _ := strings.Cut(short, ":")
	return slices.Contains([]string{id, short, bare}, name)
}

// usable returns the providers that a person may have meant: configured ones and those with a key, filled up
// with the most common ones.
func (s *Set) usable() (out []string) {
	list := s.List()
	for _, p := range list {
		if _, set := s.Config.Providers[p.Name]; set || p.Ready && p.KeyEnv != "" {
			out = append(out, p.Name)
		}
	}
	for _, p := range list[:min(4, len(list))] {
		if len(out) == 0 || len(out) < 4 && !slices.Contains(out, p.Name) {
			out = append(out, p.Name)
		}
	}
	return out
}

// CheckModels returns an error for each setting that names an unknown model, as far as that is known without a
// request; the error begins with the key. Code that changes settings calls it.
func CheckModels(c config.Config) error {
	var out []error
	s := &Set{Installation: &config.Installation{Config: c}}
	_ = s.Aim("") // the environment may set a provider's address; an invalid model is reported below
	for _, m := range c.Models() {
		if err := s.Resolves(m.Value); err != nil {
			out = append(out, fmt.Errorf("%s: %w", m.Key, err))
		}
	}
	return errors.Join(out...)
}

// Resolves returns the reason why a name can't be a model; nil means it may be one. It sends no request.
func (s *Set) Resolves(name string) error {
	if provider, _, _ := strings.Cut(name, "/"); s.Given != nil || provider == script.Provider || provider == router.Provider {
		return nil
	}
	_, _, err := s.find(name)
	return err
}

// Doubt returns a warning that the named model is unknown at its provider, with the known ones; empty means it is
// known, or nothing is known.
func (s *Set) Doubt(name string) string {
	p, id, err := s.find(name)
	ids := s.book().IDs(p.Name)
	if _, set := p.Models[id]; err != nil || set || len(ids) == 0 || s.book().Find(p.Name, id).Window > 0 {
		return ""
	}
	near := words.Near(id, ids)
	if len(near) == 0 {
		near = ids[:min(3, len(ids))]
	}
	return fmt.Sprintf("inspan does not know a model %q of %s; it knows %s; 'inspan models %s' lists all",
		id, p.Name, strings.Join(near, ", "), p.Name)
}

// scripted returns the offline model: without a name it follows commands in the prompt, otherwise the name is a
// script file.
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

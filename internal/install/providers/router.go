package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// namer returns the model with a name, and its provider.
type namer func(ctx context.Context, name string) (llm.Model, Provider, error)

// routed returns the router of the settings. choice is "auto", or the name of a route to use whatever the rules
// say.
func (s *Set) routed(ctx context.Context, choice string, named namer) (*router.Model, error) {
	c := s.Config.Router
	if c == nil {
		return nil, config.Error{Err: fmt.Errorf("model \"router/%s\": no [router] in %s", choice, s.ConfigPath)}
	}
	m := &router.Model{ID: choice, Rules: c.Rules, Begin: c.Begin, Private: c.Private, Health: &s.health}
	if choice != "auto" {
		m.Force = choice
	}
	for _, name := range slices.Sorted(maps.Keys(c.Routes)) {
		r, err := route(ctx, name, c.Routes[name], named)
		if err != nil {
			return nil, fmt.Errorf("router.routes.%s: %w", name, err)
		}
		m.Routes = append(m.Routes, r)
	}
	if c.Judge != "" {
		r, err := route(ctx, "judge", c.Judge, named)
		if err != nil {
			return nil, fmt.Errorf("router.judge: %w", err)
		}
		m.Judge = &r
	}
	if len(m.Rules) == 0 {
		m.Rules = localFirst(m.Routes)
	}
	if err := m.Check(); err != nil {
		return nil, config.Error{Err: fmt.Errorf("%s: router: %w", s.ConfigPath, err)}
	}
	return m, nil
}

// localFirst returns default rules for a router without rules: hard tasks go to the route "cloud" first, others
// to "local". Without these two routes there are no rules, and routes are tried in order.
func localFirst(routes []router.Route) []router.Rule {
	for _, name := range []string{"local", "cloud"} {
		if !slices.ContainsFunc(routes, func(r router.Route) bool { return r.Name == name }) {
			return nil
		}
	}
	return []router.Rule{
		{Name: "hard", When: router.Cond{Hard: new(true)}, Use: []string{"cloud", "local"}},
		{Name: "easy", When: router.Cond{Hard: new(false)}, Use: []string{"local", "cloud"}},
	}
}

// Hybrid returns a router of a local model and a cloud model, or that of the settings if neither is named. It
// is only for its decisions: its models may lack keys.
func (s *Set) Hybrid(ctx context.Context, local, cloud string) (*router.Model, error) {
	if local == "" && cloud == "" && s.Config.Router != nil {
		return s.routed(ctx, "auto", s.described)
	}
	if local == "" || cloud == "" {
		return nil, config.Error{Err: fmt.Errorf("name both a local and a cloud model, or set [router] in %s", s.ConfigPath)}
	}
	m := &router.Model{ID: "hybrid", Health: &s.health}
	for _, as := range [][2]string{{"local", local}, {"cloud", cloud}} {
		r, err := route(ctx, as[0], as[1], s.described)
		if err != nil {
			return nil, err
		}
		r.Local = as[0] == "local"
		m.Routes = append(m.Routes, r)
	}
	m.Rules = localFirst(m.Routes)
	return m, nil
}

func route(ctx context.Context, name, model string, named namer) (router.Route, error) {
	if provider, _, _ := strings.Cut(model, "/"); provider == router.Provider {
		return router.Route{}, config.Error{Err: errors.New("a route of the router can't be a router")}
	}
	m, p, err := named(ctx, model)
	if err != nil {
		return router.Route{}, err
	}
	return router.Route{Name: name, Model: m, Local: p.Keeps(m.Info().Model)}, nil
}

// chain adds the fallback models of the settings to a model. They are tried in order when it fails. Those
// without a key are left out. If the first model is in a cloud, the fallbacks may see the same content; after a
// local one, secrets stay local.
func (s *Set) chain(ctx context.Context, first llm.Model, p Provider) (llm.Model, error) {
	m := &router.Model{Routes: []router.Route{{Name: first.Info().Route(), Model: first, Local: true}}, Health: &s.health}
	for _, name := range s.Config.Fallback {
		r, err := route(ctx, name, name, s.named)
		switch {
		case errors.Is(err, errNoKey), name == first.Info().Route(), err == nil && r.Model.Info().Route() == first.Info().Route():
			continue
		case err != nil:
			return nil, fmt.Errorf("fallback: %w", err)
		}
		r.Local = r.Local || !p.Keeps(first.Info().Model)
		m.Routes = append(m.Routes, r)
	}
	if len(m.Routes) == 1 {
		return first, nil
	}
	if err := m.Check(); err != nil {
		return nil, config.Error{Err: fmt.Errorf("fallback: %w", err)}
	}
	return m, nil
}

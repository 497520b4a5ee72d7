package providers

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/limit"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/llm/script"
)

// Choose returns the model of a session, or a player of the recorded file cassette. Name and had are as for
// [Set.Model].
func (s *Set) Choose(ctx context.Context, cassette, name, had string, warn func(string)) (llm.Model, error) {
	if cassette == "" {
		choice, err := s.Model(ctx, name, had)
		if err == nil && choice.Why != "" {
			warn(choice.Why)
		}
		return choice.Model, err
	}
	f, err := os.Open(cassette)
	if err != nil {
		return nil, config.Error{Err: err}
	}
	defer f.Close()
	player, err := script.Play(f)
	if err != nil {
		return nil, config.Error{Err: fmt.Errorf("%s: %w", cassette, err)}
	}
	return player, nil
}

// Scheduled adapts a model's reasoning effort to each request, unless the settings set it.
func (s *Set) Scheduled(m llm.Model, wanted bool) llm.Model {
	if s.Config.Effort != "" || !wanted {
		return m
	}
	return profile.Scheduled(m)
}

// Needs returns the profile of a model.
func (s *Set) Needs(m llm.Model) profile.Profile {
	return profile.For(m.Info().Route(), s.Config.Profiles)
}

// Budgeted limits a model to the daily budget, unless it is free.
func (s *Set) Budgeted(m llm.Model) llm.Model {
	prices := m.Info().Prices
	if _, cassette := m.(*script.Player); cassette || s.Config.DayCost == 0 || prices.Free() {
		return m
	}
	budget := &limit.Budget{Path: filepath.Join(s.StateDir, "limits", "day.spent"), PerDay: s.Config.DayCost, Seed: s.Spent}
	return budget.Model(m)
}

// WithinBudget returns the named model, limited to the daily budget.
func (s *Set) WithinBudget(ctx context.Context, name string) (llm.Model, error) {
	choice, err := s.Model(ctx, name, "")
	if err != nil {
		return nil, err
	}
	return s.Budgeted(choice.Model), nil
}

// Recorded records the replies of a model to a file, if path is set. The caller calls the returned function to
// close it.
func Recorded(m llm.Model, path string) (llm.Model, func() error, error) {
	if path == "" {
		return m, func() error { return nil }, nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, nil, config.Error{Err: fmt.Errorf("record: %s already exists; name a new file", path)}
	}
	if err != nil {
		return nil, nil, config.Error{Err: fmt.Errorf("record: %w", err)}
	}
	return &script.Recorder{Model: m, To: f}, f.Close, nil
}

// Priced returns an error if a price of the model is unknown.
func (s *Set) Priced(m llm.Model) error {
	if r, ok := m.(*router.Model); ok {
		if r.Judge != nil {
			if err := s.Priced(r.Judge.Model); err != nil {
				return err
			}
		}
		for _, route := range r.Routes {
			if err := s.Priced(route.Model); err != nil {
				return err
			}
		}
		return nil
	}
	info := m.Info()
	switch {
	case len(info.Prices) > 0:
		return nil
	case s.Given != nil && s.Given.Info().Route() == info.Route():
		return config.Error{Err: fmt.Errorf("a cost limit needs the price of %s, and its llm.Info has no Prices", info.Route())}
	}
	return config.Error{Err: fmt.Errorf("a cost limit needs the price of %s; set providers.%s.models.%q.price in %s",
		info.Route(), info.Provider, info.Model, s.ConfigPath)}
}

// Sample answers a request of an MCP server with the small model of the settings.
func (s *Set) Sample(ctx context.Context, req llm.Request) (reply *llm.Reply, cost float64, err error) {
	choice, err := s.Model(ctx, s.Config.Agents.Small, "")
	if err != nil {
		return nil, 0, err
	}
	req.Purpose = "sampling"
	by := choice.Model.Info()
	for chunk, err := range s.Budgeted(choice.Model).Stream(ctx, req) {
		switch {
		case err != nil:
			return nil, 0, err
		case chunk.Routed != nil:
			by = chunk.Routed.Info
		case chunk.Reply != nil:
			dollars, _ := by.Prices.Bill(time.Now(), chunk.Reply.Used(req))
			return chunk.Reply, dollars, nil
		}
	}
	return nil, 0, errors.New("the stream ended without a reply")
}

package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// modelCheck finds out, before the first reply, whether the model can answer: whether there is one, whether it has a
// key, and whether its server is up.
type modelCheck struct {
	ready func(ctx context.Context, name string) (route, lacks string, why error) // nil if nothing can be known
	ctx   context.Context
	clock func() time.Time

	route, what string    // the model that would answer, and what it lacks; either may be empty
	of          string    // the name that was asked about
	at          time.Time // when it was asked; zero if never
	asks        bool
}

// lackEvery is how often to ask again while something is missing and the person is active.
const lackEvery = 2 * time.Second

// newModelCheck returns the check for models from the settings. Models of an embedding program are unknown.
func newModelCheck(ctx context.Context, t *TUI) *modelCheck {
	k := &modelCheck{ctx: ctx, clock: t.clock}
	if t.here() != nil && t.Host == nil {
		k.ready = t.App.Providers.Ready
	}
	return k
}

// refresh asks in the background if the answer may have changed.
func (k *modelCheck) refresh(t *talk) tea.Cmd {
	name := t.route()
	known := !k.at.IsZero() && name == k.of && (k.what == "" || k.clock().Sub(k.at) < lackEvery)
	if k.ready == nil || k.asks || known || t.view.Spent.Turns > 0 {
		return nil
	}
	k.asks = true
	return func() tea.Msg {
		route, what, _ := k.ready(k.ctx, name)
		return later(func() tea.Cmd {
			k.route, k.what, k.of, k.at, k.asks = route, what, name, k.clock(), false
			return nil
		})
	}
}

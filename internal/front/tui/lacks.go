package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"
)

// lacks finds out, before the first reply, whether the model that is to answer can: whether there is
// one, whether it has its key, and whether its server is there.
type lacks struct {
	ready func(ctx context.Context, name string) (route, lacks string, why error) // nil: nothing is known
	ctx   context.Context
	clock func() time.Time

	route, what string    // the model that is to answer, and what is missing for that; either may be empty
	of          string    // the name that was asked about
	at          time.Time // when; zero: never
	asks        bool
}

// lackEvery is how often it is asked again while something is missing, as long as the person does
// something.
const lackEvery = 2 * time.Second

// newLacks is for the models of the settings. Those of a host of somebody's own are not known.
func newLacks(ctx context.Context, t *TUI) *lacks {
	k := &lacks{ctx: ctx, clock: t.clock}
	if t.here() != nil && t.Host == nil {
		k.ready = t.App.Providers.Ready
	}
	return k
}

// refresh asks beside everything else, if what is known may no longer be true.
func (k *lacks) refresh(t *talk) tea.Cmd {
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

package app

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/cost"
	"github.com/inspan/inspan/llm/router"
)

// Spending says which replies to look at.
type Spending struct {
	Session string    // id of one, or a unique part of it; empty: all
	Since   time.Time // zero: ever since
}

// Spent returns what replies have cost. A session that can't be read to its end
// is counted as far as it goes, and named by warn.
func (a *App) Spent(ctx context.Context, s Spending, warn func(string)) ([]cost.Entry, error) {
	var all []cost.Entry
	err := a.eachSession(ctx, s, func(id string, events iter.Seq2[event.Event, error]) {
		for e, err := range cost.Entries(id, events) {
			switch {
			case err != nil:
				warn(err.Error())
			case !e.Time.Before(s.Since):
				all = append(all, e)
			}
		}
	})
	return all, err
}

// spentToday is what the sessions say was spent on this day of UTC.
func (a *App) spentToday(ctx context.Context) (float64, error) {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	entries, err := a.Spent(ctx, Spending{Since: today}, func(string) {})
	return cost.Sum(entries).Dollars, err
}

// Suppose replays the recorded sessions under a router and its routes called
// "local" and "cloud" alone.
func (a *App) Suppose(ctx context.Context, s Spending, m *router.Model, warn func(string)) ([]cost.Outcome, error) {
	var turns []cost.Turn
	err := a.eachSession(ctx, s, func(id string, events iter.Seq2[event.Event, error]) {
		of, err := cost.Turns(id, events, m)
		if err != nil {
			warn(err.Error())
		}
		for _, t := range of {
			if !t.At.Before(s.Since) {
				turns = append(turns, t)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	only := func(route string) *router.Model {
		return &router.Model{ID: m.ID, Routes: m.Routes, Force: route, Private: m.Private}
	}
	out := []cost.Outcome{cost.Recorded(turns)}
	for _, strategy := range []struct {
		name string
		by   *router.Model
	}{{"cloud only", only("cloud")}, {"local only", only("local")}, {"hybrid", m}} {
		if err := strategy.by.Check(); err != nil {
			return nil, configError{fmt.Errorf("the strategy %q: %w; call two routes of the router \"local\" and \"cloud\", or name models with --local and --cloud", strategy.name, err)}
		}
		out = append(out, cost.Suppose(strategy.name, turns, strategy.by))
	}
	return out, nil
}

func (a *App) eachSession(ctx context.Context, s Spending, do func(id string, events iter.Seq2[event.Event, error])) error {
	store := a.Store()
	var ids []string
	if s.Session != "" {
		id, err := store.Resolve(ctx, s.Session)
		if err != nil {
			return err
		}
		ids = []string{id}
	} else {
		list, err := store.List(ctx)
		if err != nil {
			return err
		}
		for _, info := range list {
			if !info.Modified.Before(s.Since) {
				ids = append(ids, info.ID)
			}
		}
	}
	for _, id := range ids {
		do(id, store.Events(ctx, id))
	}
	return ctx.Err()
}

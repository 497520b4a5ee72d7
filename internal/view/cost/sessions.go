// Package cost sums up the cost of sessions from their events alone: by session, day, model, tool, agent or cause,
// and as it would have been with other models. It changes nothing and contacts no one.
package cost

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm/router"
	"github.com/inspan/inspan/store"
)

// Spending selects replies.
type Spending struct {
	Session string    // id of one session, or a unique part of it; empty means all
	Since   time.Time // from this day on, by UTC; zero means all days
	// Index is a file with sums of sessions, so that unchanged sessions need not be read again. It can be
	// deleted. Empty means none.
	Index string
	// Totals says that of a tally, only All is needed. That takes a tenth of the time.
	Totals bool
}

// since returns the first day that counts.
func (s Spending) since() string {
	if s.Since.IsZero() {
		return ""
	}
	return s.Since.UTC().Format(time.DateOnly)
}

// untouched reports whether a session was last changed before the days that count.
func (s Spending) untouched(info store.Info) bool {
	return info.Modified.Before(s.Since.UTC().Truncate(day))
}

// Spent returns the amount paid. A session that can't be read to its end is counted up to there, and named by warn.
func Spent(ctx context.Context, sessions store.Store, s Spending, warn func(string)) ([]Tally, error) {
	if s.Index != "" && s.Session == "" {
		return indexed(ctx, sessions, s, warn)
	}
	var all []Tally
	err := eachSession(ctx, sessions, s, func(id string, events iter.Seq2[event.Event, error]) {
		var of []Tally
		var err error
		if s.Totals {
			of, err = sums(id, bills(ctx, sessions, id))
		} else {
			of, err = Tallies(id, events)
		}
		if err != nil {
			warn(err.Error())
		}
		all = append(all, slices.DeleteFunc(of, func(t Tally) bool { return t.Day < s.since() })...)
	})
	return all, err
}

const day = 24 * time.Hour

// Tallies sums up one session from all of its events, in order. After an error, it returns the sums up to
// there.
func Tallies(session string, events iter.Seq2[event.Event, error]) ([]Tally, error) {
	return tallies(session, events, nil)
}

func tallies(session string, events iter.Seq2[event.Event, error], shared *guesses) ([]Tally, error) {
	r := NewRecorder(session)
	r.prompt.guesses = shared
	err := r.read(events)
	return r.Tallies(), err
}

// read folds the events of a session.
func (r *Recorder) read(events iter.Seq2[event.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		r.Apply(e)
	}
	return nil
}

// Today returns the costs of the sessions on this day, by UTC, in US dollars.
func Today(ctx context.Context, sessions store.Store) (float64, error) {
	tallies, err := Spent(ctx, sessions, Spending{Since: time.Now().UTC().Truncate(day), Totals: true}, func(string) {})
	return Sum(tallies).Dollars.Dollars(), err
}

// ErrStrategy means that a router lacks the routes for a comparison.
var ErrStrategy = errors.New("strategy")

// strategyError wraps ErrStrategy without adding its text.
type strategyError struct{ error }

func (e strategyError) Unwrap() error     { return e.error }
func (e strategyError) Is(err error) bool { return err == ErrStrategy }

// SupposeAll replays the recorded sessions under a router, and under its routes "local" and "cloud" alone.
func SupposeAll(ctx context.Context, sessions store.Store, s Spending, m *router.Model, warn func(string)) ([]Outcome, error) {
	var turns []Turn
	err := eachSession(ctx, sessions, s, func(id string, events iter.Seq2[event.Event, error]) {
		of, err := Turns(id, events, m)
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
	out := []Outcome{Recorded(turns)}
	for _, strategy := range []struct {
		name string
		by   *router.Model
	}{{"cloud only", only("cloud")}, {"local only", only("local")}, {"hybrid", m}} {
		if err := strategy.by.Check(); err != nil {
			return nil, strategyError{fmt.Errorf("the strategy %q: %w; call two routes of the router \"local\" and \"cloud\", or name models with "+
				"--local and --cloud", strategy.name, err)}
		}
		out = append(out, Suppose(strategy.name, turns, strategy.by))
	}
	return out, nil
}

func eachSession(ctx context.Context, sessions store.Store, s Spending, do func(id string, events iter.Seq2[event.Event, error])) error {
	var ids []string
	if s.Session != "" {
		id, err := store.Resolve(ctx, sessions, s.Session)
		if err != nil {
			return err
		}
		ids = []string{id}
	} else {
		list, err := sessions.List(ctx)
		if err != nil {
			return err
		}
		for _, info := range list {
			if !s.untouched(info) {
				ids = append(ids, info.ID)
			}
		}
	}
	for _, id := range ids {
		do(id, store.Events(ctx, sessions, id))
	}
	return ctx.Err()
}

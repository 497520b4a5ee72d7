package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
)

// Parts of serve for several machines: see docs/SERVER.md.

// sharing holds the parts that a server shares with others.
type sharing struct {
	store  app.SharedStore // nil means none
	engine app.Engine      // nil means none
	name   string          // of the store
}

func (s sharing) close() (err error) {
	if s.engine != nil {
		err = s.engine.Close()
	}
	if s.store != nil {
		err = errors.Join(err, s.store.Close())
	}
	return err
}

// sharing opens the store and engine of the flags, and sets them in the app.
func (c *command) sharing(ctx context.Context, f *serverFlags, a *app.App) (s sharing, err error) {
	where := app.StoreOf(f.store)
	switch {
	case f.only != "" && f.only != "api" && f.only != "work":
		return s, misused("--only: unknown value %q; use api or work", f.only)
	case where == "" && (f.engine != "" || f.advertise != "" || f.only != ""):
		return s, misused("--engine, --advertise and --only need --store")
	case where == "":
		return s, nil
	}
	if s.store, s.name, err = c.shared.Open(ctx, where); err != nil {
		return s, err
	}
	s.engine, err = c.shared.Connect(ctx, f.engine, s.store)
	if err == nil && s.engine == nil && f.only != "" {
		err = misused("--only needs a store in PostgreSQL or --engine: with a folder, the leading server does everything")
	}
	if err != nil {
		return s, errors.Join(err, s.close())
	}
	app.Use(a, s.store)
	return s, nil
}

// serveAmong serves, drives sessions, or both, until ctx ends or one of them fails.
func (c *command) serveAmong(ctx context.Context, a *app.App, f *serverFlags, s *server.Server, of sharing) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var parts []func() error
	if f.only != "api" && of.engine != nil {
		w := &server.Server{Setup: s.Setup}
		if err := c.equip(a, w); err != nil {
			return err
		}
		c.warn(fmt.Sprintf("runs up to %d sessions of %s at a time", s.AtOnce, of.name))
		parts = append(parts, func() error { return w.Work(ctx, server.Work{AtOnce: s.AtOnce, Drain: f.drain}) })
	}
	if f.only != "work" {
		among := server.Among{Advertise: f.advertise, NewOwner: f.newOwner, OnStandby: func(leader string) {
			if leader == "" {
				c.warn("leads the servers of " + of.name + f.token())
				return
			}
			c.warn("standby; the server at " + leader + " leads")
		}}
		parts = append(parts, func() error { return s.ServeAmong(ctx, f.Door, among, f.drain) })
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() { ended <- part() }()
	}
	var err error
	for range parts {
		err = errors.Join(err, <-ended)
		stop()
	}
	return err
}

// Command inspan, built here, is inspan with PostgreSQL and Temporal: for servers on several machines. Without the URL
// of an engine, the database of the sessions decides which machine drives one.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/engine/postgres/dispatch"
	"github.com/inspan/inspan/engine/temporal"
	"github.com/inspan/inspan/internal/front/command"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/store"
)

func main() {
	command.Program{Shared: app.Shared{Store: openStore, Engine: connect}, Examine: examine}.Run()
}

// openStore opens the database at a URL with our parameter lease: how long a process that died keeps its sessions
// from others.
func openStore(ctx context.Context, address string) (app.SharedStore, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return nil, errors.New("the store's URL can't be read; it looks like postgres://user:password@host:5432/name")
	}
	c, query := postgres.Config{}, u.Query()
	if text := query.Get("lease"); text != "" {
		if c.Lease, err = time.ParseDuration(text); err != nil || c.Lease < time.Second {
			return nil, fmt.Errorf("parameter lease of the store's URL: %q is no time of a second or more, such as 15s", text)
		}
		query.Del("lease")
		u.RawQuery = query.Encode()
	}
	c.URL = u.String()
	return postgres.Open(ctx, c)
}

func connect(ctx context.Context, url string, s store.Store) (app.Engine, error) {
	if url == "" {
		if db, ok := s.(*postgres.Store); ok {
			return &dispatch.Engine{Store: db}, nil
		}
		return nil, nil
	}
	return temporal.Connect(ctx, url, s)
}

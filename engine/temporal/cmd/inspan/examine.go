package main

import (
	"context"
	"fmt"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/store"
)

const (
	slowCommit  = 20 * time.Millisecond // a step commits five times
	longWait    = 10 * time.Second      // after it a free worker would have taken a session
	connections = 18                    // of a process, at most
)

// examine looks at the database of a store.
func examine(ctx context.Context, s store.Store) []setup.Finding {
	db, ok := s.(*postgres.Store)
	if !ok {
		return nil
	}
	h, err := db.Health(ctx)
	if err != nil {
		return []setup.Finding{{Check: "database", State: setup.Bad, Found: err.Error(), Remedy: "give the user of the URL all rights in its schema"}}
	}
	base := setup.Finding{Check: "database", State: setup.Good, Found: "PostgreSQL " + h.Version + "; a commit takes " + h.Commit.Round(100*time.Microsecond).String()}
	if !h.Safe {
		base.State, base.Remedy = setup.Warn, "set fsync and synchronous_commit to on: with them off, a loss of power can lose events that were acknowledged"
	} else if h.Commit > slowCommit {
		base.State, base.Remedy = setup.Warn, "put the database nearer or its log on a faster disk: each step of a session commits five times"
	}
	conns := setup.Finding{Check: "connections", State: setup.Good, Found: fmt.Sprintf("%d of %d in use; each server and worker takes up to %d", h.Conns, h.MaxOpen, connections)}
	if h.MaxOpen-h.Conns < connections {
		conns.State, conns.Remedy = setup.Bad, "raise max_connections of the database"
	}
	work := setup.Finding{Check: "workers", State: setup.Good, Found: fmt.Sprintf("%d at work; %d sessions wait for one", h.Busy, h.Due)}
	if h.Longest > longWait {
		work.State = setup.Warn
		work.Found += ", the first of them for " + h.Longest.Round(time.Second).String()
		work.Remedy = "start another 'inspan serve --only work', or raise --at-once"
	}
	out := []setup.Finding{base, conns, work}
	for _, f := range h.Failing {
		out = append(out, setup.Finding{
			Check: "session", State: setup.Warn, Found: fmt.Sprintf("no worker could continue %s in %d tries: %s", f.Session, f.Tries, f.Why),
			Remedy: "give a worker what is missing, such as a key, or cancel the task",
		})
	}
	return out
}

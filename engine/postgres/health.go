package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// Health is the state of a database, for a person who sets up or looks after servers.
type Health struct {
	Version        string        // of PostgreSQL
	Commit         time.Duration // the median time of a small transaction
	Safe           bool          // commits survive a loss of power: fsync is on, and synchronous_commit is not off
	Conns, MaxOpen int           // connections of all users, and the most that it allows
	Busy           int           // processes that drive sessions
	Due            int           // sessions that wait for a worker
	Longest        time.Duration // that one of them has waited
	Failing        []Failing     // sessions that no worker could continue, the oldest first, ten at most
}

// Failing is a session that no worker could continue.
type Failing struct {
	Session string
	Tries   int
	Why     string // of the last try
}

// Health looks at the database. It stores nothing that stays.
func (s *Store) Health(ctx context.Context) (Health, error) {
	h, err := s.health(ctx)
	if err != nil {
		return Health{}, fmt.Errorf("look at the database: %w", err)
	}
	return h, nil
}

func (s *Store) health(ctx context.Context) (h Health, err error) {
	const about = `SELECT current_setting('server_version'), current_setting('max_connections')::int,
		current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off',
		(SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
		(SELECT count(*) FROM drivers WHERE until >= clock_timestamp()),
		count(*), coalesce(clock_timestamp() - min(due), '0')
		FROM turns WHERE driver IS NULL AND due <= clock_timestamp()`
	err = s.one(ctx, about, nil, &h.Version, &h.MaxOpen, &h.Safe, &h.Conns, &h.Busy, &h.Due, &h.Longest)
	if err != nil {
		return h, err
	}
	const failing = `SELECT id, tries, why FROM turns JOIN sessions ON key = session WHERE tries > 0 ORDER BY due LIMIT 10`
	h.Failing, err = many(ctx, s, pgx.RowToStructByPos[Failing], failing)
	if err != nil {
		return h, err
	}
	var times []time.Duration
	for range 15 {
		began := time.Now()
		err := s.try(ctx, func(ctx context.Context) error { // a transaction writes a row, another removes it
			token := newToken()
			_, err := s.pool.Exec(ctx, "INSERT INTO drivers (token, until) VALUES ($1, '-infinity')", token)
			_, gone := s.pool.Exec(ctx, "DELETE FROM drivers WHERE token = $1", token)
			return errors.Join(err, gone)
		})
		if err != nil {
			return h, err
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	h.Commit = times[len(times)/2]
	return h, nil
}

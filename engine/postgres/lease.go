package postgres

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/store"
)

// A lease is a token in the head of its session, and the process that has it. It lasts as long as the process
// sends beats to the database. If there was none for [Config.Lease], another process may put its own token
// there. An append of a driver checks the token and not the end of the lease: until another takes the lease, a
// late driver has lost nothing.
const (
	// takeLease takes it from the observed holder, so that it is not taken from a newer one.
	takeLease = `WITH seen AS MATERIALIZED (SELECT holder, NOT (` + live + `) AS over FROM sessions WHERE key = $1)
		UPDATE sessions s SET
			held_since  = CASE WHEN s.holder = $2 THEN held_since ELSE clock_timestamp() END,
			held_until  = 'infinity',
			driver      = $3,
			holder_pid  = $4,
			holder_host = $5,
			holder      = $2
		FROM seen
		WHERE s.key = $1 AND (s.holder IS NULL OR s.holder = $2 OR s.holder = seen.holder AND seen.over)
		RETURNING true`

	giveLease = `UPDATE sessions SET holder = NULL, held_until = NULL, driver = NULL WHERE key = $1 AND holder = $2`

	// live is true if the lease is held.
	live = `holder IS NOT NULL AND held_until >= clock_timestamp() AND (driver IS NULL
		OR EXISTS (SELECT FROM drivers d WHERE d.token = driver AND d.until >= clock_timestamp()))`
)

// Lease implements [event.Leaser]: if another drives the session, it fails at once with a [*store.BusyError].
// It lasts until Release or Close, unless the process is stopped or cut off for longer than [Config.Lease] by
// the database's clock. Then another can take it, and the next append fails with [event.ErrFenced].
func (l *log) Lease(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.begin(); err != nil {
		return err
	}
	defer l.acts.Done()
	if err := l.lease(ctx); err != nil {
		return l.failed("lease", err)
	}
	return nil
}

func (l *log) lease(ctx context.Context) error {
	l.mu.Lock()
	if l.token == [16]byte{} {
		l.token = newToken()
	}
	token := l.token // also of an earlier call whose answer was lost
	l.mu.Unlock()
	if err := l.store.try(ctx, l.store.beats.recent); err != nil {
		return err
	}
	host, _ := os.Hostname()
	var got bool
	err := l.store.one(ctx, takeLease, []any{l.key, token, l.store.beats.token, os.Getpid(), clean(host)}, &got)
	refused := errors.Is(err, fs.ErrNotExist)
	l.mu.Lock()
	if l.leased = got; refused {
		l.token = [16]byte{}
	}
	l.mu.Unlock()
	if refused {
		return l.busy(ctx)
	}
	return err
}

// busy returns the error that names the holder.
func (l *log) busy(ctx context.Context) error {
	var e store.BusyError
	var since *time.Time
	const query = "SELECT holder_pid, holder_host, held_since FROM sessions WHERE key = $1"
	if err := l.store.one(ctx, query, []any{l.key}, &e.PID, &e.Host, &since); err != nil {
		return err
	}
	if since != nil {
		e.Since = since.UTC()
	}
	return &e
}

// Release implements [event.Leaser]. If the database can't be reached, the lease ends by itself.
func (l *log) Release() error {
	l.mu.Lock()
	token := l.token
	l.token, l.leased = [16]byte{}, false
	l.mu.Unlock()
	if token == [16]byte{} {
		return nil
	}
	ctx, stop := context.WithTimeout(context.Background(), attemptFor)
	defer stop()
	if err := l.store.exec(ctx, giveLease, l.key, token); err != nil {
		return l.failed("release", err)
	}
	return nil
}

// Holder implements [store.Store].
func (s *Store) Holder(ctx context.Context, id string) (*store.Holder, error) {
	held, err := s.holders(ctx, "id = $1", id)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	return &held[0], nil
}

// Held implements [store.Store].
func (s *Store) Held(ctx context.Context) ([]store.Holder, error) {
	return s.holders(ctx, "true")
}

func (s *Store) holders(ctx context.Context, which string, args ...any) ([]store.Holder, error) {
	query := "SELECT id, holder_pid, holder_host, held_since FROM sessions WHERE NOT book AND " + live + " AND " + which + " ORDER BY id"
	return many(ctx, s, func(row pgx.CollectableRow) (h store.Holder, err error) {
		err = row.Scan(&h.Session, &h.PID, &h.Host, &h.Since)
		h.Since = h.Since.UTC()
		return h, err
	}, query, args...)
}

package postgres

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// beats send the database signs of life of this process, which keep all its leases, and look for silent
// processes. They have a connection of their own, as those of the pool may all be busy.
type beats struct {
	token [16]byte // of the process
	lease time.Duration
	conf  *pgx.ConnConfig

	mu   sync.Mutex
	conn *pgx.Conn // nil means none is open
	last time.Time // when the last successful beat was sent
}

const (
	beat = `INSERT INTO drivers (token, until) VALUES ($1, clock_timestamp() + $2::interval)
		ON CONFLICT (token) DO UPDATE SET until = excluded.until`

	lastBeat = `DELETE FROM drivers WHERE token = $1 OR until < clock_timestamp() - interval '1 day'`
)

// recent sends a beat unless one was just sent.
func (b *beats) recent(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.IsZero() && time.Since(b.last) < b.lease/2 {
		return nil
	}
	return b.beat(ctx, beat, b.token, b.lease)
}

// again sends a beat.
func (b *beats) again(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, stop := b.soon(ctx)
	defer stop()
	_ = b.beat(ctx, beat, b.token, b.lease) // the next tick is soon
}

// soon leaves time for another try.
func (b *beats) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(b.lease/2, 50*time.Millisecond))
}

// connected opens the connection if necessary. The caller has mu.
func (b *beats) connected(ctx context.Context) (err error) {
	if b.conn == nil || b.conn.IsClosed() {
		b.conn, err = pgx.ConnectConfig(ctx, b.conf)
	}
	return err
}

// beat runs a statement. The caller has mu.
func (b *beats) beat(ctx context.Context, sql string, args ...any) error {
	if err := b.connected(ctx); err != nil {
		return err
	}
	sent := time.Now()
	_, err := b.conn.Exec(ctx, sql, args...)
	if err == nil {
		b.last = sent
	}
	return err
}

// end records that this process has no more leases.
func (b *beats) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.conn == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = b.beat(ctx, lastBeat, b.token) // the rest ends by itself
	if b.conn != nil {
		_ = b.conn.Close(ctx)
	}
}

// keep sends three beats in the time that a lease lasts, while this process has a lease or a turn, until ctx ends.
func (s *Store) keep(ctx context.Context) {
	tick := time.NewTicker(max(s.lease/3, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if len(s.turns.list()) > 0 || s.leases() {
				s.beats.again(ctx)
			}
		case <-ctx.Done():
			return
		}
	}
}

// leases reports whether this process has a lease.
func (s *Store) leases() bool {
	for _, l := range s.opened() {
		l.mu.Lock()
		leased := l.leased
		l.mu.Unlock()
		if leased {
			return true
		}
	}
	return false
}

// Lost yields the ids of sessions whose process has died or is cut off: their leases have ended and no process
// has taken them, or a process has died with their turn. It also yields offered sessions. It looks several times in
// the time that a lease lasts, until ctx is done, and yields a session again as long as that is so. An error says
// that a look failed.
//
// Time counts only while this process can reach the database, so leases that end while the database is down are not
// lost: their processes can renew them as soon as others can take them.
func (s *Store) Lost(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		tick := time.NewTicker(max(s.lease/8, time.Millisecond))
		defer tick.Stop()
		heard := watched{}
		for ctx.Err() == nil {
			ids, err := s.beats.lost(ctx, heard)
			if err != nil && ctx.Err() == nil && !yield("", fmt.Errorf("look for lost sessions: %w", err)) {
				return
			}
			for _, id := range ids {
				if !yield(id, nil) {
					return
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}
}

// Offer makes [Store.Lost] yield a session that is released in the middle of its work, so that another process
// continues it at once. It does nothing if the session is being driven.
func (s *Store) Offer(ctx context.Context, id string) error {
	const offer = `UPDATE sessions SET holder = $2, held_until = '-infinity', driver = NULL WHERE id = $1 AND holder IS NULL`
	if err := s.exec(ctx, offer, id, newToken()); err != nil {
		return fmt.Errorf("offer session %s: %w", id, err)
	}
	return nil
}

// watched has for each process the announced end of its leases, and when that was first seen.
type watched map[[16]byte]word

type word struct{ until, since time.Time }

const (
	// This process is not lost to itself: it may have been stopped, and sends beats again soon.
	lostDrivers = `SELECT token, until, until < clock_timestamp() FROM drivers WHERE token <> $1`

	// Each process looks in a different order, so that they conflict less.
	lostSessions = `SELECT id FROM (
			SELECT id FROM sessions WHERE NOT book AND holder IS NOT NULL
				AND (driver = ANY($1) OR driver IS NULL AND held_until < clock_timestamp())
			UNION
			SELECT s.id FROM turns t JOIN sessions s ON s.key = t.session WHERE t.driver IS NOT NULL AND s.holder IS NULL
				AND (t.driver = ANY($1) OR NOT EXISTS (SELECT FROM drivers d WHERE d.token = t.driver))
		) lost ORDER BY random()`
)

// lost looks once. Earlier observations count only if no look has failed since.
func (b *beats) lost(ctx context.Context, heard watched) (ids []string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ctx, stop := b.soon(ctx)
	defer stop()
	err = b.connected(ctx)
	var over [][16]byte
	if err == nil {
		over, err = b.silent(ctx, heard)
	}
	if err == nil {
		var rows pgx.Rows
		if rows, err = b.conn.Query(ctx, lostSessions, over); err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
	}
	if err != nil {
		clear(heard)
	}
	return ids, err
}

// silent returns the processes whose leases have ended.
func (b *beats) silent(ctx context.Context, heard watched) (over [][16]byte, err error) {
	rows, err := b.conn.Query(ctx, lostDrivers, b.token)
	if err != nil {
		return nil, err
	}
	var token [16]byte
	var until time.Time
	var ended bool
	now := time.Now()
	_, err = pgx.ForEachRow(rows, []any{&token, &until, &ended}, func() error {
		if w := heard[token]; !w.until.Equal(until) {
			heard[token] = word{until, now}
		}
		if ended && now.Sub(heard[token].since) >= b.lease {
			over = append(over, token)
		}
		return nil
	})
	return over, err
}

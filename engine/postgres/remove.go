package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/store"
)

// Remove implements [store.Store]. It is one transaction. Objects of a bucket are removed after it.
func (s *Store) Remove(ctx context.Context, id string) error {
	if err := s.remove(ctx, id); err != nil {
		return fmt.Errorf("remove session %q: %w", id, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, id string) error {
	if !store.IsID(id) {
		return fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	var keys []int64
	err := s.inTx(ctx, func(tx pgx.Tx) error {
		found, err := family(ctx, tx, id)
		switch {
		case err != nil:
			return err
		case len(found) > 0:
			keys = found
			return erase(ctx, tx, keys)
		case len(keys) == 0:
			return fs.ErrNotExist
		}
		return nil // the answer to an earlier commit was lost
	})
	if err != nil {
		return err
	}
	for _, key := range keys {
		s.rings.remove(key)
	}
	return s.sweep(ctx)
}

// family locks a session and those that work for it, and returns their keys. It fails if one of them is being
// driven, or if the session itself is missing.
func family(ctx context.Context, tx pgx.Tx, id string) (keys []int64, err error) {
	const query = `SELECT key, id = $1, ` + live + `, holder_pid, holder_host, coalesce(held_since, now()) FROM sessions
		WHERE id = $1 OR id >= $1 || '.' AND id < $1 || '/' ORDER BY id FOR UPDATE`
	rows, err := tx.Query(ctx, query, id)
	if err != nil {
		return nil, err
	}
	var key int64
	var self, found, held bool
	var busy store.BusyError
	var bad error
	_, err = pgx.ForEachRow(rows, []any{&key, &self, &held, &busy.PID, &busy.Host, &busy.Since}, func() error {
		found, keys = found || self, append(keys, key)
		if held && bad == nil {
			e := busy
			e.Since = e.Since.UTC()
			bad = &e
		}
		return nil
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, err
	}
	if !found {
		return nil, nil
	}
	return keys, nil
}

// erase deletes locked sessions, and the blobs that no other session has.
func erase(ctx context.Context, tx pgx.Tx, keys []int64) error {
	if _, err := tx.Exec(ctx, "DELETE FROM events WHERE session = ANY($1)", keys); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, "DELETE FROM session_blobs WHERE session = ANY($1) RETURNING digest", keys)
	if err != nil {
		return err
	}
	digests, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM sessions WHERE key = ANY($1)", keys); err != nil {
		return err
	}
	return dropBlobs(ctx, tx, digests)
}

package postgres

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"iter"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// IDs implements [store.Store].
func (s *Store) IDs(ctx context.Context) ([]string, error) {
	ids, err := many(ctx, s, pgx.RowTo[string], "SELECT id FROM sessions WHERE NOT book ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return ids, nil
}

const selectInfos = `SELECT id, title, root, parent, created, modified, last_seq, size, preview, stop, pinned, labels, empty
	FROM sessions WHERE NOT book`

// List implements [store.Store]. It reads the heads of the sessions, and no event, so damage goes unnoticed.
func (s *Store) List(ctx context.Context) ([]store.Info, error) {
	infos, err := many(ctx, s, scanInfo, selectInfos+" ORDER BY modified DESC, id DESC")
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return infos, nil
}

// recentPage is how many sessions Recent reads at a time.
const recentPage = 100

// Recent implements [store.RecentLister]. A session that changes meanwhile may be missing.
func (s *Store) Recent(ctx context.Context) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		const next = selectInfos + ` AND modified_hour <= date_bin('1 hour', $1::timestamptz, 'epoch') AND (modified, id) < ($1, $2)
			ORDER BY modified_hour DESC, modified DESC, id DESC LIMIT $3`
		at, id := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), ""
		for {
			infos, err := many(ctx, s, scanInfo, next, at, id, recentPage)
			if err != nil {
				yield(store.Info{}, fmt.Errorf("list sessions: %w", err))
				return
			}
			for _, info := range infos {
				if !yield(info, nil) {
					return
				}
				at, id = info.Modified, info.ID
			}
			if len(infos) < recentPage {
				return
			}
		}
	}
}

func scanInfo(row pgx.CollectableRow) (i store.Info, err error) {
	err = row.Scan(&i.ID, &i.Title, &i.Root, &i.Parent, &i.Created, &i.Modified, &i.Events, &i.Size, &i.Preview,
		&i.Stop, &i.Pinned, &i.Labels, &i.Empty)
	i.Created, i.Modified = i.Created.UTC(), i.Modified.UTC()
	return i, err
}

// searchPage is how many sessions a search looks up at a time.
const searchPage = 200

// Search implements [store.Store]. It reads the events page by page, and holds no connection while a hit is
// processed.
func (s *Store) Search(ctx context.Context, match *regexp.Regexp) iter.Seq2[store.Hit, error] {
	type keyed struct {
		Key int64
		ID  string
	}
	const older = "SELECT key, id FROM sessions WHERE NOT book AND id < $1 ORDER BY id DESC LIMIT $2"
	return func(yield func(store.Hit, error) bool) {
		for before := "~"; ; { // greater than every id
			found, err := many(ctx, s, pgx.RowToStructByPos[keyed], older, before, searchPage)
			if err != nil {
				yield(store.Hit{}, fmt.Errorf("search sessions: %w", err))
				return
			}
			for _, one := range found {
				if before = one.ID; !s.search(ctx, one.Key, one.ID, match, yield) {
					return
				}
			}
			if len(found) < searchPage {
				return
			}
		}
	}
}

// search yields the hits of one session, and reports whether to continue.
func (s *Store) search(ctx context.Context, key int64, id string, match *regexp.Regexp, yield func(store.Hit, error) bool) bool {
	l, more := s.logOf(key, id, 0), true
	err := l.read(ctx, 0, func(e event.Event, _ error) bool {
		if hit, found := store.Find(id, e, match); found {
			more = yield(hit, nil)
		}
		return more
	})
	err = cmp.Or(l.Close(), err)
	if err != nil && more {
		more = yield(store.Hit{Session: id}, fmt.Errorf("search session %s: %w", id, err)) && ctx.Err() == nil
	}
	return more
}

// Usage implements [store.Store]. A blob counts for each session that has it.
func (s *Store) Usage(ctx context.Context, id string) (size int64, err error) {
	const query = `SELECT s.size + coalesce((
			SELECT sum(b.size) FROM session_blobs sb JOIN blobs b USING (digest) WHERE sb.session = s.key), 0)::bigint
		FROM sessions s WHERE id = $1 AND NOT book`
	if !store.IsID(id) {
		err = fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	} else {
		err = s.one(ctx, query, []any{id}, &size)
	}
	if err != nil {
		return 0, fmt.Errorf("measure session %q: %w", id, err)
	}
	return size, nil
}

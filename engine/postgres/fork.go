package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// Fork implements [store.Store]. The lines are copied within the database, and blobs are shared. It
// is one transaction, so a fork is complete or not there.
func (s *Store) Fork(ctx context.Context, id string, seq uint64) (store.Log, error) {
	l, err := s.fork(ctx, id, seq)
	if err != nil {
		return nil, fmt.Errorf("fork session %q: %w", id, err)
	}
	return l, nil
}

func (s *Store) fork(ctx context.Context, id string, seq uint64) (*log, error) {
	for range 100 {
		fork, err := s.newID(ctx)
		if err != nil {
			return nil, err
		}
		l, isNew, err := s.copied(ctx, id, seq, fork)
		if err != nil || isNew {
			return l, err
		}
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	return nil, errNoID
}

// Branch implements [store.Brancher].
func (s *Store) Branch(ctx context.Context, id, parent, name string) (l store.Log, isNew bool, err error) {
	child, err := store.ChildID(parent, name)
	if err == nil {
		l, isNew, err = s.branch(ctx, id, child)
	}
	if err != nil {
		return nil, false, fmt.Errorf("fork session %q: %w", id, err)
	}
	return l, isNew, nil
}

func (s *Store) branch(ctx context.Context, id, child string) (*log, bool, error) {
	if l, err := s.found(ctx, child); !errors.Is(err, fs.ErrNotExist) {
		return l, false, err
	}
	return s.copied(ctx, id, 0, child)
}

// copied makes a session from the events of another up to seq, 0 for all. If a session of that name exists
// already, it is opened, and is not new.
func (s *Store) copied(ctx context.Context, id string, seq uint64, name string) (l *log, isNew bool, err error) {
	if !store.IsID(id) {
		return nil, false, fmt.Errorf("not a session id: %w", fs.ErrNotExist)
	}
	c := &copying{id: id, seq: seq, name: name, token: newToken()}
	if err := s.inTx(ctx, func(tx pgx.Tx) error { return c.run(ctx, tx) }); err != nil {
		return nil, false, err
	}
	if l, err = s.found(ctx, name); err != nil {
		return nil, false, err
	}
	return l, c.isNew, nil
}

// copying makes a fork.
type copying struct {
	id, name string
	seq      uint64 // up to which, 0 for all
	token    [16]byte
	isNew    bool

	from, to int64 // keys
	last     int64 // the last copied event
	at       time.Time
	info     store.Info
	epoch    uint64
}

// run runs in a transaction. If an earlier one with the same token has succeeded, it does nothing.
func (c *copying) run(ctx context.Context, tx pgx.Tx) error {
	if err := c.source(ctx, tx); err != nil {
		return err
	}
	c.info = store.NewInfo(c.name)
	done, err := c.insert(ctx, tx)
	if err != nil || done {
		return err
	}
	for _, step := range []func(context.Context, pgx.Tx) error{c.events, c.head, c.blobs} {
		if err := step(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// insert makes the head of the session. Done says that a session of that name exists, and isNew then whether an
// earlier transaction with the same token has made it.
func (c *copying) insert(ctx context.Context, tx pgx.Tx) (done bool, err error) {
	const insert = `INSERT INTO sessions (id, made, created, modified) VALUES ($1, $2, $3, $3) ON CONFLICT (id) DO NOTHING RETURNING key`
	err = tx.QueryRow(ctx, insert, c.name, c.token, c.info.Created).Scan(&c.to)
	if errors.Is(err, pgx.ErrNoRows) {
		return true, tx.QueryRow(ctx, "SELECT made = $2 FROM sessions WHERE id = $1", c.name, c.token).Scan(&c.isNew)
	}
	c.isNew = err == nil
	return false, err
}

// source finds the session to copy, and keeps it from being removed meanwhile.
func (c *copying) source(ctx context.Context, tx pgx.Tx) error {
	const query = `SELECT key, last_seq, date_trunc('milliseconds', now()) FROM sessions WHERE id = $1 AND NOT book FOR KEY SHARE`
	err := tx.QueryRow(ctx, query, c.id).Scan(&c.from, &c.last, &c.at)
	if errors.Is(err, pgx.ErrNoRows) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	if c.seq > uint64(c.last) {
		return fmt.Errorf("it has only %d events, not %d", c.last, c.seq)
	}
	c.last = int64(cmp.Or(c.seq, uint64(c.last)))
	return nil
}

// events copies the lines, and adds the fork's own event.
func (c *copying) events(ctx context.Context, tx pgx.Tx) error {
	const insert = `INSERT INTO events (session, seq, kind, must, time, line)
		SELECT $1, seq, kind, must, time, line FROM events WHERE session = $2 AND seq <= $3`
	tag, err := tx.Exec(ctx, insert, c.to, c.from, c.last)
	if err != nil {
		return err
	}
	if n := tag.RowsAffected(); n != c.last {
		return fmt.Errorf("its log is damaged: of %d events there are %d", c.last, n)
	}
	forked := event.Event{
		Seq: uint64(c.last) + 1, Time: c.at.UTC(), Session: c.name, Body: event.Forked{From: c.id, Seq: uint64(c.last)},
	}
	line, err := event.Encode(forked)
	if err != nil {
		return err
	}
	const add = "INSERT INTO events (session, seq, kind, time, line) VALUES ($1, $2, $3, $4, $5)"
	_, err = tx.Exec(ctx, add, c.to, c.last+1, forked.Body.Kind(), c.at, line)
	return err
}

// head updates the head of the session from the events.
func (c *copying) head(ctx context.Context, tx pgx.Tx) error {
	if err := c.read(ctx, tx); err != nil {
		return err
	}
	args := whole(c.info)
	args["key"], args["epoch"] = c.to, int64(min(c.epoch, math.MaxInt64))
	const update = `UPDATE sessions SET created = @created, modified = @modified, parent = @parent, root = @root, labels = @labels,
			title = @title, preview = @preview, stop = @stop, pinned = @pinned, empty = @empty, epoch = @epoch,
			(last_seq, size, claim_seq, start_seq) = (
				SELECT max(seq), sum(octet_length(line))::bigint, coalesce(max(seq) FILTER (WHERE kind = 'claimed'), 0),
					coalesce(max(seq) FILTER (WHERE kind IN ('compacted', 'rewound')) - 1, 0)
				FROM events WHERE session = @key)
		WHERE key = @key`
	_, err := tx.Exec(ctx, update, args)
	return err
}

// read folds the copied events that affect the head, and those that may say that this version can't continue
// them.
func (c *copying) read(ctx context.Context, tx pgx.Tx) error {
	const query = `SELECT line FROM events WHERE session = $1 AND (kind = ANY($2) OR must OR seq IN (1, $3)
		OR seq = (SELECT max(seq) FROM events WHERE session = $1 AND kind = 'claimed')) ORDER BY seq`
	rows, err := tx.Query(ctx, query, c.to, telling(), c.last+1)
	if err != nil {
		return err
	}
	var line []byte
	_, err = pgx.ForEachRow(rows, []any{&line}, func() error {
		e, err := event.Decode(line)
		if err == nil {
			err = event.Understood(e)
		}
		if claim, is := e.Body.(event.Claimed); is {
			c.epoch = claim.Epoch
		}
		c.info.Add(e)
		return err
	})
	return err
}

func (c *copying) blobs(ctx context.Context, tx pgx.Tx) error {
	const share = "INSERT INTO session_blobs (session, digest) SELECT $1, digest FROM session_blobs WHERE session = $2"
	_, err := tx.Exec(ctx, share, c.to, c.from)
	return err
}

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// Lines implements [store.Mover].
func (s *Store) Lines(ctx context.Context, id string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		l, err := s.found(ctx, id)
		if err == nil {
			err = l.each(ctx, 0, func(_ event.Event, line []byte) bool { return yield(line, nil) })
			err = errors.Join(err, l.Close())
		}
		if err != nil {
			yield(nil, fmt.Errorf("read session %q: %w", id, err))
		}
	}
}

// Receive implements [store.Mover]. It is one transaction, except for blobs that go into a bucket.
func (s *Store) Receive(ctx context.Context, id string, lines iter.Seq2[[]byte, error], blobs iter.Seq2[io.Reader, error]) error {
	r := &receiving{store: s, id: id, token: newToken(), lines: lines, blobs: blobs}
	var err error
	if !store.IsID(id) {
		err = errors.New("not a session id")
	} else {
		err = s.inTx(ctx, func(tx pgx.Tx) error { return r.run(ctx, tx) })
	}
	if err != nil {
		return fmt.Errorf("receive session %q: %w", id, err)
	}
	return nil
}

type receiving struct {
	store *Store
	id    string
	token [16]byte
	lines iter.Seq2[[]byte, error]
	blobs iter.Seq2[io.Reader, error]
}

// run runs in a transaction. If an earlier one with the same token has succeeded, it does nothing.
func (r *receiving) run(ctx context.Context, tx pgx.Tx) error {
	into := copying{name: r.id, token: r.token, info: store.NewInfo(r.id)}
	switch done, err := into.insert(ctx, tx); {
	case err != nil:
		return err
	case done && !into.isNew:
		return fs.ErrExist
	case done:
		return nil
	}
	rows := &lineRows{key: into.to}
	rows.next, rows.stop = iter.Pull2(r.lines)
	defer rows.stop()
	columns := []string{"session", "seq", "kind", "must", "time", "line"}
	n, err := tx.CopyFrom(ctx, pgx.Identifier{"events"}, columns, rows)
	if rows.err != nil { // else it is reported as the database's error
		return rows.err
	}
	if err != nil || n == 0 {
		return err
	}
	into.last = n - 1 // the last one is read next
	if err := into.head(ctx, tx); err != nil {
		return err
	}
	return r.contents(ctx, tx, blobs{r.store, into.to})
}

// contents stores the blobs.
func (r *receiving) contents(ctx context.Context, tx pgx.Tx, into blobs) error {
	for from, err := range r.blobs {
		if err != nil {
			return err
		}
		if err := into.putIn(ctx, tx, from); err != nil {
			return err
		}
	}
	return nil
}

// lineRows are the rows of events for lines.
type lineRows struct {
	key  int64
	next func() ([]byte, error, bool)
	stop func()
	seq  uint64
	row  []any
	err  error
}

var _ pgx.CopyFromSource = (*lineRows)(nil)

// Next implements [pgx.CopyFromSource].
func (r *lineRows) Next() bool {
	line, err, more := r.next()
	if !more || r.err != nil {
		return false
	}
	var e event.Event
	if err == nil {
		e, err = event.Decode(line)
	}
	if err == nil && e.Seq != r.seq+1 {
		err = fmt.Errorf("event %d is behind event %d", e.Seq, r.seq)
	}
	if r.err = err; err != nil {
		return false
	}
	r.seq++
	u, _ := e.Body.(event.Unknown)
	r.row = []any{r.key, int64(e.Seq), clean(e.Body.Kind()), u.Must, e.Time, line}
	return true
}

// Values implements [pgx.CopyFromSource].
func (r *lineRows) Values() ([]any, error) { return r.row, nil }

// Err implements [pgx.CopyFromSource].
func (r *lineRows) Err() error { return r.err }

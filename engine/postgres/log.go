package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// log is an open session or book.
type log struct {
	store *Store
	key   int64
	id    string
	bell  *bell
	open  context.Context // done once the log is closed
	end   context.CancelFunc
	acts  sync.WaitGroup // Close waits for these

	mu     sync.Mutex
	closed bool
	token  [16]byte  // of the lease, once it was requested
	leased bool      // it was granted
	looked time.Time // last time that a wait has checked the log's length
}

var _ store.Log = (*log)(nil)

// logOf opens an existing session.
func (s *Store) logOf(key int64, id string, last int64) *log {
	l := &log{store: s, key: key, id: id, bell: s.rings.hold(key, uint64(last))}
	l.open, l.end = context.WithCancel(context.Background())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[l] = true
	return l
}

// ID implements [store.Log].
func (l *log) ID() string { return l.id }

// Blobs implements [store.Log].
func (l *log) Blobs() tool.Blobs { return blobs{l.store, l.key} }

// begin enters an operation that Close waits for; end it with acts.Done.
func (l *log) begin() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.failed("use", fs.ErrClosed)
	}
	l.acts.Add(1)
	return nil
}

// failed adds the failed operation and the session to an error.
func (l *log) failed(what string, err error) error {
	return fmt.Errorf("%s session %s: %w", what, l.id, err)
}

// Close implements [store.Log].
func (l *log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.end()
	l.acts.Wait()
	err := l.Release()
	l.store.rings.let(l.key)
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	delete(l.store.logs, l)
	return err
}

// Read implements [event.Log]. It holds no connection between two events, so a reader may be slow, and may
// write.
func (l *log) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		err := ctx.Err()
		if err == nil {
			err = l.begin()
		}
		if err == nil {
			l.acts.Done() // Close need not wait for a slow reader
			err = l.read(ctx, after, yield)
		}
		if err != nil {
			yield(event.Event{}, l.failed("read", err))
		}
	}
}

// read returns the error to yield, nil also if yield ended it.
func (l *log) read(ctx context.Context, after uint64, yield func(event.Event, error) bool) error {
	return l.each(ctx, after, func(e event.Event, _ []byte) bool { return yield(e, nil) })
}

// each yields events with their lines until yield returns false.
func (l *log) each(ctx context.Context, after uint64, yield func(event.Event, []byte) bool) error {
	after = min(after, math.MaxInt64)
	for {
		lines, last, err := l.page(ctx, after)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if err := errors.Join(ctx.Err(), context.Cause(l.open)); err != nil {
				return l.cut(ctx)
			}
			e, err := event.Decode(line)
			if err != nil || e.Seq != after+1 {
				return l.damaged(after+1, err)
			}
			if after = e.Seq; !yield(e, line) {
				return nil
			}
		}
		if after >= last {
			return nil
		}
		if len(lines) == 0 {
			return l.damaged(after+1, nil)
		}
	}
}

// cut returns the reason why a read ends early.
func (l *log) cut(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return fs.ErrClosed
}

func (l *log) damaged(seq uint64, err error) error {
	if err == nil {
		err = errors.New("another event is in its place, or none")
	}
	return fmt.Errorf("the log is damaged at event %d: %w", seq, err)
}

// The limits of a page in events and bytes.
const (
	pageEvents = 500
	pageBytes  = 4 << 20
)

// page returns the next lines above after, and the number of the last event. Both are from one moment.
func (l *log) page(ctx context.Context, after uint64) (lines [][]byte, last uint64, err error) {
	const query = `SELECT s.last_seq, e.line FROM sessions s LEFT JOIN LATERAL (
			SELECT seq, line FROM (
				SELECT seq, line, sum(octet_length(line)) OVER (ORDER BY seq) - octet_length(line) AS before
				FROM (SELECT seq, line FROM events WHERE session = s.key AND seq > $2 ORDER BY seq LIMIT $3) AS next
			) AS sized WHERE before < $4
		) AS e ON true WHERE s.key = $1 ORDER BY e.seq`
	err = l.store.try(ctx, func(ctx context.Context) error {
		lines, last = nil, 0
		rows, err := l.store.pool.Query(ctx, query, l.key, int64(after), pageEvents, pageBytes)
		if err != nil {
			return err
		}
		var line []byte
		var seq int64
		tag, err := pgx.ForEachRow(rows, []any{&seq, &line}, func() error {
			if last = uint64(seq); line != nil {
				lines = append(lines, line)
			}
			line = nil
			return nil
		})
		if err == nil && tag.RowsAffected() == 0 {
			err = fs.ErrNotExist
		}
		return err
	})
	return lines, last, err
}

// Start implements [event.Starter].
func (l *log) Start(ctx context.Context) (uint64, error) {
	if err := l.begin(); err != nil {
		return 0, err
	}
	defer l.acts.Done()
	var start int64
	if err := l.store.one(ctx, "SELECT start_seq FROM sessions WHERE key = $1", []any{l.key}, &start); err != nil {
		return 0, l.failed("read", err)
	}
	return uint64(start), nil
}

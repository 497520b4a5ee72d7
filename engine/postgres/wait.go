package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// How a wait learns of an event: appends through the same store ring a bell here. Those of other processes come
// as notifications, over one connection for all logs. Regular checks of the database find missed ones. The
// notification is not part of the append: PostgreSQL serializes commits with notifications, so concurrent
// sessions would wait for each other.

// bell rings when a log grows.
type bell struct {
	users, waits int // guarded by rings

	mu    sync.Mutex
	last  uint64 // the last known event
	rings int    // number of rings that changed last
	gone  bool   // the session was removed
	rung  chan struct{}
}

// ring signals events up to last.
func (b *bell) ring(last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last > b.last {
		b.last, b.rings = last, b.rings+1
		b.wake()
	}
}

// correct removes events that were lost because a standby without them took over. The log has only the events
// up to last, and the bell has not rung since it was read.
func (b *bell) correct(rings int, last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings == rings {
		b.last = min(b.last, last)
	}
}

// heard returns how often the bell has rung.
func (b *bell) heard() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rings
}

// remove signals that there will be no more events.
func (b *bell) remove() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.gone {
		b.gone = true
		b.wake()
	}
}

func (b *bell) wake() {
	close(b.rung)
	b.rung = make(chan struct{})
}

// at returns the last known event.
func (b *bell) at() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// beyond reports whether there is an event above after, and otherwise returns a channel that is closed when
// that may be so.
func (b *bell) beyond(after uint64) (there bool, rung <-chan struct{}, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.gone {
		err = fs.ErrNotExist
	}
	return b.last > after, b.rung, err
}

// rings are the bells of the sessions that are open here, and the pending notifications for others.
type rings struct {
	mu    sync.Mutex
	bells map[int64]*bell
	told  map[int64]uint64 // pending notifications
	news  chan struct{}    // has a token while one is pending
	wakes bool             // one of turns is pending
	turns chan struct{}    // has a token when a turn may be due
}

// hold returns the bell of a session; give it back with let.
func (r *rings) hold(key int64, last uint64) *bell {
	r.mu.Lock()
	b := r.bells[key]
	if b == nil {
		if r.bells == nil {
			r.bells = map[int64]*bell{}
		}
		b = &bell{rung: make(chan struct{})}
		r.bells[key] = b
	}
	b.users++
	r.mu.Unlock()
	b.ring(last)
	return b
}

func (r *rings) let(key int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.bells[key]
	if b.users--; b.users == 0 {
		delete(r.bells, key)
	}
}

// waiting counts the waits for a bell.
func (r *rings) waiting(b *bell, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b.waits += more
}

// waited returns the sessions with waits.
func (r *rings) waited() (keys []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, b := range r.bells {
		if b.waits > 0 {
			keys = append(keys, key)
		}
	}
	return keys
}

// ring signals events up to last to waits in this process.
func (r *rings) ring(key int64, last uint64) {
	r.mu.Lock()
	b := r.bells[key]
	r.mu.Unlock()
	if b != nil {
		b.ring(last)
	}
}

func (r *rings) remove(key int64) {
	r.mu.Lock()
	b := r.bells[key]
	r.mu.Unlock()
	if b != nil {
		b.remove()
	}
}

// grown signals events up to last to waits in this process and others.
func (r *rings) grown(key int64, last uint64) {
	r.ring(key, last)
	r.mu.Lock()
	if r.told == nil {
		r.told = map[int64]uint64{}
	}
	r.told[key] = max(r.told[key], last)
	r.mu.Unlock()
	signal(r.news)
}

// due signals here and in other processes that a turn may be due.
func (r *rings) due() {
	signal(r.turns)
	r.mu.Lock()
	r.wakes = true
	r.mu.Unlock()
	signal(r.news)
}

// signal puts a token into a channel if there is none.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// turnsDue is the notification that a turn may be due.
const turnsDue = "turns"

// take returns the pending notifications.
func (r *rings) take() (told []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, last := range r.told {
		told = append(told, fmt.Sprint(key, ":", last))
	}
	if r.wakes {
		told = append(told, turnsDue)
	}
	r.told, r.wakes = nil, false
	return told
}

// channelOf returns the name of the channel for the sessions in a schema. A name has 63 bytes at most.
func channelOf(schema string) string {
	sum := sha256.Sum256([]byte(schema))
	return "inspan_" + hex.EncodeToString(sum[:16])
}

// tellsAgain is the pause before the next notification, which includes all events that come meanwhile.
const tellsAgain = 5 * time.Millisecond

// rest waits for a while, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	pause := time.NewTimer(d)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
}

// tell notifies other processes until ctx ends, and then sends the pending notifications. After a failure, they
// find the events by checking.
func (s *Store) tell(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-s.rings.news:
		case <-ctx.Done():
		}
		if told := s.rings.take(); len(told) > 0 {
			sending, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			_, _ = s.pool.Exec(sending, "SELECT pg_notify($1, told) FROM unnest($2::text[]) AS told", s.channel, told)
			stop()
			rest(ctx, tellsAgain)
		}
	}
}

// listen rings the bells for appends of others, until ctx ends.
func (s *Store) listen(ctx context.Context) {
	for ctx.Err() == nil {
		conn, err := s.listener(ctx)
		for err == nil {
			s.look(ctx) // also for events before the first notification
			err = s.heard(ctx, conn)
		}
		if conn != nil {
			closing, stop := context.WithTimeout(context.Background(), time.Second)
			_ = conn.Close(closing)
			stop()
		}
		s.look(ctx)
		rest(ctx, s.poll)
	}
}

// listener makes the connection for notifications.
func (s *Store) listener(ctx context.Context) (*pgx.Conn, error) {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	_, err = conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize())
	return conn, err
}

// heard rings the bells for one notification, and for all that come until the next check.
func (s *Store) heard(ctx context.Context, conn *pgx.Conn) error {
	until, stop := context.WithTimeout(ctx, s.poll)
	defer stop()
	for {
		n, err := conn.WaitForNotification(until)
		if err != nil {
			if until.Err() != nil && !conn.IsClosed() {
				return ctx.Err()
			}
			return err
		}
		if n.Payload == turnsDue {
			signal(s.rings.turns)
			continue
		}
		key, last, _ := strings.Cut(n.Payload, ":")
		k, err1 := strconv.ParseInt(key, 10, 64)
		seq, err2 := strconv.ParseUint(last, 10, 64)
		if err1 == nil && err2 == nil {
			s.rings.ring(k, seq)
		}
	}
}

// look rings the bells for the events in the database.
func (s *Store) look(ctx context.Context) {
	keys := s.rings.waited()
	if len(keys) == 0 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, attemptFor)
	defer stop()
	rows, err := s.pool.Query(ctx, `SELECT k, s.last_seq FROM unnest($1::bigint[]) AS k LEFT JOIN sessions s ON s.key = k`, keys)
	if err != nil {
		return
	}
	var key int64
	var last *int64
	_, _ = pgx.ForEachRow(rows, []any{&key, &last}, func() error {
		if last == nil {
			s.rings.remove(key)
		} else {
			s.rings.ring(key, uint64(*last))
		}
		return nil
	})
}

// Wait implements [event.Waiter]. It learns of appends through the same store at once, and of others by a
// notification, or by checking every [Config.Poll] if that gets lost.
func (l *log) Wait(ctx context.Context, after uint64) error {
	if err := l.begin(); err != nil {
		return err
	}
	l.acts.Done() // Close ends a wait, and does not wait for it
	l.store.rings.waiting(l.bell, 1)
	defer l.store.rings.waiting(l.bell, -1)
	if err := l.freshen(ctx); err != nil {
		return l.failed("wait for", err)
	}
	for {
		there, rung, err := l.bell.beyond(after)
		if there {
			return nil
		}
		if err != nil {
			return l.failed("wait for", err)
		}
		select {
		case <-rung:
		case <-l.open.Done():
			return l.begin()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// freshen checks the length of the log, unless it was just checked: then notifications or the next check of the
// store report it.
func (l *log) freshen(ctx context.Context) error {
	l.mu.Lock()
	fresh := !l.looked.IsZero() && time.Since(l.looked) < l.store.poll
	l.mu.Unlock()
	if fresh {
		return nil
	}
	began := time.Now()
	var last int64
	rings := l.bell.heard()
	err := l.store.one(ctx, "SELECT last_seq FROM sessions WHERE key = $1", []any{l.key}, &last)
	if err == nil {
		l.bell.ring(uint64(last))
		l.bell.correct(rings, uint64(last))
		l.mu.Lock()
		l.looked = began
		l.mu.Unlock()
	}
	return err
}

package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/store"
)

// An append is one statement. It moves the head of the session, which locks its row, and adds the events with
// the resulting numbers. The database also puts number and time into the lines, so that senders of inputs need
// not know the length of the log.
const (
	moveHead = `WITH head AS (
		UPDATE sessions SET
			last_seq   = last_seq + @n,
			size       = size + @size,
			created    = CASE WHEN last_seq = 0 THEN date_trunc('milliseconds', now()) ELSE created END,
			modified   = date_trunc('milliseconds', now()),
			epoch      = CASE WHEN @claims THEN @epoch ELSE epoch END,
			claim_seq  = CASE WHEN @claims THEN last_seq + 1 ELSE claim_seq END,
			start_seq  = coalesce(last_seq + @start, start_seq),
			parent     = coalesce(@parent, parent),
			root       = coalesce(@root, root),
			labels     = CASE WHEN @opened THEN @labels ELSE labels END,
			title      = coalesce(@title, title),
			preview    = CASE WHEN empty THEN coalesce(@preview, preview) ELSE preview END,
			empty      = empty AND @preview::text IS NULL,
			pinned     = coalesce(@pinned, pinned),
			stop       = coalesce(@stop, stop)
		WHERE key = @key`

	// ifServer restricts an append to the server that holds the lease of the book.
	ifServer = ` AND holder = @token`

	ifDriver = ` AND (holder = @token OR @inputs) AND last_seq = @after AND CASE WHEN @claims THEN epoch < @epoch ELSE epoch = @epoch END`

	addEvents = ` RETURNING last_seq - @n AS before, modified AS at
	), added AS (
		INSERT INTO events (session, seq, kind, must, time, writer, line)
		SELECT @key, head.before + e.n, e.kind, e.must, head.at, CASE WHEN e.n = 1 THEN @writer::uuid END,
			convert_to('{"seq":' || (head.before + e.n) || ',"time":"'
				|| to_char(head.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), 'UTF8') || e.rest
		FROM head, unnest(@kinds::text[], @musts::boolean[], @rests::bytea[]) WITH ORDINALITY AS e (kind, must, rest, n)
	) SELECT before, at FROM head`

	// foundAppend finds a stored append.
	foundAppend = `SELECT seq - 1, time FROM events WHERE session = $1 AND writer = $2`
)

// Append implements [event.Log].
func (l *log) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	return l.append(ctx, nil, bodies)
}

// AppendAs implements [event.Log]. Without the lease it fails with [event.ErrNotDriver], with a lease lost to
// another with [event.ErrFenced], unless there are only inputs, which need none.
func (l *log) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	return l.append(ctx, &as, bodies)
}

// append stores bodies, of a driver if there is one.
func (l *log) append(ctx context.Context, as *event.Driver, bodies []event.Body) (events []event.Event, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := l.begin(); err != nil {
		return nil, err
	}
	defer l.acts.Done()
	b, err := l.batch(as, bodies)
	if err == nil && len(bodies) > 0 {
		events, err = l.send(ctx, b)
	}
	if err != nil {
		return nil, l.failed("append to", err)
	}
	return events, nil
}

// batch is an append in progress.
type batch struct {
	as     *event.Driver // nil means inputs
	bodies []event.Body
	inputs bool     // there are only inputs
	token  [16]byte // of the lease
	args   pgx.NamedArgs
	sql    string
	serves bool // of a book, by the holder of its lease
	lost   bool // it was sent, so it may be stored even without an answer
}

// batch prepares an append. It fails if the bodies can't be stored in any log.
func (l *log) batch(as *event.Driver, bodies []event.Body) (*batch, error) {
	if err := event.Storable(bodies, as != nil); err != nil {
		return nil, err
	}
	l.mu.Lock()
	b := &batch{as: as, bodies: bodies, inputs: event.Storable(bodies, false) == nil, token: l.token, sql: moveHead + addEvents}
	leased := l.leased
	l.mu.Unlock()
	if as != nil && !leased {
		return nil, event.ErrNotDriver
	}
	rests, size, err := l.rests(bodies)
	if err != nil {
		return nil, err
	}
	b.args = changes(l.id, bodies)
	for name, value := range map[string]any{
		"key": l.key, "n": len(bodies), "size": size, "rests": rests, "writer": newToken(),
		"token": b.token, "claims": b.claims(), "epoch": int64(0), "after": int64(0),
	} {
		b.args[name] = value
	}
	b.serves = as == nil && leased && store.IsBook(l.id)
	if b.serves {
		b.sql = moveHead + ifServer + addEvents
	}
	if as != nil {
		b.sql = moveHead + ifDriver + addEvents
		b.args["inputs"] = b.inputs
		b.args["epoch"], b.args["after"] = int64(min(as.Epoch, math.MaxInt64)), int64(min(as.After, math.MaxInt64))
	}
	return b, nil
}

// claims reports whether a driver claims the session with this batch.
func (b *batch) claims() bool {
	if b.as == nil || len(b.bodies) == 0 {
		return false
	}
	_, claims := b.bodies[0].(event.Claimed)
	return claims
}

// sound reports whether a driver may append this to a log in the state that the driver assumes.
func (b *batch) sound() bool {
	if b.as == nil {
		return true
	}
	before := b.as.Epoch
	if b.claims() {
		before = 0
	}
	return b.as.Epoch <= math.MaxInt64 && b.as.Admit(before, b.as.After, b.bodies) == nil
}

// Every line begins with its number and its time, which the database knows.
const (
	lineHead = `{"seq":0,"time":"0001-01-01T00:00:00.000Z`
	headRoom = 64       // bytes for number, time and a checksum
	mostLine = 64 << 20 // bytes, as in a folder of sessions
)

// rests returns the part of each line after its time, and the final size of all lines in bytes.
func (l *log) rests(bodies []event.Body) (rests [][]byte, size int64, err error) {
	for _, body := range bodies {
		line, err := event.Encode(event.Event{Session: l.id, Body: body})
		if err != nil {
			return nil, 0, err
		}
		rest, ok := bytes.CutPrefix(line, []byte(lineHead))
		switch {
		case !ok:
			return nil, 0, fmt.Errorf("%s begins in another way than every event", body.Kind())
		case len(rest) > mostLine-headRoom:
			return nil, 0, fmt.Errorf("%s event of %d bytes is too big", body.Kind(), len(line))
		}
		if u, is := body.(event.Unknown); is {
			if err := readable(u, line); err != nil {
				return nil, 0, err
			}
		}
		rests = append(rests, rest)
		size += int64(len(line))
	}
	return rests, size, nil
}

// readable returns the reason why a line could not be read back, nil if it can. The bytes of an unknown body are
// written into the line unchanged.
func readable(u event.Unknown, line []byte) error {
	if bytes.IndexByte(u.Raw, '\n') >= 0 || !json.Valid(u.Raw) {
		return fmt.Errorf("%q is not one line of JSON", u.Name)
	}
	if _, err := event.Decode(line); err != nil {
		return fmt.Errorf("%q could not be read back: %w", u.Name, err)
	}
	return nil
}

// send stores a batch, once, even if the connection is lost on the way.
func (l *log) send(ctx context.Context, b *batch) (events []event.Event, err error) {
	if !b.sound() {
		return l.refused(ctx, b)
	}
	err = l.store.try(ctx, func(ctx context.Context) error {
		events, err = l.attempt(ctx, b)
		return err
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return l.refused(ctx, b)
	case err != nil:
		return nil, err
	}
	l.store.rings.grown(l.key, events[len(events)-1].Seq)
	return events, nil
}

// attempt sends a batch. If the answer to an earlier attempt was lost, the batch may be stored already, or soon.
// Then the database refuses this one, because its number or its writer exists already.
func (l *log) attempt(ctx context.Context, b *batch) ([]event.Event, error) {
	lost := b.lost
	b.lost = true
	events, err := b.events(l.id, l.store.pool.QueryRow(ctx, b.sql, b.args))
	if lost && (errors.Is(err, pgx.ErrNoRows) || violates(err, "events_writer")) {
		return l.stored(ctx, b)
	}
	return events, err
}

// stored returns the events of a batch if they are stored.
func (l *log) stored(ctx context.Context, b *batch) ([]event.Event, error) {
	return b.events(l.id, l.store.pool.QueryRow(ctx, foundAppend, l.key, b.args["writer"]))
}

// events returns the stored events, from the number before the first and their time.
func (b *batch) events(id string, row pgx.Row) ([]event.Event, error) {
	var before int64
	var at time.Time
	if err := row.Scan(&before, &at); err != nil {
		return nil, err
	}
	events := make([]event.Event, len(b.bodies))
	for i, body := range b.bodies {
		events[i] = event.Event{Seq: uint64(before) + uint64(i) + 1, Time: at.UTC(), Session: id, Body: body}
	}
	return events, nil
}

// refused returns the reason why the log has refused a batch, or the events if the driver has stored them before.
func (l *log) refused(ctx context.Context, b *batch) ([]event.Event, error) {
	var last, epoch, claim int64
	var mine bool
	const query = "SELECT last_seq, epoch, claim_seq, holder IS NOT DISTINCT FROM $2 FROM sessions WHERE key = $1"
	if err := l.store.one(ctx, query, []any{l.key, b.token}, &last, &epoch, &claim, &mine); err != nil {
		return nil, err
	}
	switch {
	case b.serves && !mine:
		return nil, event.ErrFenced
	case b.as == nil:
		return nil, fs.ErrNotExist // it was removed, and exists again under another key
	}
	err := b.as.Admit(uint64(epoch), uint64(last), b.bodies)
	if events := b.as.Repeated(ctx, l, err, uint64(claim), b.bodies); events != nil {
		return events, nil
	}
	if !mine && !b.inputs && (err == nil || errors.Is(err, event.ErrGrown)) {
		err = event.ErrFenced
	}
	return nil, cmp.Or(err, errMoved)
}

// errMoved says that the head reached the state that the driver assumes only after the append was refused.
var errMoved = errors.New("the log has changed meanwhile")

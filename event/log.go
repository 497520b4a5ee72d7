package event

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// Log holds the events of one session. Implementations must be safe for
// concurrent use and are proven by harnesstest.TestLog.
//
// Anybody may append inputs. All else is for the session's driver, and rests on
// what it knows: every append of a driver names its claim and the last event that
// it has seen, and is refused whole if either is no longer the last of its kind.
type Log interface {
	// Append stamps inputs (see [Input]) with the next sequence numbers and the time
	// and stores them in order, with nothing of another appender between them. Other
	// bodies are refused with ErrNotDriver.
	// Once it returns without an error the events survive a kill of the
	// process, and those for which [Synced] holds survive power loss.
	// After an error none, or a prefix, of the bodies is stored; the log
	// stays readable and may refuse all further appends.
	Append(ctx context.Context, bodies ...Body) ([]Event, error)

	// AppendAs is Append for bodies of every stored kind, by the driver. It fails with
	// ErrFenced or ErrGrown as [Driver.Admit] says, and then stores nothing. An append
	// of which the driver doesn't know what became is repeated with the same
	// arguments: if it was stored, the events are returned, and nothing is stored
	// again.
	AppendAs(ctx context.Context, as Driver, bodies ...Body) ([]Event, error)

	// Read yields the events with a sequence number above after, in order,
	// and ends at the last one that is there. An error is yielded once, last.
	Read(ctx context.Context, after uint64) iter.Seq2[Event, error]
}

// Driver is what the append of a driver rests on.
type Driver struct {
	Epoch uint64 // of its [Claimed]; 0 while nobody has claimed the session
	After uint64 // the last event that it knows
}

var (
	// ErrNotDriver says that only the driver of a session may append such events.
	ErrNotDriver = errors.New("only the driver of the session may append this")
	// ErrFenced says that another driver has claimed the session. It is final: whoever
	// gets it must not go on.
	ErrFenced = errors.New("another driver has taken the session over")
	// ErrGrown says that a log holds events that the driver did not know of.
	ErrGrown = errors.New("the log has grown meanwhile")
	// ErrTooNew says that an event can only be understood by a later version.
	ErrTooNew = errors.New("a later version of inspan wrote this session")
)

// Admit is the rule by which every log takes what a driver appends: the epoch must be
// that of the last Claimed, or a greater one if the bodies begin with its Claimed, else
// ErrFenced; then After must be the last event, else ErrGrown.
func (d Driver) Admit(epoch, last uint64, bodies []Body) error {
	mine := d.Epoch == epoch
	for i, b := range bodies {
		c, claims := b.(Claimed)
		switch {
		case claims && i > 0:
			return errors.New("a claim comes first")
		case claims:
			mine = d.Epoch > epoch && c.Epoch == d.Epoch
		}
	}
	switch {
	case !mine:
		return ErrFenced
	case d.After > last:
		return fmt.Errorf("the log has lost events: it ends at %d, and its driver knows %d", last, d.After)
	case d.After < last:
		return ErrGrown
	}
	return nil
}

// Repeated returns the events of bodies that the driver has stored behind those that it
// knows, nil if it has not. A log that has refused an append looks whether that is
// one which it has stored; claim is the number of its last Claimed. As each Claimed has a
// writer of its own, nobody else can have stored the same, unless the driver knows already
// that another has claimed the session.
func (d Driver) Repeated(ctx context.Context, l Log, refused error, claim uint64, bodies []Body) []Event {
	if !errors.Is(refused, ErrGrown) && (!errors.Is(refused, ErrFenced) || claim <= d.After) {
		return nil
	}
	var found []Event
	for e, err := range l.Read(ctx, d.After) {
		if err != nil || len(found) == len(bodies) || !same(e.Body, bodies[len(found)]) {
			break
		}
		found = append(found, e)
	}
	if len(found) < len(bodies) {
		return nil
	}
	return found
}

// same reports whether two bodies are written the same way.
func same(a, b Body) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	x, err1 := Encode(Event{Body: a})
	y, err2 := Encode(Event{Body: b})
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// Storable returns why bodies can't be appended, nil if they can: none is missing or
// transient, and all are inputs unless a driver appends them.
func Storable(bodies []Body, driver bool) error {
	for _, b := range bodies {
		switch b := b.(type) {
		case nil:
			return errors.New("no body")
		case Delta, Progress:
			return fmt.Errorf("%s is never stored", b.Kind())
		}
		if !driver && !Input(b) {
			return fmt.Errorf("%s: %w", b.Kind(), ErrNotDriver)
		}
	}
	return nil
}

// Waiter is an optional interface of a [Log] that can tell when it grows.
type Waiter interface {
	// Wait returns once the log holds an event with a sequence number above
	// after, whoever appended it, or with ctx's error.
	Wait(ctx context.Context, after uint64) error
}

// Follower is an optional interface of a [Log] of a session that runs elsewhere, if it is told the
// transient events of the run too.
type Follower interface {
	// Follow yields the events with a sequence number above after, in order, and then those that
	// come, with the transient ones among them. It goes on until ctx is done, which is not an error.
	// Any other error is yielded last.
	Follow(ctx context.Context, after uint64) iter.Seq2[Event, error]
}

// Starter is an optional interface of a [Log] that knows a place from which
// the state can be folded without reading what comes before.
type Starter interface {
	// Start returns the sequence number to Read after, so that the first event
	// read is the last one with a snapshot, Compacted or Rewound; 0 if there is
	// none.
	Start(ctx context.Context) (uint64, error)
}

// Leaser is an optional interface of a [Log] that several processes can open.
type Leaser interface {
	// Lease makes the caller the session's only driver, until Release or the
	// end of the process. If another one drives, it fails at once.
	Lease(ctx context.Context) error
	// Release gives the lease back; without one it does nothing.
	Release() error
}

// Memory is a [Log] in memory. The zero value is not ready: use [NewMemory].
type Memory struct {
	session string
	now     func() time.Time

	mu     sync.Mutex
	events []Event
	epoch  uint64        // of the last claim
	claim  uint64        // its number
	grown  chan struct{} // closed and replaced when events are appended
}

// NewMemory makes an empty log for the session with the given id.
func NewMemory(session string) *Memory {
	return &Memory{session: session, now: time.Now, grown: make(chan struct{})}
}

// MemoryFrom makes a log that begins with events of another one, which keep number, time and
// session, and goes on with what the session itself says of that.
func MemoryFrom(session string, events []Event, bodies ...Body) *Memory {
	m := NewMemory(session)
	m.events = slices.Clip(events)
	for _, e := range events {
		if c, ok := e.Body.(Claimed); ok {
			m.epoch, m.claim = c.Epoch, e.Seq
		}
	}
	m.stamp(bodies)
	return m
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, bodies ...Body) ([]Event, error) {
	if err := Storable(bodies, false); err != nil {
		return nil, err
	}
	return m.append(ctx, bodies, nil)
}

// AppendAs implements [Log].
func (m *Memory) AppendAs(ctx context.Context, as Driver, bodies ...Body) ([]Event, error) {
	if err := Storable(bodies, true); err != nil {
		return nil, err
	}
	events, err := m.append(ctx, bodies, &as)
	m.mu.Lock()
	claim := m.claim
	m.mu.Unlock()
	if stored := as.Repeated(ctx, m, err, claim, bodies); stored != nil {
		return stored, nil
	}
	return events, err
}

// append stores bodies, of a driver if there is one.
func (m *Memory) append(ctx context.Context, bodies []Body, as *Driver) ([]Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := len(m.events)
	if as != nil && len(bodies) > 0 {
		if err := as.Admit(m.epoch, uint64(first), bodies); err != nil {
			return nil, err
		}
		if as.Epoch != m.epoch {
			m.epoch, m.claim = as.Epoch, uint64(first)+1
		}
	}
	m.stamp(bodies)
	close(m.grown)
	m.grown = make(chan struct{})
	return append([]Event(nil), m.events[first:]...), nil
}

func (m *Memory) stamp(bodies []Body) {
	now := m.now().UTC().Truncate(time.Millisecond)
	for _, b := range bodies {
		m.events = append(m.events, Event{Seq: uint64(len(m.events)) + 1, Time: now, Session: m.session, Body: b})
	}
}

// Read implements [Log].
func (m *Memory) Read(ctx context.Context, after uint64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		m.mu.Lock()
		events := m.events
		m.mu.Unlock()
		for i := after; i < uint64(len(events)); i++ {
			if err := ctx.Err(); err != nil {
				yield(Event{}, err)
				return
			}
			if !yield(events[i], nil) {
				return
			}
		}
	}
}

// Wait implements [Waiter].
func (m *Memory) Wait(ctx context.Context, after uint64) error {
	for {
		m.mu.Lock()
		grown, there := m.grown, uint64(len(m.events)) > after
		m.mu.Unlock()
		if there {
			return nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

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

// Log holds the events of one session. Implementations must be safe for concurrent use; test them with
// harnesstest.TestLog.
//
// Any process may append inputs. Everything else is for the session's driver and depends on the driver's
// knowledge: every append of a driver names its claim and the last event that it has seen, and is refused as a
// whole if either is outdated.
type Log interface {
	// Append stamps inputs (see [Input]) with the next sequence numbers and the time, and stores them in order
	// with no other events between them. It refuses other bodies with ErrNotDriver. When it returns without an
	// error, the events survive a kill of the process, and those for which [Synced] holds survive power loss.
	// After an error, none or a prefix of the bodies is stored; the log stays readable and may refuse all
	// further appends.
	Append(ctx context.Context, bodies ...Body) ([]Event, error)

	// AppendAs is Append for bodies of every stored kind, by the driver. It fails with ErrFenced or ErrGrown as
	// described at [Driver.Admit], and then stores nothing. If the driver does not know whether an append
	// succeeded, it repeats it with the same arguments: if the events were stored, they are returned and not
	// stored again.
	AppendAs(ctx context.Context, as Driver, bodies ...Body) ([]Event, error)

	// Read yields the events with a sequence number above after, in order, and ends at the present end of the
	// log. An error is yielded once, last.
	Read(ctx context.Context, after uint64) iter.Seq2[Event, error]
}

// Driver identifies the driver that appends, and the state of the log as it knows it.
type Driver struct {
	Epoch uint64 // of its [Claimed]; 0 while the session is unclaimed
	After uint64 // the last event that it knows
}

var (
	// ErrNotDriver means that only the driver of a session may append such events.
	ErrNotDriver = errors.New("only the driver of the session may append this")
	// ErrFenced means that another driver has claimed the session. It is final: a driver that gets it must
	// stop.
	ErrFenced = errors.New("another driver has taken the session over")
	// ErrGrown means that the log holds events that the driver does not know.
	ErrGrown = errors.New("the log has grown meanwhile")
	// ErrTooNew means that an event can only be understood by a later version.
	ErrTooNew = errors.New("a later version of inspan wrote this session")
)

// Admit is the rule of every log for appends of a driver. The epoch must be that of the last Claimed, or a greater
// one if the bodies begin with the driver's Claimed; otherwise it returns ErrFenced. Then After must be the last
// event; otherwise it returns ErrGrown.
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

// Repeated returns the stored events if the driver has already stored these bodies after the events that it knows,
// and nil if not. A log calls it when it refuses an append; claim is the number of its last Claimed. Each Claimed
// has a random writer, so no one else can have stored the same bodies, unless the driver knows that another has
// claimed the session.
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

// same reports whether two bodies have the same encoding.
func same(a, b Body) bool {
	if a.Kind() != b.Kind() {
		return false
	}
	x, err1 := Encode(Event{Body: a})
	y, err2 := Encode(Event{Body: b})
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

// Storable returns an error if bodies can't be appended: one is missing or transient, or one is not an input
// and no driver appends it.
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
	// Wait returns when the log holds an event with a sequence number above after, or with ctx's error.
	Wait(ctx context.Context, after uint64) error
}

// Follower is an optional interface of a [Log] of a session that runs elsewhere, if it also receives the
// transient events of the run.
type Follower interface {
	// Follow yields the events with a sequence number above after, in order, and then new ones, transient ones
	// included, until ctx ends, which is not an error. Any other error is yielded last.
	Follow(ctx context.Context, after uint64) iter.Seq2[Event, error]
}

// Starter is an optional interface of a [Log] that knows where the state can be folded from without reading
// earlier events.
type Starter interface {
	// Start returns the sequence number to Read after, so that the first event read is the last one with a
	// snapshot, Compacted or Rewound; 0 if there is none.
	Start(ctx context.Context) (uint64, error)
}

// Leaser is an optional interface of a [Log] that several processes can open.
type Leaser interface {
	// Lease makes the caller the session's only driver, until Release or the end of the process. It fails at
	// once if another process drives the session.
	Lease(ctx context.Context) error
	// Release gives the lease back. Without a lease it does nothing.
	Release() error
}

// Memory is a [Log] in memory. Use [NewMemory] to make one.
type Memory struct {
	session string
	now     func() time.Time

	mu     sync.Mutex
	events []Event
	epoch  uint64        // of the last claim
	claim  uint64        // its sequence number
	grown  chan struct{} // closed and replaced when events are appended
}

// NewMemory returns a log for the session with this id. It begins with events, which keep number, time and session.
func NewMemory(session string, events ...Event) *Memory {
	m := &Memory{session: session, now: time.Now, grown: make(chan struct{}), events: slices.Clip(events)}
	for _, e := range events {
		if c, ok := e.Body.(Claimed); ok {
			m.epoch, m.claim = c.Epoch, e.Seq
		}
	}
	return m
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, bodies ...Body) ([]Event, error) {
	if err := Storable(bodies, false); err != nil {
		return nil, err
	}
	return m.store(ctx, bodies, nil)
}

// AppendAs implements [Log].
func (m *Memory) AppendAs(ctx context.Context, as Driver, bodies ...Body) ([]Event, error) {
	if err := Storable(bodies, true); err != nil {
		return nil, err
	}
	events, err := m.store(ctx, bodies, &as)
	m.mu.Lock()
	claim := m.claim
	m.mu.Unlock()
	if stored := as.Repeated(ctx, m, err, claim, bodies); stored != nil {
		return stored, nil
	}
	return events, err
}

// store stores bodies; as is nil unless a driver appends them.
func (m *Memory) store(ctx context.Context, bodies []Body, as *Driver) ([]Event, error) {
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

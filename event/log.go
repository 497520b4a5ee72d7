package event

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"
)

// Log holds the events of one session. Implementations must be safe for
// concurrent use and are proven by harnesstest.TestLog.
type Log interface {
	// Append stamps the bodies with the next sequence numbers and the time and
	// stores them in order, with nothing of another appender between them.
	// Once it returns without an error the events survive a kill of the
	// process, and those for which [Synced] holds survive power loss.
	// After an error none, or a prefix, of the bodies is stored; the log
	// stays readable and may refuse all further appends. A body that says of
	// which event it was made (see [Of]) is refused with ErrGrown, and nothing
	// is stored, if that is not the last one before it.
	Append(ctx context.Context, bodies ...Body) ([]Event, error)

	// Read yields the events with a sequence number above after, in order,
	// and ends at the last one that is there. An error is yielded once, last.
	Read(ctx context.Context, after uint64) iter.Seq2[Event, error]
}

// ErrGrown says that a log holds an event that a body was made without.
var ErrGrown = errors.New("the log has grown meanwhile")

// Of returns the number of the event that must be the last one before the body;
// 0 if it can stand anywhere.
func Of(b Body) uint64 {
	switch b := b.(type) {
	case Compacted:
		return b.Of
	case Rewound:
		return b.Of
	}
	return 0
}

// Waiter is an optional interface of a [Log] that can tell when it grows.
type Waiter interface {
	// Wait returns once the log holds an event with a sequence number above
	// after, whoever appended it, or with ctx's error.
	Wait(ctx context.Context, after uint64) error
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
	grown  chan struct{} // closed and replaced when events are appended
}

// NewMemory makes an empty log for the session with the given id.
func NewMemory(session string) *Memory {
	return &Memory{session: session, now: time.Now, grown: make(chan struct{})}
}

// Append implements [Log].
func (m *Memory) Append(ctx context.Context, bodies ...Body) ([]Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, b := range bodies {
		if b == nil {
			return nil, errors.New("append: no body")
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	first := len(m.events)
	for i, b := range bodies {
		if of := Of(b); of > 0 && of != uint64(first+i) {
			return nil, ErrGrown
		}
	}
	now := m.now().UTC().Truncate(time.Millisecond)
	for _, b := range bodies {
		m.events = append(m.events, Event{Seq: uint64(len(m.events)) + 1, Time: now, Session: m.session, Body: b})
	}
	close(m.grown)
	m.grown = make(chan struct{})
	return append([]Event(nil), m.events[first:]...), nil
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

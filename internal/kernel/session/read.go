package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/inspan/inspan/event"
)

// How often Wait itself checks for appends of other processes.
const (
	pollEvery = 50 * time.Millisecond // if the system does not report them
	lookEvery = 5 * time.Second       // if it does, in case that it misses one
)

// Notifications of the system cost nothing except at their end, for which Linux takes 10 to 20 ms. The end of a
// run would wait for that, so they are only used if checking would cost more.
const (
	looksFor = 30 * time.Second // how long a wait checks itself
	fewLogs  = 8                // largest number of open logs; with more, no wait checks itself
)

// Read implements [event.Log]. If the log is damaged, the good events before the damage are followed by a
// [*DamageError]. Nothing is skipped.
func (l *Log) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		if err := l.read(ctx, after, yield); err != nil {
			yield(event.Event{}, fmt.Errorf("read session %s: %w", l.id, err))
		}
	}
}

// read returns the error to yield, nil also if yield ended it.
func (l *Log) read(ctx context.Context, after uint64, yield func(event.Event, error) bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := l.refresh(ctx); err != nil {
		return err
	}
	from, end := l.span(after)
	more, err := l.events(ctx, from, end, after, nil, yield)
	if _, damaged := errors.AsType[*DamageError](err); damaged && from != (cursor{}) && errors.Is(err, errFirst) {
		// Perhaps only the known places are wrong.
		l.forget()
		more, err = l.events(ctx, cursor{}, end, after, nil, yield)
	}
	if d, damaged := errors.AsType[*DamageError](err); damaged {
		l.condemn(d)
		return d
	}
	if err != nil || !more {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if d, damaged := errors.AsType[*DamageError](l.broken); damaged {
		return d
	}
	return nil
}

// errFirst marks damage in the very first line that was read.
var errFirst = errors.New("first line")

// events yields the events after after from the lines between from and end: all of them, or what only leaves of
// each. more is false if yield returned false.
func (l *Log) events(ctx context.Context, from cursor, end int64,
	after uint64, only func(kind string, line []byte) []byte, yield func(event.Event, error) bool,
) (more bool, err error) {
	c := from
	in := lines{f: l.f, off: from.Off, end: end}
	for {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		line, whole, err := in.next()
		if errors.Is(err, io.EOF) && c.Off >= end {
			return true, nil
		}
		e, why, err := l.event(&c, line, whole, err, after, only)
		if err != nil {
			return false, err
		}
		if why != "" {
			err = c.damage(why)
			if c == from {
				err = fmt.Errorf("%w: %w", errFirst, err)
			}
			return false, err
		}
		if e.Seq > after && !yield(e, nil) {
			return false, nil
		}
	}
}

// event verifies the line at c, as returned by lines.next, and decodes it if its number is above after, or what only leaves of
// it. For a permanently unreadable line, why is set.
func (l *Log) event(
	c *cursor, line []byte, whole bool, err error, after uint64, only func(kind string, line []byte) []byte,
) (e event.Event, why string, _ error) {
	switch {
	case errors.Is(err, io.EOF):
		return e, "the file ends here", nil
	case errors.Is(err, errLongLine):
		return e, err.Error(), nil
	case err != nil:
		return e, "", err
	case !whole:
		return e, "the line has no end", nil
	}
	next := *c
	kind, why := next.take(line)
	if why != "" {
		return e, why, nil
	}
	if only != nil {
		line = only(kind, line)
	}
	if next.Seq > after && line != nil {
		if e, err = l.store.decode(line); errors.Is(err, errSpecRead) {
			return e, "", err
		}
		if err != nil {
			why = err.Error()
		}
	}
	if why == "" {
		*c = next
	}
	return e, why, nil
}

// span returns where to start reading to find the events above after, and where to end.
func (l *Log) span(after uint64) (from cursor, end int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if after >= l.tail.Seq {
		return l.tail, l.tail.Off
	}
	from = l.marks.before(after)
	for _, c := range append(l.recent[:], l.last) {
		if c.Seq <= after && c.Seq > from.Seq {
			from = c
		}
	}
	return from, l.tail.Off
}

// forget drops all places where a read could start, except the first.
func (l *Log) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.marks = marks{}
	clear(l.recent[:])
	l.dropIndex()
}

// condemn keeps the log from accepting appends.
func (l *Log) condemn(d *DamageError) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = d
	}
	l.dropIndex()
}

// at reads the one event that starts at c.
func (l *Log) at(c cursor) (event.Event, error) {
	size, err := l.f.Size()
	if err != nil {
		return event.Event{}, err
	}
	in := lines{f: l.f, off: c.Off, end: size, buf: make([]byte, 4<<10)} // most lines are short
	line, whole, err := in.next()
	e, why, err := l.event(&c, line, whole, err, 0, nil)
	if why != "" {
		err = c.damage(why)
	}
	return e, err
}

// Start implements [event.Starter].
func (l *Log) Start(ctx context.Context) (uint64, error) {
	if err := l.refresh(ctx); err != nil {
		return 0, fmt.Errorf("read session %s: %w", l.id, err)
	}
	l.mu.Lock()
	compacted := l.marks.Compacted
	l.mu.Unlock()
	for i := len(compacted) - 1; i >= 0; i-- {
		e, err := l.at(compacted[i])
		if err != nil {
			continue
		}
		switch e.Body.(type) {
		case event.Compacted, event.Rewound:
			return compacted[i].Seq, nil
		}
	}
	return 0, nil
}

// Wait implements [event.Waiter]. It learns at once of appends through the same store, and of others within 50 ms.
// A long wait, or one among many, also learns of others at once if the system reports changes of files. It fails if
// the log is damaged, because such a log no longer grows.
func (l *Log) Wait(ctx context.Context, after uint64) error {
	every, began, told := pollEvery, time.Now(), false
	poll := time.NewTimer(every)
	defer poll.Stop()
	for {
		rung := l.bell.wait()
		if done, err := l.above(ctx, after); done || err != nil {
			return err
		}
		if !told && (time.Since(began) >= looksFor || l.store.crowded()) {
			every, told = l.told(), true
			continue // it may have grown before notifications began
		}
		poll.Reset(every)
		select {
		case <-rung:
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// told turns on notifications, and returns how often to check anyway.
func (l *Log) told() time.Duration {
	if l.store.notifier.add(l.store.logPath(l.id), l.bell) {
		return lookEvery
	}
	return pollEvery
}

// above reports whether there is an event above after.
func (l *Log) above(ctx context.Context, after uint64) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	err := l.refresh(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tail.Seq > after {
		return true, nil
	}
	if d, damaged := errors.AsType[*DamageError](l.broken); damaged && err == nil {
		err = d
	}
	if err != nil {
		return false, fmt.Errorf("wait for session %s: %w", l.id, err)
	}
	return false, nil
}

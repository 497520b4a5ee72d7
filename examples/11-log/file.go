package main

import (
	"bufio"
	"context"
	"iter"
	"os"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
)

// file is an event.Log in a file that one process at a time has open. log_test.go tests it.
type file struct {
	*os.File
	mu           sync.Mutex
	events       []event.Event // the content of the file
	epoch, claim uint64        // of the last Claimed, and its number
}

func openFile(path string) (*file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	l := &file{File: f}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		e, err := event.Decode(lines.Bytes())
		if err != nil {
			return nil, err
		}
		l.remember(e)
	}
	return l, lines.Err()
}

func (l *file) remember(e event.Event) {
	l.events = append(l.events, e)
	if c, ok := e.Body.(event.Claimed); ok {
		l.epoch, l.claim = c.Epoch, e.Seq
	}
}

// Append implements event.Log.
func (l *file) Append(ctx context.Context, bodies ...event.Body) ([]event.Event, error) {
	if err := event.Storable(bodies, false); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.write(ctx, bodies)
}

// AppendAs implements event.Log.
func (l *file) AppendAs(ctx context.Context, as event.Driver, bodies ...event.Body) ([]event.Event, error) {
	if err := event.Storable(bodies, true); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if err := as.Admit(l.epoch, uint64(len(l.events)), bodies); err != nil {
		claim := l.claim
		l.mu.Unlock()
		if stored := as.Repeated(ctx, l, err, claim, bodies); stored != nil {
			return stored, nil // the driver was not told that it had succeeded
		}
		return nil, err
	}
	defer l.mu.Unlock()
	return l.write(ctx, bodies)
}

// write stores events, and returns when they would survive a power failure. A crash during it can leave half a
// line, which a production log has to repair.
func (l *file) write(ctx context.Context, bodies []event.Body) (out []event.Event, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for _, b := range bodies {
		e := event.Event{Seq: uint64(len(l.events)) + 1, Time: time.Now().UTC().Truncate(time.Millisecond), Session: "mine", Body: b}
		line, err := event.Encode(e)
		if err == nil {
			_, err = l.Write(append(line, '\n'))
		}
		if err != nil {
			return nil, err
		}
		l.remember(e)
		out = append(out, e)
	}
	return out, l.Sync()
}

// Read implements event.Log.
func (l *file) Read(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		l.mu.Lock()
		events := l.events
		l.mu.Unlock()
		for _, e := range events[min(after, uint64(len(events))):] {
			if err := ctx.Err(); err != nil {
				yield(event.Event{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

package harnesstest

import (
	"context"
	"errors"
	"slices"

	"github.com/inspan/inspan/event"
)

// Write appends bodies of any stored kind as the driver that has claimed the session last, or that claims it
// with them, at the end of the log: for tests that need a log with certain content. It reads the whole log each
// time.
func Write(ctx context.Context, l event.Log, bodies ...event.Body) ([]event.Event, error) {
	claim := slices.IndexFunc(bodies[min(1, len(bodies)):], func(b event.Body) bool { return b.Kind() == "claimed" }) + 1
	if claim > 0 { // it comes first in its batch
		first, err := Write(ctx, l, bodies[:claim]...)
		if err != nil {
			return first, err
		}
		rest, err := Write(ctx, l, bodies[claim:]...)
		return append(first, rest...), err
	}
	for {
		as, err := last(ctx, l)
		if err != nil {
			return nil, err
		}
		if len(bodies) > 0 {
			if c, ok := bodies[0].(event.Claimed); ok {
				as.Epoch = c.Epoch
			}
		}
		events, err := l.AppendAs(ctx, as, bodies...)
		if !errors.Is(err, event.ErrGrown) {
			return events, err
		}
	}
}

// last returns the driver of a log, who knows all of it.
func last(ctx context.Context, l event.Log) (as event.Driver, err error) {
	for e, err := range l.Read(ctx, 0) {
		if err != nil {
			return as, err
		}
		as.After = e.Seq
		if c, ok := e.Body.(event.Claimed); ok {
			as.Epoch = c.Epoch
		}
	}
	return as, nil
}

package drive

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// The methods for a program that performs steps on a session instead of a model's run. It starts with
// [Driver.Begin].

// Record stores facts and updates the state.
func (d *Driver) Record(ctx context.Context, bodies ...event.Body) error {
	return d.journal.record(ctx, bodies...)
}

// Persist is Record for bodies that are made again from the state whenever the log has grown.
func (d *Driver) Persist(ctx context.Context, bodies func() ([]event.Body, error)) error {
	return d.journal.persist(ctx, bodies)
}

// CatchUp updates the state with what others have appended.
func (d *Driver) CatchUp(ctx context.Context) error { return d.journal.catchUp(ctx) }

// Show shows a transient event.
func (d *Driver) Show(body event.Body) error { return d.journal.show(body) }

// State returns the state, which the caller must not change.
func (d *Driver) State() *loop.State { return d.journal.state }

// Interruptible returns a context that ends with fault.ErrInterrupted when someone appends event.Cancelled to
// the log. The caller must call done, which waits.
func (d *Driver) Interruptible(ctx context.Context) (watched context.Context, done func()) {
	return d.journal.interruptible(ctx)
}

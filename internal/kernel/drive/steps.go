package drive

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// What a program that performs steps on a session needs of its driver, in the place of a model's run. It begins
// with [Driver.Begin].

// Record stores what has happened, and brings the state up to date.
func (d *Driver) Record(ctx context.Context, bodies ...event.Body) error {
	return d.journal.record(ctx, bodies...)
}

// Persist is Record for bodies that are made again from the state whenever the log has grown.
func (d *Driver) Persist(ctx context.Context, bodies func() ([]event.Body, error)) error {
	return d.journal.persist(ctx, bodies)
}

// CatchUp brings the state up to date with what others have appended.
func (d *Driver) CatchUp(ctx context.Context) error { return d.journal.catchUp(ctx) }

// Show shows a transient event.
func (d *Driver) Show(body event.Body) error { return d.journal.show(body) }

// State returns the state, which the caller must not change.
func (d *Driver) State() *loop.State { return d.journal.state }

// Interruptible returns a context that ends with fault.ErrInterrupted when somebody appends event.Cancelled to
// the log. Done must be called, and waits.
func (d *Driver) Interruptible(ctx context.Context) (watched context.Context, done func()) {
	return d.journal.interruptible(ctx)
}

package drive

import (
	"context"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// These methods are for programs that perform steps on a session, without a model. They call [Driver.Begin] first.

// Record stores facts and updates the state.
func (d *Driver) Record(ctx context.Context, bodies ...event.Body) error {
	return d.journal.record(ctx, bodies...)
}

// Persist is like Record, for bodies that depend on the state: it calls the function again whenever the log has grown.
func (d *Driver) Persist(ctx context.Context, bodies func() ([]event.Body, error)) error {
	return d.journal.persist(ctx, bodies)
}

// CatchUp updates the state with the events of others.
func (d *Driver) CatchUp(ctx context.Context) error { return d.journal.catchUp(ctx) }

// Show yields a transient event.
func (d *Driver) Show(body event.Body) error { return d.journal.show(body) }

// State returns the state, which the caller must not change.
func (d *Driver) State() *loop.State { return d.journal.state }

// Interruptible returns a context that ends with an error like fault.ErrInterrupted when the run is cancelled in the
// log. The caller must call done, which waits for the watcher.
func (d *Driver) Interruptible(ctx context.Context) (watched context.Context, done func()) {
	return d.journal.interruptible(ctx)
}

package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// ErrUnstartedInput means that a rewind would drop a message: it is queued, or arrived during the rewind.
var ErrUnstartedInput = errors.New("a message has come that a rewind would drop")

// Rewind takes the conversation back to its state after the event to, see inspan.Session.Rewind; 0 leaves it. Restore,
// which may be nil, restores files. Called again with its result, it undoes that.
func (d *Driver) Rewind(
	ctx context.Context, to uint64, restore func(ctx context.Context, done *event.Restored) (*event.Restored, error),
) (err error) {
	defer fault.Recover("the rewind", nil, &err)
	said := false
	claimed, err := d.claim(ctx, func(e event.Event, _ error) bool {
		said = said || loop.BeginsRun(e.Body)
		return true
	})
	if err != nil {
		return err
	}
	checkInputs := func() error {
		if said || d.journal.state.HasUnstartedInput() {
			return ErrUnstartedInput
		}
		return nil
	}
	err = d.journal.persist(ctx, func() ([]event.Body, error) { return []event.Body{claimed}, checkInputs() })
	if err == nil {
		err = checkInputs()
	}
	if err != nil {
		return err
	}

	var done *event.Restored
	restoreFiles := func() (err error) {
		if done, err = restore(ctx, done); err == nil && done != nil {
			err = d.journal.persist(ctx, func() ([]event.Body, error) { return []event.Body{*done}, nil })
		}
		if err != nil {
			return err
		}
		return d.workspace.save(ctx) // after the outcome is in the log
	}
	if restore != nil {
		if err := restoreFiles(); err != nil {
			return err
		}
	}
	if to == 0 {
		return nil
	}
	earlier, err := d.journal.foldUpTo(ctx, to)
	if err != nil {
		return err
	}
	if earlier.Seq != to {
		return fmt.Errorf("rewind: there is no event %d", to)
	}
	err = d.journal.persist(ctx, func() ([]event.Body, error) {
		body, err := d.journal.state.Rewound(earlier, done != nil)
		return []event.Body{body}, errors.Join(err, checkInputs())
	})
	if errors.Is(err, ErrUnstartedInput) && done != nil {
		err = errors.Join(err, restoreFiles()) // undoes it
	}
	return err
}

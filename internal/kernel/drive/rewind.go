package drive

import (
	"context"
	"errors"
	"fmt"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// ErrUnheard means that a rewind would drop a message that no run has begun with, or one that came since the
// caller looked.
var ErrUnheard = errors.New("a message has come that a rewind would drop")

// Rewind takes the conversation back to where it was after the event to, see inspan.Session.Rewind. Restore,
// which may be nil, restores files; called again with its result, it undoes that.
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
	unheard := func() error {
		if said || d.journal.state.HasUnstartedInput() {
			return ErrUnheard
		}
		return nil
	}
	err = d.journal.persist(ctx, func() ([]event.Body, error) { return []event.Body{claimed}, unheard() })
	if err == nil {
		err = unheard()
	}
	if err != nil {
		return err
	}

	var done *event.Restored
	put := func() (err error) {
		if done, err = restore(ctx, done); err == nil && done != nil {
			err = d.journal.persist(ctx, func() ([]event.Body, error) { return []event.Body{*done}, nil })
		}
		if err != nil {
			return err
		}
		return d.workspace.keep(ctx) // after the outcome is in the log
	}
	if restore != nil {
		if err := put(); err != nil {
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
		return []event.Body{body}, errors.Join(err, unheard())
	})
	if errors.Is(err, ErrUnheard) && done != nil {
		err = errors.Join(err, put())
	}
	return err
}

package inspan

import (
	"context"
	"errors"
	"fmt"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
)

// Restore puts the files of a workspace back and returns what it has done, nil if that was nothing. If
// done is not nil, it takes back what it has done then.
type Restore func(ctx context.Context, done *event.Restored) (*event.Restored, error)

// ErrUnheard says that a rewind would take back what no run has begun with yet, or what was said
// since the session's [Session.Status].
var ErrUnheard = errors.New("a message has come that a rewind would drop")

// Rewind takes the conversation back to where it was after the event to; 0 leaves
// it as it is. Before that it has files put back and notes what that returns; a nil
// restore leaves the files as they are. Nobody else drives the session meanwhile:
// while a run goes on, here or in another process, Rewind fails and nothing is put
// back. Nor is it while a message waits that no run has begun with: that is
// ErrUnheard. If the message comes while files are put back, that is taken back.
// What came since stays in the log: rewinding to the event before the event.Rewound
// takes this back.
func (s *Session) Rewind(ctx context.Context, to uint64, restore Restore) error {
	if s.Status().Workflow != "" {
		return ErrWorkflow
	}
	if !s.driving.TryLock() {
		return ErrBusy
	}
	defer s.driving.Unlock()
	said := false
	d := newDriver(s, func(e event.Event, _ error) bool {
		said = said || loop.Orders(e.Body)
		return true
	})
	release, err := d.lease(ctx)
	if err == nil {
		err = d.goBack(ctx, to, restore, func() error {
			if said || d.state.Unheard() {
				return ErrUnheard
			}
			return nil
		})
	}
	return errors.Join(err, release())
}

// goBack is Rewind for a driver that has the lease. Free fails if it may not be.
func (d *driver) goBack(
	ctx context.Context, to uint64, restore Restore, free func() error,
) (err error) {
	defer caught("the rewind", nil, &err)
	claimed, err := d.claim(ctx)
	if err != nil {
		return err
	}
	err = d.persist(ctx, func() ([]event.Body, error) { return []event.Body{claimed}, free() })
	if err == nil {
		err = free()
	}
	if err != nil {
		return err
	}
	var done *event.Restored
	put := func() (err error) {
		if done, err = restore(ctx, done); err == nil && done != nil {
			err = d.record(ctx, *done)
		}
		return err
	}
	if restore != nil {
		if err := put(); err != nil {
			return err
		}
		bodies, err := carried(ctx, d.Session)
		if err == nil {
			err = d.record(ctx, bodies...)
		}
		if err != nil {
			return err
		}
	}
	if to == 0 {
		return nil
	}
	earlier, err := d.at(ctx, to)
	if err != nil {
		return err
	}
	err = d.persist(ctx, func() ([]event.Body, error) {
		body, err := d.state.Rewound(earlier, done != nil)
		return []event.Body{body}, errors.Join(err, free())
	})
	if errors.Is(err, ErrUnheard) && done != nil {
		err = errors.Join(err, put())
	}
	return err
}

// at is the state after an event.
func (s *Session) at(ctx context.Context, seq uint64) (*loop.State, error) {
	state := &loop.State{}
	for e, err := range s.log.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		if e.Seq > seq {
			break
		}
		if err := state.Apply(e); err != nil {
			return nil, err
		}
	}
	if state.Seq != seq {
		return nil, fmt.Errorf("rewind: there is no event %d", seq)
	}
	return state, nil
}

// keeps reports whether checkpoints of the workspace can be taken.
func (d *driver) keeps() bool { return d.agent.Checkpoint != nil && !d.uncheckable }

// checkpoint takes a checkpoint of the workspace, before calls that change something or
// after them. One that can't be taken is noted once and stops nothing.
func (d *driver) checkpoint(ctx context.Context, after bool) error {
	body, err := d.agent.Checkpoint(ctx)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		d.calls.span, body.After = !after, after
		return d.record(ctx, body)
	}
	d.calls.span, d.uncheckable = false, true
	return d.record(ctx, event.Note{
		Topic: "checkpoint",
		Text:  "no more checkpoints of the workspace are taken, so that what is changed now can't be put back: " + err.Error(),
	})
}

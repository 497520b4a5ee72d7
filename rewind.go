package inspan

import (
	"context"
	"errors"
	"fmt"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/loop"
)

// Rewind takes the conversation back to where it was after the event to; 0 leaves
// it as it is. Before that it has files put back and notes what that returns, nil
// if it was nothing; a nil restore leaves the files as they are. Nobody else
// drives the session meanwhile: while a run goes on, here or in another process,
// Rewind fails and nothing is put back. What came since stays in the log:
// rewinding to the event before the event.Rewound takes this back.
func (s *Session) Rewind(ctx context.Context, to uint64, restore func(context.Context) (*event.Restored, error)) error {
	if !s.driving.TryLock() {
		return ErrBusy
	}
	defer s.driving.Unlock()
	d := newDriver(s, func(event.Event, error) bool { return true })
	release, err := d.lease(ctx)
	if err == nil {
		err = d.goBack(ctx, to, restore)
	}
	return errors.Join(err, release())
}

// goBack is Rewind for a driver that has the lease.
func (d *driver) goBack(ctx context.Context, to uint64, restore func(context.Context) (*event.Restored, error)) (err error) {
	defer caught("the rewind", nil, &err)
	claimed, err := d.claim(ctx)
	if err != nil {
		return err
	}
	if err := d.record(ctx, claimed); err != nil {
		return err
	}
	files := false
	if restore != nil {
		done, err := restore(ctx)
		files = done != nil
		if err == nil && done != nil {
			err = d.record(ctx, *done)
		}
		if err != nil {
			return err
		}
	}
	if to == 0 {
		return nil
	}
	return d.rewind(ctx, to, files)
}

// rewind makes the state what it was after an event, to which files may have
// been put back as well.
func (d *driver) rewind(ctx context.Context, to uint64, files bool) error {
	earlier, err := d.at(ctx, to)
	if err != nil {
		return err
	}
	return d.persist(ctx, func() ([]event.Body, error) {
		body, err := d.state.Rewound(earlier, files)
		return []event.Body{body}, err
	})
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

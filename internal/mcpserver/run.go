package mcpserver

import (
	"context"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// grace is how long a run may take to stop in order once it is called off.
const grace = 10 * time.Second

// run drives a session for a work.
type run struct {
	work    *work
	session *inspan.Session
	see     func(event.Event)               // every event, as it happens
	ask     func(inspan.Pending) event.Body // answers a call that waits
}

// drive drives the session until it stops, and asks where it waits. If the work is
// called off the session is interrupted, and what it runs has ended when drive returns.
func (r *run) drive(inputs ...event.Body) error {
	ctx, end := context.WithCancel(context.WithoutCancel(r.work.ctx))
	stopped := func() {}
	defer func() { end(); stopped() }()
	begun := false
	for {
		for e, err := range r.session.Run(ctx, inputs...) {
			if err != nil {
				return err
			}
			if !begun { // an interrupt before that would not be one of this run
				begun, stopped = true, r.interrupts(ctx, end)
			}
			r.see(e)
			if raised, ok := e.Body.(event.Raised); ok {
				if err := r.session.Send(ctx, r.ask(inspan.Asked(inspan.Question{Raised: raised, Seq: e.Seq}))); err != nil {
					return err
				}
			}
		}
		waiting := r.session.Status().Waiting
		if len(waiting) == 0 {
			return nil
		}
		inputs = inputs[:0]
		for _, p := range waiting {
			d := r.ask(p)
			inputs = append(inputs, d)
			if _, cancelled := d.(event.Cancelled); cancelled {
				break
			}
		}
	}
}

// interrupts interrupts the session when the work is called off, and ends ctx if that
// does not help. The function returned is called when ctx has ended, and waits.
func (r *run) interrupts(ctx context.Context, end context.CancelFunc) (wait func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-ctx.Done():
			return
		case <-r.work.ctx.Done():
		}
		if r.session.Send(ctx, event.Cancelled{By: r.work.client}) != nil {
			end()
			return
		}
		late := time.NewTimer(grace)
		defer late.Stop()
		select {
		case <-ctx.Done():
		case <-late.C:
			end()
		}
	}()
	return func() { <-done }
}

package mcpserver

import (
	"context"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// grace is how long a run may take to stop after it is cancelled.
const grace = 10 * time.Second

// drive drives a session until it stops, and asks its questions. If the call is cancelled, the session is
// interrupted, and its processes have ended when drive returns.
func (w *clientCall) drive(s *inspan.Session, see func(event.Event), inputs ...event.Body) error {
	c := inspan.Conductor{
		Session: s, Together: true, Grace: grace,
		See: func(e event.Event) error { see(e); return nil },
		Ask: w.ask,
	}
	defer context.AfterFunc(w.ctx, func() { c.Interrupt(event.Cancelled{By: w.client}) })()
	return c.Run(context.WithoutCancel(w.ctx), inputs...)
}

package running

import (
	"context"
	"errors"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// Engine decides which machine drives a session, where several could. What is to be said goes into
// the log first. Safe for concurrent use.
type Engine interface {
	// Wake has a session go on with what is in its log, on whichever machine. Said is what was put there
	// for it to hear, nil: whatever there is. It returns once the wake can't be lost.
	Wake(ctx context.Context, session string, said event.Body) error
	// Work drives sessions that the engine gives to this process, until ctx ends. Then it finishes the
	// calls and requests that run, lets go of the sessions, and returns.
	Work(ctx context.Context, w Work) error
	// Stuck is why no process has been able to go on with a session, in several tries; empty: one does, or
	// may yet. It goes on being tried.
	Stuck(ctx context.Context, session string) (why string, err error)
	// Close lets go of the engine.
	Close() error
}

// ErrUnowned says that a session belongs to nothing that is still to be worked on, so no process can go on
// with it and none needs to try again.
var ErrUnowned = errors.New("it belongs to no task that is open")

// Work is what a process does for an [Engine].
type Work struct {
	Open   func(ctx context.Context, id string) (*inspan.Session, error) // as in [Pool]
	AtOnce int                                                           // sessions at the same time; 0: the engine's default
	Drain  time.Duration                                                 // that calls and requests which run have in the end
	Saw    func(event.Event)                                             // as in [Pool]
}

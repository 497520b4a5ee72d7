package running

import (
	"context"
	"errors"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// Engine decides which machine drives a session, if several could. Inputs go into the log first. It is safe for
// concurrent use.
type Engine interface {
	// Wake makes a session continue with the inputs in its log, on some machine. Said is the new input, or nil
	// for whatever there is. It returns when the wake can't be lost.
	Wake(ctx context.Context, session string, said event.Body) error
	// Work drives the sessions that the engine gives to this process, until ctx ends. Then it finishes calls
	// and requests in progress, releases the sessions, and returns.
	Work(ctx context.Context, w Work) error
	// Stuck returns the reason why no process has been able to continue a session, in several attempts; empty if
	// one does, or may yet. Attempts continue.
	Stuck(ctx context.Context, session string) (why string, err error)
	// Close closes the engine.
	Close() error
}

// ErrUnowned means that a session belongs to no open work, so no process can continue it, and none needs to
// retry.
var ErrUnowned = errors.New("it belongs to no open task")

// Work configures how a process works for an [Engine].
type Work struct {
	Open    func(ctx context.Context, id string) (*inspan.Session, error) // as in [Pool]
	AtOnce  int                                                           // most sessions at the same time; 0 means the engine's default
	Drain   time.Duration                                                 // time for calls and requests in progress at the end
	OnEvent func(event.Event)                                             // as in [Pool]
}

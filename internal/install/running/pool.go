package running

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
)

// Pool drives sessions in this process for a server, each in a [Run] that continues whether or not anyone is
// watching. Set the fields, and Close it at the end. Don't change the fields once it is in use; the methods are
// safe for concurrent use.
type Pool struct {
	// Open opens the session with this full id.
	Open func(ctx context.Context, id string) (*inspan.Session, error)
	// Most is how many sessions may be driven at once; 0 means any number.
	Most int
	// LetGo is how long a session that waits for an answer stays open, with the processes of its agent. The
	// answer may come later. 0 means not at all.
	LetGo time.Duration
	// OnEvent is called with every event of every run, transient ones included. It must not block. It may be nil.
	OnEvent func(e event.Event)

	mu     sync.Mutex
	runs   map[string]*Run // by session
	wg     sync.WaitGroup
	closed bool // no new runs begin
}

// ErrClosed means that the pool was closed.
var ErrClosed = errors.New("the server is shutting down")

// ErrFull means that the maximum number of sessions is being driven.
var ErrFull = errors.New("too many runs at once; wait for one to end")

// Run is a session that a pool drives.
type Run struct {
	conduct inspan.Conductor
	cancel  context.CancelFunc
	begun   chan struct{} // closed when its first inputs are stored, or can't be
	begin   func()        // closes begun
	done    chan struct{}
	err     error

	mu      sync.Mutex
	working map[string]bool // running calls, and asking while the model is asked
	leaving bool            // it ends as soon as working is empty
}

// errLeft ends a run whose session is released in its present state.
var errLeft = errors.New("let go of")

// Done is closed when the pool no longer drives the session.
func (r *Run) Done() <-chan struct{} { return r.done }

// Err returns the reason why the run ended, if the harness couldn't continue, for example an [inspan.DrivenError]
// if another process drives the session. It is valid once Done is closed.
func (r *Run) Err() error { return r.err }

// Status returns the state of the session as of the last event of the run.
func (r *Run) Status() inspan.Status { return r.conduct.Session.Status() }

// Elsewhere reports whether an error means that another process drives a session, or has since it was opened
// here.
func Elsewhere(err error) bool {
	_, driven := errors.AsType[*inspan.DrivenError](err)
	return driven || errors.Is(err, ErrMoved)
}

// Drive continues a session with inputs, which are stored when it returns. A run that is about to end takes
// them too; if it is over already, another begins. Opened is the session if it is open already; the pool closes
// it in any case. If another process drives the session, the inputs are sent there.
func (p *Pool) Drive(ctx context.Context, id string, opened *inspan.Session, inputs ...event.Body) (*Run, error) {
	r, err := p.start(ctx, id, opened, inputs)
	if err != nil {
		return nil, err
	}
	select {
	case <-r.begun:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-r.done:
		if r.err != nil && !Elsewhere(r.err) {
			return nil, r.err
		}
	default:
	}
	return r, nil
}

// start is like Drive, without waiting for the inputs.
func (p *Pool) start(ctx context.Context, id string, opened *inspan.Session, inputs []event.Body) (*Run, error) {
	for {
		r, fresh, err := p.run(ctx, id, opened, inputs)
		if err != nil || fresh {
			return r, err
		}
		err = send(inputs, func(input event.Body) error {
			_, err := r.conduct.Send(ctx, input)
			return err
		})
		if !errors.Is(err, inspan.ErrRunEnded) {
			return r, err
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run returns the run of a session. A fresh one begins with the inputs.
func (p *Pool) run(ctx context.Context, id string, opened *inspan.Session, inputs []event.Body) (r *Run, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.runs[id]; r != nil {
		return r, false, nil
	}
	err = p.fullLocked()
	if err == nil && opened == nil {
		opened, err = p.Open(context.WithoutCancel(ctx), id)
	}
	if err != nil {
		if opened != nil {
			_ = opened.Close() // nothing was done in it
		}
		return nil, false, err
	}
	r = p.newRun(opened)
	var work context.Context
	work, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if p.runs == nil {
		p.runs = map[string]*Run{}
	}
	p.runs[id] = r
	p.wg.Go(func() { p.work(work, id, r, inputs) })
	return r, true, nil
}

func (p *Pool) newRun(s *inspan.Session) *Run {
	r := &Run{begun: make(chan struct{}), done: make(chan struct{}), working: map[string]bool{}}
	r.begin = sync.OnceFunc(func() { close(r.begun) })
	r.conduct.Session, r.conduct.AnswerWait = s, p.LetGo
	r.conduct.OnEvent = func(e event.Event) error {
		if _, ours := e.Body.(event.Claimed); ours { // it is stored together with the inputs
			r.begin()
		}
		if p.OnEvent != nil {
			p.OnEvent(e)
		}
		return r.saw(e.Body)
	}
	return r
}

// asking represents a request to the model among the running calls, which have ids.
const asking = ""

// saw records what is running. A failed model is retried or given up, so it need not be waited for.
func (r *Run) saw(b event.Body) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch b := b.(type) {
	case event.Asked:
		r.working[asking] = true
	case event.Started:
		r.working[b.Call] = true
	case event.Replied, event.Failed:
		delete(r.working, asking)
	case event.Ended:
		delete(r.working, b.Call)
	}
	if r.leaving && len(r.working) == 0 {
		return errLeft
	}
	return nil
}

// Detach ends the run as soon as no call is running and the model has answered. The session stays in that state.
// Between two steps the next one may already be in the log, unseen, and would be lost if the run were aborted.
// So it is aborted only if no event comes for a while, as when it waits.
func (r *Run) Detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leaving = true; len(r.working) == 0 {
		time.AfterFunc(quietFor, r.waits)
	}
}

// quietFor is longer than the time between two steps.
const quietFor = time.Second

func (r *Run) waits() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.working) == 0 {
		r.cancel()
	}
}

// Break ends the run like a crash: the log keeps all events so far. It does not wait.
func (r *Run) Break() { r.cancel() }

// Full returns the reason why nothing can begin; nil if it can.
func (p *Pool) Full() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fullLocked()
}

func (p *Pool) fullLocked() error {
	switch {
	case p.closed:
		return ErrClosed
	case p.Most > 0 && len(p.runs) >= p.Most:
		return ErrFull
	}
	return nil
}

func send(inputs []event.Body, to func(event.Body) error) error {
	for _, input := range inputs {
		if err := to(input); err != nil {
			return err
		}
	}
	return nil
}

// work drives a session until it stops, or no one answers for a while. If another process drives it, the inputs are
// sent there.
func (p *Pool) work(ctx context.Context, id string, r *Run, inputs []event.Body) {
	r.err = r.conduct.Run(ctx, inputs...)
	select {
	case <-r.begun: // the inputs are in the log
	default:
		if Elsewhere(r.err) {
			r.err = errors.Join(r.err, send(inputs, func(input event.Body) error { return r.conduct.Session.Send(ctx, input) }))
		}
		r.begin()
	}
	r.cancel()
	_ = r.conduct.Session.Close() // acknowledged events are stored
	p.mu.Lock()
	delete(p.runs, id)
	p.mu.Unlock()
	close(r.done)
}

// Drain begins no more runs, and releases each session like [Run.Detach]: the next driver continues after what was
// finished. It returns when no session is driven, or when ctx ends.
func (p *Pool) Drain(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	runs := slices.Collect(maps.Values(p.runs))
	p.mu.Unlock()
	for _, r := range runs {
		r.Detach()
	}
	for _, r := range runs {
		select {
		case <-r.done:
		case <-ctx.Done():
			return
		}
	}
}

// Close ends all runs like a crash: the logs keep all events so far, and the sessions continue when they are next
// driven. It waits.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	for _, r := range p.runs {
		r.cancel()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

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

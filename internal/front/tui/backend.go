package tui

import (
	"context"
	"sync"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// session is the open session as the front end needs it. It runs in this process (localSession) or on a server
// (remoteSession).
type session interface {
	ID() string
	Status() inspan.Status
	Context() inspan.Context
	// Send sends an input to the process that drives the session.
	Send(ctx context.Context, input event.Body) error
	// prepareRun prepares a run. The returned function continues the session with inputs until nothing is left to
	// do, and puts the events into the pump. For before see [inspan.Conductor].
	prepareRun(before func() []event.Body) func(ctx context.Context, inputs []event.Body) error
	// sendToRun sends an input into the run in progress, and returns its number in the log, or 0 if that is unknown.
	// It fails with [inspan.ErrRunEnded] if no run is in progress.
	sendToRun(ctx context.Context, input event.Body) (seq uint64, err error)
	// again makes a run that waits for answers call the before of prepareRun for further events.
	again()
	// watch puts events by other processes into the pump while no run is in progress here, until ctx ends.
	watch(ctx context.Context, after uint64)
	// disconnect aborts sends in progress.
	disconnect()
	// detach stops the run in progress here because the person leaves.
	detach()
	// close closes the session, and describes how its processes ended.
	close() (left []string, err error)
}

// backend has the sessions: those of this machine (localBackend), or of a server (remoteBackend).
type backend interface {
	// create creates a session.
	create(ctx context.Context, o app.Options, warn func(string)) (session, error)
	// open opens an existing session.
	open(ctx context.Context, o app.Options, id string, warn func(string)) (session, error)
	// fork opens a copy of a session.
	fork(ctx context.Context, o app.Options, id string, warn func(string)) (session, error)
	// driver names the process that drives a session elsewhere, and how to attach to it; empty if none does.
	driver(ctx context.Context, id string) (string, error)
	// has reports whether the sessions of a folder belong to the person's present work.
	has(root string) bool
	// personMessages returns the person's messages in an earlier session, the oldest first, as far as known.
	personMessages(ctx context.Context, id string) ([]string, error)
	// rewindPoints returns the messages that a session can be rewound to, the oldest first.
	rewindPoints(ctx context.Context, id string) ([]app.Point, error)
	// planRewind plans the way back to before a message.
	planRewind(ctx context.Context, s session, root string, seq uint64, files, conversation bool) (rewindPlan, error)
	// commands returns slash commands that exist only for these sessions.
	commands() []Command
	// fixed gives the reason why mode, limits and lasting rules of a session can't be changed from here; empty if
	// they can.
	fixed() string
	// closed tells the person that a session was replaced by another, and how it continues. goodbye does so when
	// the person leaves: during a run, without one, or while another process drives it.
	closed(id string) string
	goodbye(id, driver string, busy bool) []string
}

// rewindPlan is a planned rewind: its effects, and the function that performs it.
type rewindPlan struct {
	question string
	lines    []string
	rewind   func(context.Context) error
}

// localBackend is this machine.
type localBackend struct {
	*TUI
	pump *pump
}

func (h localBackend) create(ctx context.Context, o app.Options, warn func(string)) (session, error) {
	return h.openLocal(h.host(o, warn).New(ctx, h.Root))
}

func (h localBackend) open(ctx context.Context, o app.Options, id string, warn func(string)) (session, error) {
	if id == "last" { // of the front end's folder
		var err error
		if id, err = h.App.Running.LastIn(ctx, h.Root); err != nil {
			return nil, err
		}
	}
	return h.openLocal(h.host(o, warn).Open(ctx, id))
}

func (h localBackend) fork(ctx context.Context, o app.Options, id string, warn func(string)) (session, error) {
	return h.openLocal(h.host(o, warn).Fork(ctx, id, 0))
}

func (h localBackend) openLocal(s *inspan.Session, err error) (session, error) {
	o := &localSession{Session: s, pump: h.pump}
	if err == nil && h.App != nil {
		o.closed = h.App.Running.Opened(s.ID())
	}
	return o, err
}

func (h localBackend) driver(ctx context.Context, id string) (string, error) {
	if h.App == nil {
		return "", nil
	}
	who, err := h.App.Running.Elsewhere(ctx, id)
	if who == nil || err != nil {
		return "", err
	}
	return who.Error(), nil
}

func (h localBackend) has(root string) bool { return root == realPath(h.Root) }

func (h localBackend) personMessages(ctx context.Context, id string) ([]string, error) {
	return h.App.Running.Said(ctx, id)
}

func (h localBackend) rewindPoints(ctx context.Context, id string) ([]app.Point, error) {
	return h.App.Rewind.Points(ctx, id)
}

func (h localBackend) planRewind(ctx context.Context, s session, root string, seq uint64, files, conversation bool) (rewindPlan, error) {
	way, err := h.App.Rewind.Back(ctx, s.ID(), root, seq, files, conversation)
	if err != nil {
		return rewindPlan{}, err
	}
	here, _ := s.(*localSession)
	return rewindPlan{"rewind? 'inspan rewind --redo' brings it back", way.Lines(false), func(ctx context.Context) error {
		return here.Rewind(ctx, way.To, way.Restore(false))
	}}, nil
}

func (h localBackend) closed(id string) string {
	return "session " + id + " is closed; /resume " + id + " returns to it"
}

func (localBackend) commands() []Command { return nil }

func (localBackend) fixed() string { return "" }

func (h localBackend) goodbye(id, driver string, busy bool) []string {
	if driver != "" && busy {
		return []string{"another process runs it; join it with: inspan attach " + id}
	}
	return []string{"continue with: inspan resume " + id}
}

// localSession is a session that runs in this process.
type localSession struct {
	*inspan.Session
	pump   *pump
	closed func() // tells other processes that it is no longer open here; nil if none was told

	mu  sync.Mutex
	run *inspan.Conductor // of the last run; nil before the first
}

// prepareRun implements session. While a question is open, the run holds the session and waits, so that other
// processes see who asks and can answer.
func (o *localSession) prepareRun(before func() []event.Body) func(context.Context, []event.Body) error {
	run := &inspan.Conductor{
		Session: o.Session, Grace: patience, AnswerWait: -1, BeforeRun: before,
		OnEvent: func(e event.Event) error { o.pump.put(e); return nil },
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.run = run
	return func(ctx context.Context, inputs []event.Body) error { return runOrSend(ctx, run, inputs) }
}

func (o *localSession) conductor() *inspan.Conductor {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.run
}

func (o *localSession) sendToRun(ctx context.Context, input event.Body) (uint64, error) {
	run := o.conductor()
	if run == nil {
		return 0, inspan.ErrRunEnded
	}
	if b, ok := input.(event.Cancelled); ok {
		run.Interrupt(b)
		return 0, nil
	}
	return run.Send(ctx, input)
}

func (o *localSession) again() {
	if run := o.conductor(); run != nil {
		run.Rerun()
	}
}

func (o *localSession) watch(ctx context.Context, after uint64) {
	for e, err := range o.Events(ctx, after) {
		if err != nil {
			return // the next driver reports it
		}
		o.pump.put(e)
	}
}

func (o *localSession) disconnect() {}

// detach implements session. It interrupts a working run. If the run only waits for answers, the questions stay
// open.
func (o *localSession) detach() {
	left := event.Cancelled{By: "the user", Reason: "left", All: true}
	switch run := o.conductor(); {
	case run == nil:
	case o.Status().OnlyWaits:
		run.Detach(left)
	default:
		run.Interrupt(left)
	}
}

func (o *localSession) close() ([]string, error) {
	if o.closed != nil {
		defer o.closed()
	}
	l := o.Shutdown()
	return words.Leftovers(o.ID(), l.Kept, l.Ended, l.Instructions, l.Unmerged), o.Close()
}

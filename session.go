package inspan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/guard"
	"github.com/inspan/inspan/internal/loop"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Session is one conversation with an agent: a log and what follows from it.
// Send, Events and Status may be called from any goroutine while Run goes on.
type Session struct {
	agent *Agent
	log   event.Log
	model llm.Model // wrapped
	toolbox
	served []event.Server // as it was told last; guarded by driving
	marker *guard.Marker
	policy policy.Policy
	*secrets

	driving     sync.Mutex // held while a run goes on, guards cache
	cache       cacheWatch
	memo        llm.Memo        // what requests were encoded to
	images      images          // of the last request; guarded by driving
	joined      bool            // what the agent wants different is in the log; guarded by driving
	looked      map[string]bool // folders whose instructions were asked for; guarded by driving
	uncheckable bool            // checkpoints can't be taken; guarded by driving
	mu          sync.Mutex      // guards state
	state       *loop.State
	jobs
	closed    sync.Once
	leaving   sync.Once
	leftovers Leftovers // once the session has been left
}

// ErrBusy says that a run of this session is already going on here.
var ErrBusy = errors.New("the session is already running")

// ErrWorkflow says that a workflow performs the session: it takes no messages, and no model can go on
// with it.
var ErrWorkflow = errors.New("the session is a workflow: it takes no messages, can be neither compacted nor rewound, and only goes on as it was begun")

// forModels reports whether inputs are for a model: words, or the wish for a compaction.
func forModels(inputs ...event.Body) bool {
	return slices.ContainsFunc(inputs, func(b event.Body) bool {
		switch b := b.(type) {
		case event.Said:
			return len(b.Parts) > 0
		case event.Steered, event.Compact:
			return true
		}
		return false
	})
}

// Run appends the inputs, which may also be an event.Switched, and drives the session until there is nothing left to
// do: the run stopped, or every call that could be made waits for a decision.
// It yields every event from the first input on, as it happens, transient ones
// included. With no inputs it goes on where the session was left. An input whose key (Message) the
// session has taken before is left out.
//
// Breaking off the loop stops the work like a crash would: what is in the log
// stands, and the next Run goes on from there. The same holds when ctx ends.
// To interrupt and keep what the model has said, [Session.Send] event.Cancelled.
//
// The error, yielded last, says that the harness can't go on. A [*DrivenError] is one.
func (s *Session) Run(ctx context.Context, inputs ...event.Body) iter.Seq2[event.Event, error] {
	st := s.Status()
	switch flow := st.Workflow; {
	case flow != "" && forModels(inputs...) && (st.Active || st.Stopped != nil): // else they begin it
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, ErrWorkflow) }
	case s.agent.Program != nil:
		return performed(ctx, s, s.agent.Program, inputs)
	case flow != "":
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, ErrWorkflow) }
	}
	return func(yield func(event.Event, error) bool) {
		if !s.driving.TryLock() {
			yield(event.Event{}, ErrBusy)
			return
		}
		defer s.driving.Unlock()
		var err error
		crowd := audience[event.Event]{yield: yield}
		defer func() {
			if err != nil && !errors.Is(err, errBroken) {
				crowd.show(event.Event{}, err)
			}
		}()
		defer caught("the run", &crowd.outside, &err)
		d := newDriver(s, crowd.show)
		if err = s.remember(ctx, inputs...); err != nil {
			return
		}
		release, busy := d.lease(ctx)
		defer func() { err = errors.Join(err, release()) }()
		if err = busy; err == nil {
			err = d.begin(ctx, s.prepared(ctx, inputs))
		}
		if err == nil {
			err = d.drive(ctx)
		}
	}
}

// Send appends an input: event.Said, Withdrawn, Steered, Decided, Cancelled, Titled or Pinned. A
// run that goes on, here or in another process, takes note of it; without one
// it waits for the next Run. One whose key (Message) has been sent before changes nothing.
func (s *Session) Send(ctx context.Context, input event.Body) error {
	_, err := s.send(ctx, input)
	return err
}

// send is Send, and says which number the input has got.
func (s *Session) send(ctx context.Context, input event.Body) (seq uint64, err error) {
	if !event.Input(input) {
		return 0, fmt.Errorf("send: %s is not an input", input.Kind())
	}
	s.mu.Lock()
	seq, took, flow := s.state.Seq, s.state.Took(event.Key(input)), s.state.Steps[event.Workflow].Title
	begun := s.state.Run.Active || s.state.Run.Stopped != nil
	s.mu.Unlock()
	if flow != "" && begun && forModels(input) {
		return 0, ErrWorkflow
	}
	if took {
		return seq, nil
	}
	if err := s.remember(ctx, input); err != nil {
		return 0, err
	}
	stored, err := s.log.Append(ctx, s.redacted(s.prepared(ctx, []event.Body{input})[0]))
	if err != nil {
		return 0, err
	}
	return stored[len(stored)-1].Seq, nil
}

// prepared is inputs whose images are in blobs, and decisions that name their question.
func (s *Session) prepared(ctx context.Context, inputs []event.Body) []event.Body {
	out := make([]event.Body, len(inputs))
	for i, input := range inputs {
		switch b := input.(type) {
		case event.Said:
			b.Parts = spilled(ctx, s.agent.Env.Blobs, b.Parts)
			input = b
		case event.Steered:
			b.Parts = spilled(ctx, s.agent.Env.Blobs, b.Parts)
			input = b
		case event.Decided:
			s.mu.Lock()
			input = bound(s.state, b)
			s.mu.Unlock()
		}
		out[i] = input
	}
	return out
}

// remember keeps the rules of approvals that hold for longer than the session.
func (s *Session) remember(ctx context.Context, inputs ...event.Body) error {
	for _, input := range inputs {
		d, ok := input.(event.Decided)
		if !ok || !d.Allow || d.Scope == event.ScopeOnce {
			continue
		}
		st := s.Status()
		if p, open := st.Question(d.Call); open && len(p.Set) > 0 {
			return errTogether
		}
		if d.Scope != event.ScopeProject && d.Scope != event.ScopeAlways || s.agent.Remember == nil {
			continue
		}
		for _, p := range st.Waiting {
			rules := d.Grants(p.Rules, p.Offers)
			if !p.answered(d) || len(rules) == 0 {
				continue
			}
			if err := s.agent.Remember(ctx, d.Scope, rules); err != nil {
				return fmt.Errorf("remember approval: %w", err)
			}
		}
	}
	return nil
}

// Events yields the stored events with a sequence number above after and then
// those that come, until ctx is done, which is not an error. Transient events
// are not among them. A log that can't be read any more is an error, yielded last.
func (s *Session) Events(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		for ctx.Err() == nil {
			for e, err := range s.log.Read(ctx, after) {
				if err != nil && ctx.Err() != nil {
					return
				}
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Seq
			}
			w, ok := s.log.(event.Waiter)
			if !ok {
				return
			}
			if err := w.Wait(ctx, after); err != nil && ctx.Err() == nil {
				yield(event.Event{}, err)
				return
			}
		}
	}
}

// Status returns how the session stands, as of the last event its Run has seen.
func (s *Session) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := statusOf(s.state)
	st.Who = s.actor()
	return st
}

// actor is the agent of the session. One that began as a copy of another agent's session is of its own kind.
func (s *Session) actor() tool.Actor {
	return actor(s.state.Session, cmp.Or(s.agent.Kind, s.state.Agent))
}

// ID returns the session's id.
func (s *Session) ID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Session
}

// Close ends what the agent holds for the session, as [Session.Leave] does. The log stays
// as it is, and is closed if it can be.
func (s *Session) Close() error {
	var errs []error
	s.closed.Do(func() {
		errs = append(errs, leave(s))
		if s.joined {
			errs = append(errs, over(s.agent.Hooks, s.Status()))
		}
		errs = append(errs, s.agent.release())
		if c, ok := s.log.(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	})
	return errors.Join(errs...)
}

// fold builds the state from a log, starting at the last compaction.
func fold(ctx context.Context, log event.Log) (*loop.State, error) {
	state := &loop.State{}
	var after uint64
	if st, ok := log.(event.Starter); ok {
		start, err := st.Start(ctx)
		if err != nil {
			return nil, err
		}
		after = start
	}
	if after > 0 {
		if err := readable(ctx, log); err != nil {
			return nil, err
		}
	}
	for e, err := range log.Read(ctx, after) {
		if err != nil {
			return nil, err
		}
		if err := state.Apply(e); err != nil {
			return nil, err
		}
	}
	return state, nil
}

// readable returns why this version can't go on with a log of which only the end is
// folded, nil if it can: what its first event says of its format.
func readable(ctx context.Context, log event.Log) error {
	for e, err := range log.Read(ctx, 0) {
		return errors.Join(err, event.Understood(e))
	}
	return nil
}

// begin writes the first events of a new session.
func (s *Session) begin(ctx context.Context, parent string) error {
	release, err := s.lease(ctx)
	if err != nil {
		return err
	}
	carried, err := carried(ctx, s)
	if err == nil {
		_, err = s.log.AppendAs(ctx, event.Driver{}, s.clear(append(s.agent.opening(s.specs, parent), carried...))...)
	}
	if err = errors.Join(err, release()); err != nil {
		return err
	}
	s.state, err = fold(ctx, s.log)
	return err
}

// lease makes this process the session's driver, if its log knows of others. Release is never nil.
func (s *Session) lease(ctx context.Context) (release func() error, err error) {
	l, ok := s.log.(event.Leaser)
	if ok {
		err = l.Lease(ctx)
	}
	if !ok || err != nil {
		return func() error { return nil }, driven(s.ID(), err)
	}
	return l.Release, nil
}

// hold keeps the session for this process while no run goes on, so that others see it driven
// here. ErrBusy says that a run does.
func (s *Session) hold(ctx context.Context) (release func() error, err error) {
	if !s.driving.TryLock() {
		return nil, ErrBusy
	}
	give, err := s.lease(ctx)
	if err != nil {
		s.driving.Unlock()
		return nil, err
	}
	return func() error { defer s.driving.Unlock(); return give() }, nil
}

// whoami names this process for people.
func whoami() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("process %d on %s", os.Getpid(), host)
}

package inspan

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/kernel/wrap"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Session is one conversation with an agent: a log and the state that follows from it. Send, Events, Status, ID
// and Context may be called from any goroutine while Run is in progress.
type Session struct {
	agent  *Agent
	driver *drive.Driver

	closed    sync.Once
	shutdown  sync.Once
	leftovers Leftovers // set by Shutdown
}

var (
	// ErrBusy means that this process already runs the session.
	ErrBusy = drive.ErrBusy
	// ErrWorkflow means that a workflow drives the session, so a model can't continue it.
	ErrWorkflow = errors.New("the session is a workflow: it takes no messages, can't be compacted or rewound, and only continues as it began")
	// ErrUnreadMessage means that a rewind would drop a message that no run has picked up yet, or one that arrived during the
	// rewind.
	ErrUnreadMessage = drive.ErrUnstartedInput
)

// DrivenError means that another process drives the session, so this one can't run it. [Session.Send] still works: the
// other process picks the input up.
type DrivenError struct {
	Session string
	PID     int    // 0 if unknown
	Host    string // where the process runs
	Since   time.Time
}

// Error names the process and the command that attaches to it.
func (e *DrivenError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if here, err := os.Hostname(); err != nil || e.Host != here && e.Host != "" {
		who += " on " + e.Host
	}
	return fmt.Sprintf("%s drives this session; join it: inspan attach %s", who, e.Session)
}

// asDrivenError turns a lease error into a DrivenError if another process holds the lease.
func asDrivenError(id string, err error) error {
	if busy, ok := errors.AsType[*store.BusyError](err); ok {
		return &DrivenError{Session: id, PID: busy.PID, Host: busy.Host, Since: busy.Since}
	}
	return err
}

// needModel reports whether inputs need a model: messages, or a request to compact.
func needModel(inputs ...event.Body) bool {
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

// Run appends the inputs, which may include an event.Switched, and drives the session until the run has stopped or
// all remaining calls wait for a decision. It yields every event as it happens, transient ones included. Without
// inputs it continues the session from its current state. It leaves out an input whose key (their Message) the
// session has accepted before.
//
// Breaking out of the loop, or the end of ctx, stops the work like a crash: the log stays as it is, and the next Run
// continues from there. To interrupt a run and keep the model's partial reply, use [Session.Send] with an
// event.Cancelled.
//
// Calls that need a person go to Agent.Approve. If that is nil, they wait: Run returns when nothing else can be done,
// and the next Run takes an event.Decided as an input. A [Conductor] asks and continues by itself.
//
// An error comes last and means that the harness can't continue. It may be a [*DrivenError].
func (s *Session) Run(ctx context.Context, inputs ...event.Body) iter.Seq2[event.Event, error] {
	if s.agent.Approve == nil {
		return s.drive(ctx, inputs...)
	}
	return func(yield func(event.Event, error) bool) {
		for {
			for e, err := range s.drive(ctx, inputs...) {
				if !yield(e, err) || err != nil {
					return
				}
				if r, raised := e.Body.(event.Raised); raised {
					if err := s.approveRaised(ctx, PendingOf(Question{Raised: r, Seq: e.Seq})); err != nil {
						yield(event.Event{}, err)
						return
					}
				}
			}
			var err error
			if inputs, err = s.approve(ctx, Sets(s.Status().Waiting)); err != nil {
				yield(event.Event{}, err)
				return
			}
			if len(inputs) == 0 {
				return
			}
		}
	}
}

// approve returns the decisions of Agent.Approve. A question that needs an answer in words stays open.
func (s *Session) approve(ctx context.Context, questions []Pending) (decisions []event.Body, err error) {
	defer fault.Recover("Agent.Approve", nil, &err)
	for _, p := range questions {
		if p.IsQuestion {
			continue
		}
		allow, err := s.agent.Approve(ctx, p)
		if err != nil {
			return nil, err
		}
		decisions = append(decisions, p.Answer(event.Decided{Allow: allow, By: "Agent.Approve"}))
	}
	return decisions, nil
}

// approveRaised sends the decision on a question of a subagent, or of a running call. It declines a question that needs
// an answer in words, because the call would wait forever.
func (s *Session) approveRaised(ctx context.Context, p Pending) error {
	if p.IsQuestion {
		return s.Send(ctx, p.Answer(event.Decided{By: "Agent.Approve", Reason: "only yes and no can be answered here"}))
	}
	decisions, err := s.approve(ctx, []Pending{p})
	for _, d := range decisions {
		err = errors.Join(err, s.Send(ctx, d))
	}
	return err
}

// drive is Run without Agent.Approve.
func (s *Session) drive(ctx context.Context, inputs ...event.Body) iter.Seq2[event.Event, error] {
	st := s.Status()
	begun := st.Active || st.Stopped != nil
	switch workflow := st.Workflow != ""; {
	case workflow && begun && needModel(inputs...), workflow && s.agent.Program.Run == nil:
		return func(yield func(event.Event, error) bool) { yield(event.Event{}, ErrWorkflow) }
	case s.agent.Program.Run != nil:
		return s.yieldSteps(ctx, s.agent.Program.Run, inputs)
	}
	return func(yield func(event.Event, error) bool) {
		var err error
		consumer := fault.Consumer[event.Event]{Yield: yield}
		defer func() {
			if err != nil && !errors.Is(err, drive.ErrConsumerGone) {
				consumer.Show(event.Event{}, err)
			}
		}()
		defer fault.Recover("the run", &consumer.Running, &err)
		release, busy := s.acquire(ctx)
		if err = busy; err != nil {
			return
		}
		defer func() { err = errors.Join(err, release()) }()
		if err = s.rememberApprovals(ctx, inputs...); err == nil {
			err = s.driver.Run(ctx, s.prepareInputs(ctx, inputs), consumer.Show)
		}
	}
}

// acquire takes the lease of the session, so that others see that this process drives it.
func (s *Session) acquire(ctx context.Context) (release func() error, err error) {
	release, err = s.driver.Acquire(ctx)
	return release, asDrivenError(s.ID(), err)
}

// Send appends an input, see [event.Input]. A run in progress, in this process or another, picks it up; otherwise it
// waits for the next Run. An input whose key (Message) was sent before changes nothing.
func (s *Session) Send(ctx context.Context, input event.Body) error {
	_, err := s.send(ctx, input)
	return err
}

// send is like Send, and returns the number of the stored event.
func (s *Session) send(ctx context.Context, input event.Body) (seq uint64, err error) {
	if !event.Input(input) {
		return 0, fmt.Errorf("send: %s is not an input", input.Kind())
	}
	var known, refused bool
	s.driver.View(func(st *loop.State) {
		seq, known = st.Seq, st.HasInput(loop.Key(input))
		begun := st.Run.Active || st.Run.Stopped != nil
		refused = st.Steps[event.Workflow].Title != "" && begun && needModel(input)
	})
	switch {
	case refused:
		return 0, ErrWorkflow
	case known:
		return seq, nil
	}
	if err := s.rememberApprovals(ctx, input); err != nil {
		return 0, err
	}
	return s.driver.Append(ctx, s.prepareInputs(ctx, []event.Body{input})[0])
}

// prepareInputs moves images of inputs to blobs, and binds decisions to the questions that they answer.
func (s *Session) prepareInputs(ctx context.Context, inputs []event.Body) []event.Body {
	out := make([]event.Body, len(inputs))
	for i, input := range inputs {
		switch b := input.(type) {
		case event.Said:
			b.Parts = wrap.SpillImages(ctx, s.agent.Env.Blobs, b.Parts)
			input = b
		case event.Steered:
			b.Parts = wrap.SpillImages(ctx, s.agent.Env.Blobs, b.Parts)
			input = b
		case event.Decided:
			s.driver.View(func(st *loop.State) { input = bindDecision(st, b) })
		}
		out[i] = input
	}
	return out
}

// rememberApprovals stores rules that a person allowed beyond the session.
func (s *Session) rememberApprovals(ctx context.Context, inputs ...event.Body) error {
	for _, input := range inputs {
		d, ok := input.(event.Decided)
		if !ok || !d.Allow || d.Scope == event.ScopeOnce {
			continue
		}
		st := s.Status()
		if p, open := st.Question(d.Call); open && len(p.Set) > 0 {
			return errSetScope
		}
		if d.Scope != event.ScopeProject && d.Scope != event.ScopeAlways || s.agent.Approvals.Remember == nil {
			continue
		}
		for _, p := range st.Waiting {
			rules := d.Grants(p.Rules, p.Offers)
			if !p.answered(d) || len(rules) == 0 {
				continue
			}
			if err := s.agent.Approvals.Remember(ctx, d.Scope, rules); err != nil {
				return fmt.Errorf("remember approval: %w", err)
			}
		}
	}
	return nil
}

// Events yields the stored events with a sequence number above after, and then new ones until ctx ends, which is not
// an error. It leaves out transient events. If the log can't be read any more, the error comes last.
func (s *Session) Events(ctx context.Context, after uint64) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		log := s.driver.Log()
		for ctx.Err() == nil {
			for e, err := range log.Read(ctx, after) {
				if err != nil && ctx.Err() != nil {
					return
				}
				if !yield(e, err) || err != nil {
					return
				}
				after = e.Seq
			}
			w, ok := log.(event.Waiter)
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

// Status returns the state of the session as of the last event that Run has read.
func (s *Session) Status() (st Status) {
	s.driver.View(func(state *loop.State) {
		st = statusOf(state)
		if s.agent.Opening.Kind != "" {
			st.Who = drive.Actor(state.Session, s.agent.Opening.Kind)
		}
	})
	return st
}

// Context describes the parts of the next prompt, the system prompt first.
func (s *Session) Context() (c Context) {
	s.driver.View(func(state *loop.State) { c = contextOf(state) })
	return c
}

// ID returns the session's id.
func (s *Session) ID() (id string) {
	s.driver.View(func(state *loop.State) { id = state.Session })
	return id
}

// Restore restores the files of a workspace and returns the event to store, or nil if nothing changed. If done
// is not nil, it undoes the restore that returned done.
type Restore func(ctx context.Context, done *event.Restored) (*event.Restored, error)

// Rewind takes the conversation back to its state after event to; 0 leaves the conversation as it is. First it calls
// restore, which restores files, and stores the event that restore returns. A nil restore leaves the files as they
// are.
//
// Rewind holds the lease. While a run is in progress, in this process or another, it fails and restores nothing. If a
// message waits that no run has picked up yet, it returns ErrUnreadMessage. If such a message comes during the restore, it
// also undoes the restore. Nothing is removed from the log, so rewinding to the event before the event.Rewound undoes
// the rewind.
func (s *Session) Rewind(ctx context.Context, to uint64, restore Restore) error {
	if s.Status().Workflow != "" {
		return ErrWorkflow
	}
	release, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	return errors.Join(s.driver.Rewind(ctx, to, restore), release())
}

// Leftovers lists the things that a session leaves at its end: processes that it started, changed instructions and
// unmerged changes.
type Leftovers struct {
	Kept  []tool.Leftover // processes that continue
	Ended []tool.Leftover // processes that were ended
	// Instructions are the paths of instruction files that changed during the session without a person's
	// approval.
	Instructions []string
	// Unmerged are the sessions of subagents whose changes in a copy of the workspace were never merged.
	Unmerged []string
}

// Shutdown ends the processes that the session has started, except for processes that may outlive it. Processes
// outlive only a session that ended normally: its last run is over and was not interrupted. Shutdown stores in the log
// which processes continue. After Shutdown, calls fail. A second Shutdown returns the same result.
func (s *Session) Shutdown() Leftovers {
	s.shutdown.Do(func() {
		if s.agent.Lifecycle.Shutdown == nil {
			return
		}
		st := s.Status()
		normal := !st.Active && st.Stopped != nil && st.Stopped.Reason != event.ReasonCancelled
		s.leftovers = s.agent.Lifecycle.Shutdown(normal, st.Mode)
		s.driver.Secrets().Leftovers(s.leftovers.Kept)
		s.driver.Secrets().Leftovers(s.leftovers.Ended)
		for _, l := range s.leftovers.Kept {
			// If the log can't be written, the process continues unrecorded.
			_, _ = s.driver.Append(context.Background(), event.Finished{Job: l.Job, Kept: true, Command: l.Command, PID: l.PID})
		}
	})
	return s.leftovers
}

// Close calls [Session.Shutdown], unless that was called, and releases everything that the agent holds for the
// session. It also closes the log, if the log has a Close method.
func (s *Session) Close() error {
	var errs []error
	s.closed.Do(func() {
		shutdown := func() (err error) {
			defer fault.Recover("Lifecycle.Shutdown", nil, &err)
			s.Shutdown()
			return nil
		}
		errs = append(errs, shutdown(), s.driver.Close(), s.agent.release())
		if c, ok := s.driver.Log().(interface{ Close() error }); ok {
			errs = append(errs, c.Close())
		}
	})
	return errors.Join(errs...)
}

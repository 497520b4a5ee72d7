// Package temporal lets Temporal supervise sessions: it decides which worker drives a session, and when. There
// is one workflow for each session, which waits for wakes, and one activity for each turn, which runs the
// ordinary driver over the shared store. The session's log remains the only truth. Temporal stores ids, times
// and standings, never any content.
//
//   - [Client] is for servers: it gives sessions to the engine and wakes them.
//   - [Worker] is for machines that drive them.
package temporal

import (
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Names on the wire. Workflows that run for months depend on them.
const (
	WorkflowName  = "Supervise"
	TurnName      = "Turn"
	InputUpdate   = "input"   // an update, or a signal where no worker is there to answer
	ApproveUpdate = "approve" // an update with a validator
	CancelSignal  = "cancel"
)

// Supervised is a workflow's state.
type Supervised struct {
	Session string `json:"session"`
	Turns   int    `json:"turns,omitempty"`  // that were driven
	Ending  bool   `json:"ending,omitempty"` // it was cancelled: the workflow ends once its run has stopped
	// Heartbeat is how long a worker may be silent before another continues; 0 means 30 s.
	Heartbeat time.Duration `json:"heartbeat,omitempty"`
	// Searchable says that the namespace has the search attributes [StandingKey] and [TenantKey].
	Searchable bool `json:"searchable,omitempty"`
}

// Answered names the question that an approval answers. The decision is in the log.
type Answered struct {
	Question uint64 `json:"question"`
}

// Limits of a workflow.
const (
	turnsARun    = 500       // after so many turns it continues as new, or when the server suggests it
	restsFor     = time.Hour // so long it stays open for a session that is done; the next wake starts it again
	usualSilence = 30 * time.Second
	longestTurn  = 365 * 24 * time.Hour
)

type supervisor struct {
	Supervised
	start   int  // turns when this run began
	turning bool // a turn goes on
	woken   bool // something has come since it began
	last    Outcome
	told    Standing
}

// Supervise is the workflow of a session. It runs turns until there is nothing to do, and waits for the next
// wake. Inputs are in the log before their wake, so wakes carry no content, and an extra wake does nothing.
//
// Histories of running workflows are replayed against this code. A change in the order of its commands must be
// guarded by [workflow.GetVersion], with one more recorded history in testdata.
func Supervise(ctx workflow.Context, in Supervised) error {
	s := &supervisor{Supervised: in, start: in.Turns}
	if err := s.listen(ctx); err != nil {
		return err
	}
	for {
		s.turning, s.woken = true, false
		s.tell(ctx, Running)
		err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, s.patience()), TurnName, s.Session).Get(ctx, &s.last)
		s.turning = false
		s.Turns++
		if err != nil {
			return err
		}
		if over, err := s.rest(ctx); over || err != nil {
			return err
		}
		if s.Turns-s.start >= turnsARun || workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return s.renew(ctx)
		}
	}
}

// rest waits until another turn is due. Over says that none is.
func (s *supervisor) rest(ctx workflow.Context) (over bool, err error) {
	done := s.last.Standing == Done
	if done && s.Ending || s.last.Standing == LetGo {
		return done, nil
	}
	s.tell(ctx, s.last.Standing)
	due := func() bool { return s.hear(ctx) }
	switch until := s.last.Until; {
	case done:
		woken, err := workflow.AwaitWithTimeout(ctx, restsFor, due)
		return !woken, err
	case !until.IsZero():
		_, err = workflow.AwaitWithTimeout(ctx, max(until.Sub(workflow.Now(ctx)), time.Millisecond), due)
		return false, err
	}
	return false, workflow.Await(ctx, due)
}

// hear receives signals, and reports whether any has come since the last turn began. A signal that comes while
// this run of the workflow ends is left for the next run.
func (s *supervisor) hear(ctx workflow.Context) bool {
	for workflow.GetSignalChannel(ctx, CancelSignal).ReceiveAsync(nil) {
		s.Ending, s.woken = true, true
	}
	for workflow.GetSignalChannel(ctx, InputUpdate).ReceiveAsync(nil) {
		s.woken = true
	}
	return s.woken
}

// listen registers the updates that the session accepts.
func (s *supervisor) listen(ctx workflow.Context) error {
	input := func(workflow.Context) error { s.woken = true; return nil }
	if err := workflow.SetUpdateHandler(ctx, InputUpdate, input); err != nil {
		return err
	}
	approve := func(_ workflow.Context, a Answered) error {
		s.last.Questions = slices.DeleteFunc(s.last.Questions, func(q uint64) bool { return q == a.Question })
		s.woken = true
		return nil
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, ApproveUpdate, approve, workflow.UpdateHandlerOptions{Validator: s.asked})
}

// asked rejects an answer to a question that was not asked, or is answered. A running turn finds answers in the
// log, and only the turn knows its questions.
func (s *supervisor) asked(_ workflow.Context, a Answered) error {
	if a.Question == 0 || !s.turning && !slices.Contains(s.last.Questions, a.Question) {
		return temporal.NewApplicationError("the session has no such question open", noQuestion, a.Question)
	}
	return nil
}

const noQuestion = "NoQuestion"

func (s *supervisor) renew(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	s.hear(ctx) // the next run begins with a turn
	return workflow.NewContinueAsNewError(ctx, WorkflowName, s.Supervised)
}

// patience is how long a turn may be silent. Its total time is unlimited, and it is retried until it succeeds:
// permanent failures end it differently.
func (s *supervisor) patience() workflow.ActivityOptions {
	silence := s.Heartbeat
	if silence == 0 {
		silence = usualSilence
	}
	return workflow.ActivityOptions{
		StartToCloseTimeout: longestTurn, HeartbeatTimeout: silence, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	}
}

// tell publishes the session's standing, so that it can be read without a worker.
func (s *supervisor) tell(ctx workflow.Context, standing Standing) {
	if s.told == standing {
		return
	}
	s.told = standing
	// They only fail for values that can't be encoded, and nothing depends on them.
	_ = workflow.UpsertMemo(ctx, map[string]any{memoStanding: standing, memoTurns: s.Turns})
	if s.Searchable {
		_ = workflow.UpsertTypedSearchAttributes(ctx, StandingKey().ValueSet(string(standing)))
	}
}

const (
	memoStanding = "standing"
	memoTurns    = "turns"
)

// StandingKey is the search attribute for the [Standing] of sessions.
func StandingKey() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("InspanStanding")
}

// TenantKey is the search attribute for the tenant of sessions.
func TenantKey() temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword("InspanTenant")
}

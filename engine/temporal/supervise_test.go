package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/inspan/inspan/engine/temporal"
)

// played is a workflow in a world whose time passes at once, and whose turns end as a test says.
type played struct {
	*testsuite.TestWorkflowEnvironment
	turns int
}

// play makes a world in which turn n, from 1, ends as said.
func play(t *testing.T, turn func(n int) (temporal.Outcome, error)) *played {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	p := &played{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	p.SetTestTimeout(30 * time.Second)
	p.RegisterWorkflowWithOptions(temporal.Supervise, workflow.RegisterOptions{Name: temporal.WorkflowName})
	p.RegisterActivityWithOptions(func(_ context.Context, id string) (temporal.Outcome, error) {
		if id != "s1" {
			return temporal.Outcome{}, fmt.Errorf("session %q", id)
		}
		p.turns++
		return turn(p.turns)
	}, activity.RegisterOptions{Name: temporal.TurnName})
	return p
}

func (p *played) run(t *testing.T) {
	t.Helper()
	p.ExecuteWorkflow(temporal.WorkflowName, temporal.Supervised{Session: "s1"})
	if !p.IsWorkflowCompleted() {
		t.Error("the workflow has not ended")
	}
}

// ended wants the workflow to have ended in order, after so many turns.
func (p *played) ended(t *testing.T, turns int) {
	t.Helper()
	p.run(t)
	if err := p.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	if p.turns != turns {
		t.Errorf("there were %d turns, not %d", p.turns, turns)
	}
}

// update sends an update after a while, and keeps why it was rejected.
func (p *played) update(after time.Duration, name, id string, rejected *error, args ...any) {
	p.RegisterDelayedCallback(func() {
		p.UpdateWorkflow(name, id, &testsuite.TestUpdateCallback{
			OnAccept:   func() {},
			OnReject:   func(err error) { *rejected = err },
			OnComplete: func(_ any, err error) { *rejected = errors.Join(*rejected, err) },
		}, args...)
	}, after)
}

func done(int) (temporal.Outcome, error) { return temporal.Outcome{Standing: temporal.Done}, nil }

// asks has the first turn end with a question, and the others done.
func asks(n int) (temporal.Outcome, error) {
	if n == 1 {
		return temporal.Outcome{Standing: temporal.Asks, Questions: []uint64{7}}, nil
	}
	return done(n)
}

// TestWakes checks that a session is driven at its start and after each wake, and that its workflow ends once
// nothing has come for long.
func TestWakes(t *testing.T) {
	p := play(t, done)
	var rejected error
	p.update(time.Minute, temporal.InputUpdate, "a", &rejected)
	p.RegisterDelayedCallback(func() { p.SignalWorkflow(temporal.InputUpdate, nil) }, 2*time.Minute)
	p.ended(t, 3)
	if rejected != nil {
		t.Error(rejected)
	}
}

// TestApprove checks that an answer to an open question continues the session, however late it comes, and that any
// other answer is rejected without effect, as is a second one.
func TestApprove(t *testing.T) {
	p := play(t, asks)
	var unknown, first, second error
	p.update(time.Hour, temporal.ApproveUpdate, "a", &unknown, temporal.Answered{Question: 8})
	p.update(72*time.Hour, temporal.ApproveUpdate, "b", &first, temporal.Answered{Question: 7})
	p.update(72*time.Hour+time.Minute, temporal.ApproveUpdate, "c", &second, temporal.Answered{Question: 7})
	p.ended(t, 2)
	if unknown == nil || first != nil || second == nil {
		t.Errorf("unknown: %v; first: %v; second: %v", unknown, first, second)
	}
}

// TestCancel checks that a session that waits for an answer is driven once more to take the cancel in, and that its
// workflow ends then.
func TestCancel(t *testing.T) {
	p := play(t, asks)
	p.RegisterDelayedCallback(func() { p.SignalWorkflow(temporal.CancelSignal, nil) }, time.Minute)
	began := p.Now()
	p.ended(t, 2)
	if took := p.Now().Sub(began); took > 2*time.Minute {
		t.Errorf("it ended after %s", took)
	}
}

// TestTimes checks that a session that has to wait continues in time, and that a released one continues at once.
func TestTimes(t *testing.T) {
	var p *played
	var began, then, soon time.Time
	p = play(t, func(n int) (temporal.Outcome, error) {
		switch n {
		case 1:
			began = p.Now()
			return temporal.Outcome{Standing: temporal.Paused, Until: began.Add(5 * time.Hour)}, nil
		case 2:
			then = p.Now()
			return temporal.Outcome{Standing: temporal.LetGo}, nil
		}
		soon = p.Now()
		return done(n)
	})
	p.ended(t, 3)
	if then.Sub(began) < 5*time.Hour || then.Sub(began) > 5*time.Hour+time.Minute || soon.Sub(then) > time.Minute {
		t.Errorf("began %s, went on %s and %s", began, then, soon)
	}
}

// TestRetries checks that a turn that another driver is in the way of is made again, until it can be had, and that a
// session that does not exist ends its workflow.
func TestRetries(t *testing.T) {
	p := play(t, func(n int) (temporal.Outcome, error) {
		if n < 8 {
			return temporal.Outcome{}, errors.New("another drives it")
		}
		return done(n)
	})
	p.ended(t, 8)
	gone := play(t, func(int) (temporal.Outcome, error) {
		return temporal.Outcome{}, sdk.NewNonRetryableApplicationError("it is gone", "NoSession", nil)
	})
	gone.run(t)
	if gone.GetWorkflowError() == nil || gone.turns != 1 {
		t.Errorf("%d turns, and the error %v", gone.turns, gone.GetWorkflowError())
	}
}

// TestContinuesAsNew checks that a workflow of many turns continues as a new one that knows how many turns there were.
func TestContinuesAsNew(t *testing.T) {
	p := play(t, func(int) (temporal.Outcome, error) { return temporal.Outcome{Standing: temporal.LetGo}, nil })
	p.run(t)
	var again *workflow.ContinueAsNewError
	if err := p.GetWorkflowError(); !errors.As(err, &again) {
		t.Fatalf("it ended with %v", err)
	}
	if p.turns != 500 {
		t.Errorf("it continued as new after %d turns", p.turns)
	}
}

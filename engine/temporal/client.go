package temporal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/store"
)

// Client gives the sessions of a server to the engine. Every method first writes to the log and then wakes the
// session, so a failed call can be repeated with the same key. Fill in the fields; they must not change once it
// is in use. Safe for concurrent use.
//
// A server uses it on behalf of people it has identified. Agents have no access to it: a tool can approve
// neither a call of its own session nor one of a child.
type Client struct {
	Temporal client.Client
	Store    store.Store // of all workers
	Queue    string      // as in [Worker]
	// Heartbeat is how long a worker may be silent to Temporal before another continues; 0 means 30 s. It must be
	// longer than a server failover, and shorter timeouts cause more load. Workers with a store that knows of lost
	// sessions don't wait for it.
	Heartbeat time.Duration
	// Searchable says that the namespace has the search attributes [StandingKey] and [TenantKey].
	Searchable bool
	// Tenant returns the tenant of a session, if it is Searchable. Nil or empty: none.
	Tenant func(session string) string
	// Redact is as in [inspan.Watch].
	Redact func(event.Body) event.Body
	// Answers is how long a worker may take to accept a wake; 0 means 5 s. After that the wake waits in the server
	// for a worker.
	Answers time.Duration
}

// ErrNoQuestion says that an approval answers no open question: there never was one, or it has been answered.
var ErrNoQuestion = errors.New("no such question is open")

// Start lets the engine supervise the session with this full id, which must have begun. It does nothing if the
// engine does so already. No worker need be running.
func (c *Client) Start(ctx context.Context, session string) error {
	_, err := c.Temporal.ExecuteWorkflow(ctx, c.options(session), WorkflowName, c.supervised(session))
	if err != nil {
		return fmt.Errorf("start session %s: %w", session, err)
	}
	return nil
}

func (c *Client) supervised(session string) Supervised {
	return Supervised{Session: session, Heartbeat: c.Heartbeat, Searchable: c.Searchable}
}

// options are the options of the session's single workflow.
func (c *Client) options(session string) client.StartWorkflowOptions {
	o := client.StartWorkflowOptions{
		ID: session, TaskQueue: cmp.Or(c.Queue, usualQueue),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}
	if c.Searchable && c.Tenant != nil {
		if tenant := c.Tenant(session); tenant != "" {
			o.TypedSearchAttributes = temporal.NewSearchAttributes(TenantKey().ValueSet(tenant))
		}
	}
	return o
}

// Send appends an input to the log of a session and wakes it. An input with a key (Message) can be sent again:
// it counts once. Use Approve for approvals.
func (c *Client) Send(ctx context.Context, session string, input event.Body) error {
	if _, ok := input.(event.Decided); ok {
		return errors.New("send: a decision is sent by Approve")
	}
	if err := c.append(ctx, session, input, nil); err != nil {
		return err
	}
	return c.Wake(ctx, session, loop.Key(input))
}

// append appends an input, if the session accepts it in its current state.
func (c *Client) append(ctx context.Context, session string, input event.Body, takes func(inspan.Status) error) error {
	w, err := (&inspan.Host{Store: c.Store}).Watch(ctx, session)
	if err != nil {
		return err
	}
	w.Redact = c.Redact
	if takes != nil {
		err = takes(w.Status())
	}
	if err == nil {
		err = w.Send(ctx, input)
	}
	return errors.Join(err, w.Close())
}

// Wake lets a session continue with the new part of its log, and starts its supervision if needed. Wakes with
// the same key count once; an empty key makes it unique.
func (c *Client) Wake(ctx context.Context, session, key string) error {
	return c.woken(ctx, session, c.update(ctx, session, InputUpdate, key))
}

// woken signals a session if no worker has answered its update in time: the wake must not be lost with this
// process.
func (c *Client) woken(ctx context.Context, session string, err error) error {
	if late(ctx, err) {
		_, err = c.Temporal.SignalWithStartWorkflow(ctx, session, InputUpdate, nil, c.options(session), WorkflowName, c.supervised(session))
	}
	if err != nil {
		return fmt.Errorf("wake session %s: %w", session, err)
	}
	return nil
}

// late reports whether no worker has answered in time, while the caller still has time left.
func late(ctx context.Context, err error) bool {
	var timeout *client.WorkflowUpdateServiceTimeoutOrCanceledError
	return ctx.Err() == nil && (errors.As(err, &timeout) || errors.Is(err, context.DeadlineExceeded))
}

func (c *Client) update(ctx context.Context, session, name, key string, args ...any) error {
	ctx, stop := context.WithTimeout(ctx, cmp.Or(c.Answers, 5*time.Second))
	defer stop()
	start := c.Temporal.NewWithStartWorkflowOperation(c.options(session), WorkflowName, c.supervised(session))
	h, err := c.Temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: start,
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateID: cmp.Or(key, rand.Text()), WorkflowID: session, UpdateName: name, Args: args,
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// Approve answers a question of a session, allowing it or not, and wakes the session. The decision names its
// question. The error wraps [ErrNoQuestion] if that question is not open.
func (c *Client) Approve(ctx context.Context, session string, d event.Decided) error {
	err := c.append(ctx, session, d, func(st inspan.Status) error {
		for _, q := range st.Questions() {
			if q.Question == d.Question && q.Call.ID == d.Call {
				return nil
			}
		}
		return fmt.Errorf("approve question %d of session %s: %w", d.Question, session, ErrNoQuestion)
	})
	if err != nil && !c.took(ctx, session, loop.Key(d)) {
		return err
	}
	return c.decided(ctx, session, d)
}

// decided wakes a session with an answer from its log.
func (c *Client) decided(ctx context.Context, session string, d event.Decided) error {
	err := c.update(ctx, session, ApproveUpdate, loop.Key(d), Answered{Question: d.Question})
	var refused *temporal.ApplicationError
	if errors.As(err, &refused) && refused.Type() == noQuestion {
		return c.Wake(ctx, session, "") // the workflow has not heard of the question
	}
	return c.woken(ctx, session, err)
}

// took reports whether an input with the key is in the log, for callers that did not see it arrive.
func (c *Client) took(ctx context.Context, session, key string) bool {
	for e, err := range store.Events(ctx, c.Store, session) {
		if err != nil {
			return false
		}
		if key != "" && loop.Key(e.Body) == key {
			return true
		}
	}
	return false
}

// Cancel interrupts a session, and ends its supervision once its run has stopped.
func (c *Client) Cancel(ctx context.Context, session string, why event.Cancelled) error {
	if err := c.append(ctx, session, why, nil); err != nil {
		return err
	}
	err := c.Temporal.SignalWorkflow(ctx, session, "", CancelSignal, nil)
	if _, none := errors.AsType[*serviceerror.NotFound](err); none { // no process drives what is to be stopped
		return nil
	}
	return err
}

// Description is the engine's view of a session.
type Description struct {
	Supervised bool     // a workflow is open for it
	Standing   Standing // as of the last turn; empty means there was none
	Turns      int
	Progress   Progress  // of the turn that goes on; zero if none does, or it has not said yet
	Heard      time.Time // when it was reported
	Attempt    int       // of the turn that goes on: 1, and more after each worker that was lost; 0 means none does
	Worker     string    // that has it
	Failure    string    // why the attempt before did not end it
	Resting    bool      // no worker has it, because that attempt has just failed, which was no wait for another worker
}

// Describe asks the engine about a session. It needs no worker. The error wraps [serviceerror.NotFound] if the
// engine does not know the session.
func (c *Client) Describe(ctx context.Context, session string) (Description, error) {
	r, err := c.Temporal.DescribeWorkflowExecution(ctx, session, "")
	if err != nil {
		return Description{}, fmt.Errorf("describe session %s: %w", session, err)
	}
	info := r.GetWorkflowExecutionInfo()
	d := Description{Supervised: info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	from := converter.GetDefaultDataConverter()
	for name, into := range map[string]any{memoStanding: &d.Standing, memoTurns: &d.Turns} {
		if p := info.GetMemo().GetFields()[name]; p != nil {
			err = errors.Join(err, from.FromPayload(p, into))
		}
	}
	for _, turn := range r.GetPendingActivities() {
		err = errors.Join(err, d.turn(turn))
	}
	return d, err
}

func (d *Description) turn(p *workflowpb.PendingActivityInfo) error {
	d.Attempt, d.Worker, d.Failure = int(p.GetAttempt()), p.GetLastWorkerIdentity(), p.GetLastFailure().GetMessage()
	benign := p.GetLastFailure().GetApplicationFailureInfo().GetCategory() == enumspb.APPLICATION_ERROR_CATEGORY_BENIGN
	d.Resting = d.Failure != "" && !benign && p.GetState() == enumspb.PENDING_ACTIVITY_STATE_SCHEDULED
	if p.GetHeartbeatDetails() == nil {
		return nil
	}
	d.Heard = p.GetLastHeartbeatTime().AsTime()
	return converter.GetDefaultDataConverter().FromPayloads(p.GetHeartbeatDetails(), &d.Progress)
}

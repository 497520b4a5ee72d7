package temporal

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/inspan/inspan/internal/install/running"
)

// loser is an optional interface of a store that knows which sessions have lost their process, and which were
// offered to others.
type loser interface {
	Lost(ctx context.Context) iter.Seq2[string, error]
	Offer(ctx context.Context, id string) error
}

// rescuer continues sessions whose worker died without notice, is stopped or cut off, or has offered them.
// Temporal learns of a dead worker by the heartbeat timeout, which is long because heartbeats are sent for each
// session. The store learns of it soon, by one beat for each process. The worker that gets the lease of a lost
// session drives it at once. Then it ends the other worker's turn in Temporal, whose retry joins the run here,
// or finds the session driven.
type rescuer struct {
	turns     *turns
	client    client.Client
	namespace string
	identity  string // of this worker
	atOnce    int
	drain     time.Duration

	mu     sync.Mutex
	taking map[string]bool // sessions that are seen to
}

const (
	looksAgain = 200 * time.Millisecond // whether the turn that was ended has gone to another worker
	endsWithin = 10 * time.Second       // after that the heartbeat timeout is left to end it
)

// run takes care of all lost sessions until ctx ends, and then releases them.
func (r *rescuer) run(ctx context.Context) {
	from, ok := r.turns.host.Store.(loser)
	if !ok {
		return
	}
	var work sync.WaitGroup
	defer work.Wait()
	for id, err := range from.Lost(ctx) {
		if err == nil && r.begins(id) { // else it looks again
			work.Go(func() { defer r.ends(id); r.rescue(ctx, id) })
		}
	}
}

// begins reports whether to begin with a session: not if it is already being rescued.
func (r *rescuer) begins(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taking[id] || len(r.taking) >= r.atOnce {
		return false
	}
	r.taking[id] = true
	return true
}

func (r *rescuer) ends(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.taking, id)
}

// rescue drives a lost session, if no other worker does.
func (r *rescuer) rescue(ctx context.Context, id string) {
	st, err := r.turns.status(ctx, id)
	if err != nil {
		return
	}
	if !st.Active { // there is only a lease to be given back
		if running.Free(ctx, r.turns.host.Store, id) == nil {
			r.end(ctx, id)
		}
		return
	}
	run, err := r.turns.pool.Drive(context.WithoutCancel(ctx), id, nil)
	if err != nil {
		return
	}
	defer r.turns.forget(id)
	select {
	case <-run.Done():
		if running.Elsewhere(run.Err()) {
			return
		}
	default:
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { r.end(ctx, id) })
	// Its error is that of the run, which another worker continues.
	_, _ = run.Attend(context.WithoutCancel(ctx), running.Attendance{Stop: ctx.Done(), Drain: r.drain, Rest: r.turns.rest, Every: r.turns.beat})
	r.turns.offer(ctx, id)
}

// end ends the turn of the lost worker. If that worker is only stopped, Temporal may give it the next turn too.
// Then that turn is ended as well.
func (r *rescuer) end(ctx context.Context, id string) {
	ctx, stop := context.WithTimeout(ctx, endsWithin)
	defer stop()
	tick := time.NewTicker(looksAgain)
	defer tick.Stop()
	for gone := ""; ; {
		turn, run, err := r.turn(ctx, id)
		switch {
		case err != nil: // the server may be away
		case turn == nil:
			return
		case turn.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED:
		case turn.GetLastWorkerIdentity() == r.identity, gone != "" && gone != turn.GetLastWorkerIdentity():
			return
		default:
			gone = turn.GetLastWorkerIdentity()
			// If it fails, it is tried again.
			_ = r.client.CompleteActivityByID(ctx, r.namespace, id, run, turn.GetActivityId(), nil, errLost())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// errLost is the failure of a turn whose worker is lost. It is retried at once.
func errLost() error {
	return temporal.NewApplicationErrorWithOptions("the store has not heard of the worker", "Lost", temporal.ApplicationErrorOptions{
		NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// turn returns the session's running turn, according to Temporal, and the run of its workflow.
func (r *rescuer) turn(ctx context.Context, id string) (*workflowpb.PendingActivityInfo, string, error) {
	d, err := r.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, "", err
	}
	turns := d.GetPendingActivities()
	n := slices.IndexFunc(turns, func(p *workflowpb.PendingActivityInfo) bool { return p.GetActivityType().GetName() == TurnName })
	if n < 0 {
		return nil, "", nil
	}
	return turns[n], d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), nil
}

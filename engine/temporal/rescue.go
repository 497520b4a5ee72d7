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

// loser is an optional interface of a store that knows which sessions have lost their process, and
// takes note of those that are let go of.
type loser interface {
	Lost(ctx context.Context) iter.Seq2[string, error]
	Offer(ctx context.Context, id string) error
}

// rescuer has sessions go on whose worker died without a word, is stopped or cut off, or lets go of
// them. Temporal learns of the first by the heartbeat timeout, which is long: heartbeats are load, one
// a session. The store learns of it soon, by one beat a process. The worker that gets the lease of a
// lost session drives on at once. Then it ends the turn of the other one for Temporal, whose retry
// joins the run here, or finds the session driven.
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

// run sees to all sessions that get lost until ctx ends, and lets go of them then.
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

// begins reports whether a session is to be seen to, which it is not while it is.
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

// rescue drives a session that is lost, if no other worker does.
func (r *rescuer) rescue(ctx context.Context, id string) {
	st, err := r.turns.status(ctx, id)
	if err != nil {
		return
	}
	if !st.Active { // there is only a lease to be given back
		if r.frees(ctx, id) {
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
	r.sit(ctx, run)
	r.turns.offer(ctx, id)
}

// frees takes the lease from the process that is gone, and gives it back.
func (r *rescuer) frees(ctx context.Context, id string) bool {
	log, err := r.turns.host.Store.Open(ctx, id)
	if err != nil {
		return false
	}
	err = log.Lease(ctx)
	return log.Close() == nil && err == nil
}

// sit waits until a run is over, or lets go of it as the turns of this worker do.
func (r *rescuer) sit(ctx context.Context, run *running.Run) {
	tick := time.NewTicker(r.turns.beat)
	defer tick.Stop()
	stops, late := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case <-run.Done():
			return
		case <-stops:
			stops, late = nil, time.After(r.drain)
			run.Leave()
		case <-late:
			run.Break()
		case <-tick.C:
			if r.turns.tooLong(outcome(run.Status())) {
				run.Leave()
			}
		}
	}
}

// end ends the turn of the worker that is gone. Whoever is only stopped may still ask for work, as far
// as Temporal can tell, and get the next turn too. That one is ended as well.
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

// errLost is why a turn has failed whose worker is gone. It is tried again at once.
func errLost() error {
	return temporal.NewApplicationErrorWithOptions("the store has not heard of the worker", "Lost", temporal.ApplicationErrorOptions{
		NextRetryDelay: time.Millisecond, Category: temporal.ApplicationErrorCategoryBenign,
	})
}

// turn is the turn of a session that goes on, as Temporal sees it, and the run of its workflow.
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

package temporal

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
)

// Standing is the state of a session at the end of a turn.
type Standing = running.TurnStanding

// Standings.
const (
	Running = running.TurnRunning
	Done    = running.TurnDone
	Asks    = running.TurnAsks
	Waits   = running.TurnWaits
	Paused  = running.TurnPaused
	LetGo   = running.TurnLetGo
)

// Outcome is the result of a turn: facts that the workflow needs, and no content.
type Outcome = running.Outcome

// Progress is reported by a running turn. Its age distinguishes a slow worker from a session that hangs.
type Progress struct {
	Seq  uint64    `json:"seq"`  // last stored event
	Last time.Time `json:"last"` // when something happened last, stored or not
}

// turns drives sessions. It implements the activity.
type turns struct {
	host *inspan.Host
	pool running.Pool
	beat time.Duration
	rest time.Duration // a model that can't be asked for longer is not waited for here

	mu   sync.Mutex
	last map[string]time.Time // when something has happened, by session that is driven
}

func newTurns(h *inspan.Host, beat, rest time.Duration, saw func(event.Event)) *turns {
	t := &turns{host: h, beat: beat, rest: rest, last: map[string]time.Time{}}
	t.pool.Open = h.Open
	t.pool.OnEvent = func(e event.Event) {
		t.mu.Lock()
		t.last[e.Session] = time.Now()
		t.mu.Unlock()
		if saw != nil {
			saw(e)
		}
	}
	return t
}

// Turn drives a session until its run stops or only questions are left. When the worker stops, running work is
// finished, nothing is begun, and another worker continues. When Temporal gives up the turn, because of late
// heartbeats or a cancelled workflow, the run is aborted as if by a crash.
func (t *turns) Turn(ctx context.Context, id string) (Outcome, error) {
	st, err := t.status(ctx, id)
	if err != nil {
		return Outcome{}, final(err)
	}
	if !st.Active { // a wake too many: nothing is claimed
		return running.OutcomeOf(st), nil
	}
	opening := t.beats(ctx, st)
	r, err := t.pool.Drive(context.WithoutCancel(ctx), id, nil)
	opening()
	if err != nil {
		return Outcome{}, t.failed(err)
	}
	defer t.forget(id)
	drained, err := t.attend(ctx, r)
	if err != nil {
		return Outcome{}, err
	}
	if st, err = t.status(ctx, id); err != nil {
		return Outcome{}, err
	}
	o := running.OutcomeOf(st)
	if drained && st.Active { // beside what asks there may be calls that no one has begun
		o = Outcome{Standing: LetGo, Seq: st.Seq}
		t.offer(ctx, id)
	}
	return o, nil
}

// beats reports progress while a session is opened, because its workspace may have to be downloaded first. The
// caller must call stop, which waits. Every report uses the turn's context: a report whose context has ended would
// end the turn, and the SDK sends delayed reports with the context of the first one.
func (t *turns) beats(ctx context.Context, st inspan.Status) (stop func()) {
	opened := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() {
		tick := time.NewTicker(t.beat)
		defer tick.Stop()
		for ctx.Err() == nil {
			activity.RecordHeartbeat(ctx, t.progress(st))
			select {
			case <-tick.C:
			case <-ctx.Done():
			case <-opened:
				return
			}
		}
	})
	return func() { close(opened); beating.Wait() }
}

// offer lets another worker continue a session that this one has released, if there is anything to do. Without
// it Temporal would, but that takes seconds if it asks a worker that is stopping.
func (t *turns) offer(ctx context.Context, id string) {
	ctx = context.WithoutCancel(ctx)
	if to, ok := t.host.Store.(loser); ok {
		if st, err := t.status(ctx, id); err == nil && running.OutcomeOf(st).Standing == LetGo {
			_ = to.Offer(ctx, id)
		}
	}
}

// attend waits for the end of a run. Drained says that it was left because the worker stops.
func (t *turns) attend(ctx context.Context, r *running.Run) (drained bool, err error) {
	drained, err = r.Attend(ctx, running.Attendance{
		Stop: activity.GetWorkerStopChannel(ctx), Rest: t.rest, Every: t.beat,
		Look: func(st inspan.Status) { activity.RecordHeartbeat(ctx, t.progress(st)) },
	})
	if err != nil && ctx.Err() == nil {
		err = t.failed(err)
	}
	return drained, err
}

func (t *turns) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.last, id)
}

func (t *turns) progress(st inspan.Status) Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Progress{Seq: st.Seq, Last: t.last[st.Session]}
}

// failed is the error of a turn that could not continue. A session that another process drives is retried soon,
// and does not count as failed. One without anything to do is not retried.
func (t *turns) failed(err error) error {
	if running.Elsewhere(err) || errors.Is(err, event.ErrFenced) {
		return temporal.NewApplicationErrorWithOptions(err.Error(), "Busy", temporal.ApplicationErrorOptions{
			NextRetryDelay: t.beat, Category: temporal.ApplicationErrorCategoryBenign,
		})
	}
	if errors.Is(err, running.ErrUnowned) {
		return temporal.NewNonRetryableApplicationError(err.Error(), "Unowned", nil)
	}
	return err
}

// final prevents retries if the session does not exist.
func final(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return temporal.NewNonRetryableApplicationError(err.Error(), "NoSession", nil)
	}
	return err
}

func (t *turns) status(ctx context.Context, id string) (inspan.Status, error) {
	return (&running.Table{Sessions: t.host.Store}).Status(ctx, id)
}

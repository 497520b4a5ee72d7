package running

import (
	"context"
	"errors"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/store"
)

// Outcome holds the facts that an [Engine] needs about a session that is not driven. It holds facts and no content.
type Outcome struct {
	Standing  TurnStanding `json:"standing"`
	Seq       uint64       `json:"seq,omitempty"`       // last event of the session
	Until     time.Time    `json:"until,omitzero"`      // when to continue, if nothing comes before
	Questions []uint64     `json:"questions,omitempty"` // that are open
}

// TurnStanding is the state of a session between two turns, as engines see it.
type TurnStanding string

// Standings.
const (
	TurnRunning TurnStanding = "running"
	TurnDone    TurnStanding = "done"   // its run has stopped
	TurnAsks    TurnStanding = "asks"   // calls wait for a person's answer
	TurnWaits   TurnStanding = "waits"  // the model can't be asked before a time
	TurnPaused  TurnStanding = "paused" // the same, for all that work for the session: a quota is used up
	TurnLetGo   TurnStanding = "let go" // there is more to do, for any worker
)

// OutcomeOf returns the outcome of a turn that left a session in this state.
func OutcomeOf(st inspan.Status) Outcome {
	o := Outcome{Standing: TurnLetGo, Seq: st.Seq}
	for _, q := range st.Questions() {
		o.Questions = append(o.Questions, q.Question)
		if o.Until.IsZero() || !q.Until.IsZero() && q.Until.Before(o.Until) {
			o.Until = q.Until
		}
	}
	now := time.Now()
	switch {
	case !st.Active:
		return Outcome{Standing: TurnDone, Seq: st.Seq}
	case len(o.Questions) > 0:
		o.Standing = TurnAsks
	case st.Paused != nil && st.Paused.Until.After(now):
		o.Standing, o.Until = TurnPaused, st.Paused.Until
	case st.NotBefore.After(now):
		o.Standing, o.Until = TurnWaits, st.NotBefore
	}
	return o
}

// Free takes the lease of a session from a process that is lost, and releases it.
func Free(ctx context.Context, s store.Store, id string) error {
	log, err := s.Open(ctx, id)
	if err != nil {
		return err
	}
	return errors.Join(log.Lease(ctx), log.Close())
}

// Attendance says how a worker attends a run, see [Run.Attend].
type Attendance struct {
	Stop  <-chan struct{}     // closed when the worker stops: work in progress is finished, and nothing is begun
	Drain time.Duration       // how long that may take; 0 means no limit
	Rest  time.Duration       // the longest wait for a model that is sat out
	Every time.Duration       // between two looks at the run
	Look  func(inspan.Status) // called with each look; nil means it is not
}

// Attend waits for the end of a run, and releases its session early if the worker stops or the session has to wait
// for longer than the worker should. Drained says that the worker stops. When ctx ends, the run is aborted as if by a
// crash, and the error is its cause.
func (r *Run) Attend(ctx context.Context, a Attendance) (drained bool, err error) {
	tick := time.NewTicker(a.Every)
	defer tick.Stop()
	left, late := false, (<-chan time.Time)(nil)
	for {
		st := r.Status()
		if a.Look != nil {
			a.Look(st)
		}
		o := OutcomeOf(st)
		if waits := o.Standing == TurnWaits || o.Standing == TurnPaused; waits && !left && o.Until.After(time.Now().Add(a.Rest)) {
			left = true
			r.Detach()
		}
		select {
		case <-r.Done():
			if err := r.Err(); err != nil && !left && !drained {
				return false, err
			}
			return drained, nil
		case <-ctx.Done():
			r.Break()
			<-r.Done()
			return drained, context.Cause(ctx)
		case <-a.Stop:
			a.Stop, drained = nil, true
			if a.Drain > 0 {
				late = time.After(a.Drain)
			}
			r.Detach()
		case <-late:
			r.Break()
		case <-tick.C:
		}
	}
}

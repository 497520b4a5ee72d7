// Package dispatch lets the database of the sessions decide which machine drives one: a cluster that needs nothing
// but PostgreSQL.
//
// A wake makes a row in the table of turns. A worker that has room takes the oldest rows that are due, drives their
// sessions, and removes or postpones the rows. Turns say who should try; only the lease of a session says who may
// write. Sessions of lost workers are found by [postgres.Store.Lost]. docs/decisions/065-dispatch.md gives the
// reason why there is no library.
package dispatch

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/inspan/inspan/engine/postgres"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
)

// Engine is a [running.Engine] over a store. The zero value of all other fields is fine.
type Engine struct {
	Store *postgres.Store
	// Rest is the longest wait for a model that a worker sits out. It releases a session that has to wait longer,
	// which is driven again when the time has come. Default: a minute.
	Rest time.Duration
	// Poll is how often a worker asks for turns without a notification. Default: a second.
	Poll time.Duration
}

var _ running.Engine = (*Engine)(nil)

const (
	usualAtOnce = 100
	batch       = 8 // turns taken at once, so that idle workers get some of many
	usualDrain  = 10 * time.Minute

	severalTries = 4 // that must fail before a session counts as stuck
	firstPause   = time.Second
	longestPause = time.Minute
	elsewhere    = 5 * time.Second // pause until the next try for a session that another process drives
)

// Wake implements [running.Engine].
func (e *Engine) Wake(ctx context.Context, session string, _ event.Body) error {
	return e.Store.Wake(ctx, session)
}

// Stuck implements [running.Engine].
func (e *Engine) Stuck(ctx context.Context, session string) (why string, err error) {
	tries, why, err := e.Store.Failing(ctx, session)
	if err != nil || tries < severalTries {
		return "", err
	}
	return why, nil
}

// Close implements [running.Engine]. The store stays open.
func (e *Engine) Close() error { return nil }

// worker drives sessions in this process.
type worker struct {
	*Engine
	running.Work
	pool  running.Pool
	turns sync.WaitGroup
	many  atomic.Int64  // turns at the moment
	freed chan struct{} // has a token when one has ended
}

// Work implements [running.Engine].
func (e *Engine) Work(ctx context.Context, o running.Work) error {
	o.AtOnce, o.Drain = cmp.Or(o.AtOnce, usualAtOnce), cmp.Or(o.Drain, usualDrain)
	w := &worker{Engine: e, Work: o, freed: make(chan struct{}, 1)}
	w.pool.Open, w.pool.OnEvent = o.Open, o.OnEvent
	w.turns.Go(func() { w.rescue(ctx) })
	poll := time.NewTicker(cmp.Or(e.Poll, time.Second))
	defer poll.Stop()
	for ctx.Err() == nil {
		room := o.AtOnce - int(w.many.Load())
		if most := min(room, batch); most > 0 {
			turns, err := e.Store.Turns(ctx, most)
			for _, t := range turns {
				w.begin(ctx, t)
			}
			if err == nil && len(turns) == most {
				continue
			}
		}
		select {
		case <-e.Store.Due():
		case <-w.freed:
		case <-poll.C: // also after an error: the database may be away
		case <-ctx.Done():
		}
	}
	w.turns.Wait()
	w.pool.Close()
	return nil
}

// rescue continues sessions whose process is lost, until ctx ends.
func (w *worker) rescue(ctx context.Context) {
	for id, err := range w.Store.Lost(ctx) {
		if err != nil || int(w.many.Load()) >= w.AtOnce {
			continue // it looks again
		}
		if t, ok, err := w.Store.Rescue(ctx, id); err == nil && ok {
			w.begin(ctx, t)
		}
	}
}

// begin drives the session of a turn in the background, and gives the turn back.
func (w *worker) begin(ctx context.Context, t postgres.Turn) {
	w.many.Add(1)
	w.turns.Go(func() {
		end := w.drive(ctx, t)
		// If it fails, the store gives the turn back later.
		_ = w.Store.EndTurn(context.WithoutCancel(ctx), t, end)
		w.many.Add(-1)
		select {
		case w.freed <- struct{}{}:
		default:
		}
	})
}

// drive drives a session until its run stops, only questions are left, or the worker stops.
func (w *worker) drive(ctx context.Context, t postgres.Turn) postgres.TurnEnd {
	st, err := (&running.Table{Sessions: w.Store}).Status(context.WithoutCancel(ctx), t.Session)
	if err != nil {
		return failed(t, err)
	}
	if !st.Active { // a wake too many, or only a lease of a lost process
		return w.free(ctx, t)
	}
	r, err := w.pool.Drive(context.WithoutCancel(ctx), t.Session, nil)
	if errors.Is(err, running.ErrUnowned) {
		return w.free(ctx, t)
	}
	if err != nil {
		return failed(t, err)
	}
	drained, err := r.Attend(context.WithoutCancel(ctx), running.Attendance{
		Stop: ctx.Done(), Drain: w.Drain, Rest: cmp.Or(w.Rest, time.Minute), Every: time.Second,
	})
	if err != nil {
		return failed(t, err)
	}
	if st = r.Status(); drained && st.Active { // beside what asks there may be calls that no one has begun
		return postgres.TurnEnd{Again: true}
	}
	return rests(running.OutcomeOf(st))
}

// rests returns how to continue with a session that was driven.
func rests(o running.Outcome) postgres.TurnEnd {
	switch {
	case o.Standing == running.TurnLetGo:
		return postgres.TurnEnd{Again: true}
	case !o.Until.IsZero():
		return postgres.TurnEnd{Again: true, After: max(time.Until(o.Until), time.Millisecond)}
	}
	return postgres.TurnEnd{}
}

// failed returns how to continue with a session that could not be driven.
func failed(t postgres.Turn, err error) postgres.TurnEnd {
	if running.Elsewhere(err) || errors.Is(err, event.ErrFenced) {
		return postgres.TurnEnd{Again: true, After: elsewhere}
	}
	pause := min(firstPause<<min(t.Tries, 10), longestPause)
	return postgres.TurnEnd{Again: true, After: pause, Failed: err.Error()}
}

// free ends the turn of a session that no process has to drive. If a lost process has its lease, that is released.
func (w *worker) free(ctx context.Context, t postgres.Turn) postgres.TurnEnd {
	ctx = context.WithoutCancel(ctx)
	held, err := w.Store.Holder(ctx, t.Session)
	if err == nil && held == nil {
		err = running.Free(ctx, w.Store, t.Session)
	}
	if err != nil {
		return failed(t, err)
	}
	return postgres.TurnEnd{}
}

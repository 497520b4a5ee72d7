package app

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/store"
)

// leftoverAge is the minimum age of files that no session needs before they are deleted: younger files may
// still be written.
const leftoverAge = 24 * time.Hour

// Pruning lists the sessions beyond the retention and the files that no session needs.
type Pruning struct {
	Stale     []running.Stale
	Left      int64 // bytes of the remaining sessions
	Leftovers []session.Leftover
	Unused    []running.Unused

	app  *App
	rest running.Rest
}

// NewPruning finds sessions and files to delete; see [running.Table.Stale]. It deletes nothing. In a store that
// several machines share it only finds sessions: files on their disks belong to the machines.
func NewPruning(ctx context.Context, a *App, age time.Duration, size int64) (p Pruning, err error) {
	p.app, p.rest = a, running.Rest{Trees: subagent.Copies(), Age: age, Before: time.Now().Add(-leftoverAge)}
	if p.Stale, p.Left, err = a.Running.Stale(ctx, age, size); err != nil {
		return p, err
	}
	if p.shared() {
		return p, nil
	}
	if p.Unused, err = a.Running.Unused(ctx, p.Stale, p.rest); err != nil {
		return p, err
	}
	p.Leftovers, err = a.sessions.Leftovers(ctx, p.rest.Before)
	return p, err
}

func (p Pruning) shared() bool { return p.app.Running.Sessions != store.Store(p.app.sessions) }

// each deletes sessions, and yields each id with the result.
func (p Pruning) each(ctx context.Context, ids []string) iter.Seq2[string, error] {
	if !p.shared() {
		return p.app.sessions.RemoveEach(ctx, ids)
	}
	return func(yield func(string, error) bool) {
		for _, id := range ids {
			if !yield(id, p.app.Running.Sessions.Remove(ctx, id)) {
				return
			}
		}
	}
}

// Prune deletes the sessions and files, and calls told with the id or path of each deleted one. Sessions and
// files that are in use again are left alone.
func (p Pruning) Prune(ctx context.Context, told func(name string)) (err error) {
	ids := make([]string, len(p.Stale))
	for i, s := range p.Stale {
		ids[i] = s.ID
	}
	for id, bad := range p.each(ctx, ids) {
		if err = errors.Join(err, bad); bad == nil {
			told(id)
		}
	}
	if p.shared() {
		return err
	}
	return errors.Join(err, p.app.sessions.Sweep(ctx, p.rest.Before),
		p.app.Running.Discard(ctx, p.Unused, p.rest, func(u running.Unused) { told(u.Path) }))
}

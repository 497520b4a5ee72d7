// Package running knows who drives which session, stops runs, keeps what goes on after a session, and
// has runs go on in processes of their own. It calls a person who is away ([Notifier]), and finds the
// ways back of sessions and their workspaces ([Rewinds]).
package running

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
)

// States of a session that somebody drives.
const (
	StateWorking = "working"
	StateAsks    = "asks"
	StateModel   = "waits for its model"
	StateIdle    = "idle" // its run has ended, and a message begins another
	StateKept    = "kept" // a command of it goes on after it
)

// Table is the sessions that run, in this process and in others.
type Table struct {
	*config.Installation
	// Sessions keeps what this process drives too, with all that works for it and counts against the
	// limits of a day. It is set before the first session is opened.
	Sessions store.Store
	Server   string                      // address of the server that has the sessions, for hints; empty: this machine has them
	Redact   func(event.Body) event.Body // takes out secrets of what is sent to a session that others drive
	Trees    *worktree.Store             // copies that agents work in; nil: there are none

	shells sync.Map // of the sessions that are open here, by id
}

// Driven is a session that somebody drives.
type Driven struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"` // the session that it works for
	PID      int       `json:"pid,omitempty"`
	Host     string    `json:"host"`
	Since    time.Time `json:"since"` // when that process took it up, or was asked last
	State    string    `json:"state"` // one of the states above
	What     string    `json:"what"`  // its title, else what was said last
	Root     string    `json:"root"`
	Cost     float64   `json:"cost"` // US dollars so far
	Unpriced bool      `json:"unpriced,omitempty"`
}

// List lists the sessions that somebody drives, each before those that work for it,
// the oldest first; none is an empty list. A child that asks is driven by nobody and
// counts, as what it works for is driven.
func (t *Table) List(ctx context.Context) ([]Driven, error) {
	held, err := t.Sessions.Held(ctx)
	if err != nil {
		return nil, err
	}
	stands, err := t.stand(ctx)
	if err != nil {
		return nil, err
	}
	list := []Driven{}
	seen := map[string]bool{}
	for _, h := range held {
		seen[h.Session] = true
	}
	for i := 0; i < len(held); i++ { // grows
		h := held[i]
		st, err := t.Status(ctx, h.Session)
		if err != nil {
			continue // it went meanwhile, or is damaged, which 'sessions list' tells
		}
		list = append(list, stands[h.Session].of(drivenBy(h, st)))
		for _, child := range st.Children {
			if child.Open && !seen[child.Child] {
				seen[child.Child] = true
				held = append(held, store.Holder{Session: child.Child, PID: h.PID, Host: h.Host, Since: h.Since})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Driven) int { return strings.Compare(a.ID, b.ID) }) // which puts children behind their parents
	return list, nil
}

// Driven is the session with the whole id as somebody drives it; nil means nobody. It looks at no session but
// that one and those that it works for.
func (t *Table) Driven(ctx context.Context, id string) (*Driven, error) {
	st, err := t.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	for at := id; at != ""; at = store.Parent(at) {
		h, err := t.Sessions.Holder(ctx, at)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		if at != id && !st.Active { // what it works for goes on without it
			return nil, nil
		}
		stands, err := t.stand(ctx)
		if err != nil {
			return nil, err
		}
		h.Session = id
		d := stands[id].of(drivenBy(*h, st))
		return &d, nil
	}
	return nil, nil
}

// of is how a session is driven, where the store says how it stands.
func (s Standing) of(d Driven) Driven {
	switch {
	case s == StandsIdle:
		d.State = StateIdle
	case s == StandsRunning && d.State == StateIdle:
		d.State = StateWorking
	}
	return d
}

func drivenBy(h store.Holder, st inspan.Status) Driven {
	d := Driven{
		ID: h.Session, Parent: store.Parent(h.Session), PID: h.PID, Host: h.Host, Since: h.Since, State: stateOf(st), What: st.Title,
		Root: st.Root, Cost: st.Cost, Unpriced: st.Unpriced,
	}
	if d.What == "" {
		d.What = st.Task
	}
	return d
}

// stateOf says what a session does that somebody drives.
func stateOf(st inspan.Status) string {
	switch {
	case len(st.Waiting)+len(st.Raised) > 0:
		return StateAsks
	case st.Asking || st.NotBefore.After(time.Now()):
		return StateModel
	case !st.Active:
		return StateIdle
	}
	return StateWorking
}

// stander is a store that says itself how its sessions stand, as a server does.
type stander interface {
	Standings(ctx context.Context) (map[string]Standing, error)
}

// stand is how sessions stand by the word of the store; empty if it says nothing.
func (t *Table) stand(ctx context.Context) (map[string]Standing, error) {
	if s, says := t.Sessions.(stander); says {
		return s.Standings(ctx)
	}
	return nil, nil
}

// Watch opens a session to look at it. The caller closes it.
func (t *Table) Watch(ctx context.Context, id string) (*inspan.Watch, error) {
	w, err := (&inspan.Host{Store: t.Sessions}).Watch(ctx, id)
	if err != nil {
		return nil, err
	}
	w.Redact = t.Redact
	return w, nil
}

// Status is how a session stands that others may drive.
func (t *Table) Status(ctx context.Context, id string) (inspan.Status, error) {
	w, err := t.Watch(ctx, id)
	if err != nil {
		return inspan.Status{}, err
	}
	return w.Status(), w.Close()
}

// gap is longer than a process lets go of a session that it goes on with.
const gap = 50 * time.Millisecond

// Driver is who drives the session with the whole id; where it works for another, else
// who drives that. Nil means nobody. A process that has just got an answer lets go for
// a moment, so that nobody is only believed when it is seen again: that takes a tenth
// of a second.
func (t *Table) Driver(ctx context.Context, id string) (*store.Holder, error) {
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for n := 0; ; n++ {
		for at := id; at != ""; at = store.Parent(at) {
			if h, err := t.Sessions.Holder(ctx, at); h != nil || err != nil {
				return h, err
			}
		}
		if n == 2 {
			return nil, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Elsewhere is Driver for front ends; nil means nobody.
func (t *Table) Elsewhere(ctx context.Context, id string) (*inspan.DrivenError, error) {
	h, err := t.Driver(ctx, id)
	if h == nil || err != nil {
		return nil, err
	}
	return &inspan.DrivenError{Session: id, PID: h.PID, Host: h.Host, Since: h.Since}, nil
}

// stopGrace is how long a process may take to end after it was told to.
const stopGrace = 2 * time.Second

// Stop stops the run of the session with the whole id, ends what goes on of it after its
// end, and says what happened.
func (t *Table) Stop(ctx context.Context, id string, now bool, wait time.Duration) (string, error) {
	what, err := t.stop(ctx, id, now, wait)
	if err != nil {
		return "", err
	}
	ended, err := t.EndServices(ctx, id)
	for _, s := range ended {
		what += fmt.Sprintf("; ended process %d: %s", s.PID, s.Command)
	}
	return what, err
}

// stop stops the run of the session with the whole id, and says what happened. The run
// is interrupted and may take so long to stop; with now, or after that, the process
// that drives it is ended. Of a session that works for another only the run is
// interrupted: its process has others.
func (t *Table) stop(ctx context.Context, id string, now bool, wait time.Duration) (string, error) {
	h, err := t.Driver(ctx, id)
	if h == nil || err != nil {
		return t.rests(ctx, id), err
	}
	child := store.Parent(id) != ""
	if !now || child {
		rests, err := t.interrupt(ctx, id, wait)
		if err != nil {
			if st, bad := t.Status(ctx, id); bad == nil && !st.Active && st.Stopped != nil {
				return t.rests(ctx, id), nil // it has ended meanwhile, and takes nothing more
			}
			return "", err
		}
		if rests {
			return t.ending(ctx, id), nil
		}
	}
	switch {
	case t.Server != "":
		return "", fmt.Errorf("session %s has not stopped within %s; see what it does with: %s", id, wait, words.Command(t.Server, "attach", id))
	case child:
		return "", fmt.Errorf("session %s has not stopped within %s; it runs in process %d, which has others: inspan stop %s",
			id, wait, h.PID, h.Session)
	case !h.Here():
		return "", fmt.Errorf("session %s is driven by process %d on %s; end that there", id, h.PID, h.Host)
	}
	killed, err := sandbox.End(ctx, h.PID, stopGrace, func() bool { return t.holds(ctx, *h) })
	if err != nil {
		return "", err
	}
	how := "ended when it was told to"
	if killed {
		how = "was killed"
	}
	return fmt.Sprintf("process %d %s; the run is %s", h.PID, how, t.ending(ctx, id)), nil
}

// interrupt interrupts a run, and reports whether it has stopped within that time.
func (t *Table) interrupt(ctx context.Context, id string, wait time.Duration) (rests bool, err error) {
	w, err := t.Watch(ctx, id)
	if err != nil {
		return false, err
	}
	defer func() { _ = w.Close() }()
	if err := w.Send(ctx, event.Cancelled{By: "inspan stop", All: true}); err != nil {
		return false, err
	}
	ctx, stop := context.WithTimeout(ctx, wait)
	defer stop()
	for _, err := range w.Events(ctx, w.Status().Seq) {
		if err != nil {
			return false, nil // ending the process does not need the log
		}
		if !w.Status().Active {
			return true, nil
		}
	}
	return false, nil
}

// holds reports whether a process still drives a session. What can't be read is not
// taken for a yes.
func (t *Table) holds(ctx context.Context, h store.Holder) bool {
	now, err := t.Sessions.Holder(ctx, h.Session)
	return err == nil && now != nil && now.PID == h.PID && now.Host == h.Host
}

// rests says why there is no run of a session to stop.
func (t *Table) rests(ctx context.Context, id string) string {
	if st, err := t.Status(ctx, id); err == nil && !st.Active && st.Stopped != nil {
		return "the run has already ended: " + strings.ReplaceAll(string(st.Stopped.Reason), "_", " ")
	}
	return "no process runs it; " + t.onward(id)
}

// ending says how the run of a session has stopped.
func (t *Table) ending(ctx context.Context, id string) string {
	st, err := t.Status(ctx, id)
	if err != nil || st.Active || st.Stopped == nil {
		return "broken off, " + t.onward(id)
	}
	return strings.ReplaceAll(string(st.Stopped.Reason), "_", " ")
}

// onward is what to do with a session that nobody drives. A server goes on by itself, or not at all.
func (t *Table) onward(id string) string {
	if t.Server != "" {
		return "see it with: " + words.Command(t.Server, "logs", id)
	}
	return "continue with: " + words.Command("", "resume", id)
}

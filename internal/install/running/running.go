// Package running knows who drives which session, stops runs, and manages what continues after a session,
// including runs in processes of their own. It calls a person who is away ([Notifier]), and plans rewinds of
// sessions and their workspaces ([Rewinds]).
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
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/store"
)

// States of a session that a process drives.
const (
	StateRunning = "running"
	StateWaiting = "waiting" // for an answer
	StateModel   = "waits for its model"
	StateIdle    = "idle" // its run has ended, and a message begins another
	StateKept    = "kept" // one of its commands continues after it
)

// Table knows the running sessions, in this process and in others.
type Table struct {
	*config.Installation
	// Sessions keeps the sessions, including those that this process drives, with all that work for them and
	// count against the limits of a day. It is set before the first session is opened.
	Sessions store.Store
	Server   string                      // address of the server that has the sessions, for hints; empty means this machine
	Redact   func(event.Body) event.Body // removes secrets from inputs to a session that others drive
	Trees    *worktree.Store             // copies that agents work in; nil if there are none

	shells sync.Map // of the sessions that are open here, by id
}

// Driven is a session that a process drives.
type Driven struct {
	ID       string    `json:"id"`
	Parent   string    `json:"parent,omitempty"` // the session that it works for
	PID      int       `json:"pid,omitempty"`
	Host     string    `json:"host"`
	Since    time.Time `json:"since"` // when that process took it, or was last asked
	State    string    `json:"state"` // one of the states above
	What     string    `json:"what"`  // its title, or the last message
	Root     string    `json:"root"`
	Cost     float64   `json:"cost"` // US dollars so far
	Unpriced bool      `json:"unpriced,omitempty"`
	Open     []Open    `json:"open,omitempty"` // its open questions
}

// Open is an unanswered question.
type Open struct {
	ID      string   `json:"id"`   // for 'inspan send --allow'
	Asks    string   `json:"asks"` // text by others
	Options []string `json:"options,omitempty"`
}

// Questions returns the open questions of a session, those of children first.
func Questions(st inspan.Status) (out []Open) {
	for _, p := range inspan.Sets(st.Questions()) {
		o := Open{ID: p.ID(), Asks: words.Brief(p.Root, p.Raised(), p.Calls())}
		if p.IsQuestion {
			o.Asks, o.Options = words.Question(p.Call)
		}
		if o.Asks == "" {
			o.Asks = words.Subject(p.Call)
		}
		out = append(out, o)
	}
	return out
}

// List lists the driven sessions, each before those that work for it, the oldest first; without any it is an empty
// list. A child that asks is driven by no one but counts, since its parent is driven.
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
			continue // it has ended, or is damaged, which 'sessions list' reports
		}
		stand := stands[h.Session]
		if stand == StandsRunning && st.Stopped != nil && !st.Active {
			stand = StandsIdle // the log is read later than the server's word, and its clients have seen the run stop
		}
		list = append(list, stand.of(drivenBy(h, st)))
		for _, child := range st.Children {
			if child.Open && !seen[child.Child] {
				seen[child.Child] = true
				held = append(held, store.Holder{Session: child.Child, PID: h.PID, Host: h.Host, Since: h.Since})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Driven) int { return strings.Compare(a.ID, b.ID) }) // puts children after their parents
	return list, nil
}

// Driven returns how the session with this full id is driven; nil if no process drives it. It only looks at that
// session and those that it works for.
func (t *Table) Driven(ctx context.Context, id string) (*Driven, error) {
	st, err := t.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	for at := id; at != ""; at = kin.Parent(at) {
		h, err := t.Sessions.Holder(ctx, at)
		if err != nil {
			return nil, err
		}
		if h == nil {
			continue
		}
		if at != id && !st.Active { // the session that it works for continues without it
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

// of returns how a session is driven, if the store knows its state.
func (s Standing) of(d Driven) Driven {
	switch {
	case s == StandsIdle:
		d.State = StateIdle
	case s == StandsRunning && d.State == StateIdle:
		d.State = StateRunning
	}
	return d
}

func drivenBy(h store.Holder, st inspan.Status) Driven {
	d := Driven{
		ID: h.Session, Parent: kin.Parent(h.Session), PID: h.PID, Host: h.Host, Since: h.Since, State: stateOf(st), What: st.Title,
		Root: st.Root, Cost: st.Cost, Unpriced: st.Unpriced, Open: Questions(st),
	}
	if d.What == "" {
		d.What = st.Task
	}
	return d
}

// stateOf returns the state of a driven session.
func stateOf(st inspan.Status) string {
	switch {
	case len(st.Waiting)+len(st.Raised) > 0:
		return StateWaiting
	case st.Asking || st.NotBefore.After(time.Now()):
		return StateModel
	case !st.Active:
		return StateIdle
	}
	return StateRunning
}

// stander is a store that knows the states of its sessions, as a server does.
type stander interface {
	Standings(ctx context.Context) (map[string]Standing, error)
}

// stand returns the states of sessions by the store's word; empty if it has none.
func (t *Table) stand(ctx context.Context) (map[string]Standing, error) {
	if s, says := t.Sessions.(stander); says {
		return s.Standings(ctx)
	}
	return nil, nil
}

// Watch opens a session to look at it. The caller must close it.
func (t *Table) Watch(ctx context.Context, id string) (*inspan.Watch, error) {
	w, err := (&inspan.Host{Store: t.Sessions}).Watch(ctx, id)
	if err != nil {
		return nil, err
	}
	w.Redact = t.Redact
	return w, nil
}

// Status returns the state of a session that others may drive.
func (t *Table) Status(ctx context.Context, id string) (inspan.Status, error) {
	w, err := t.Watch(ctx, id)
	if err != nil {
		return inspan.Status{}, err
	}
	return w.Status(), w.Close()
}

// gap is longer than a process releases a session that it continues.
const gap = 50 * time.Millisecond

// Driver returns who drives the session with this full id, or, if it works for another, who drives that. Nil means
// no one. A process that has just received an answer releases the session for a moment, so no one is only reported
// if seen twice, which takes a tenth of a second.
func (t *Table) Driver(ctx context.Context, id string) (*store.Holder, error) {
	tick := time.NewTicker(gap)
	defer tick.Stop()
	for n := 0; ; n++ {
		for at := id; at != ""; at = kin.Parent(at) {
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

// Elsewhere is Driver for front ends; nil means no one.
func (t *Table) Elsewhere(ctx context.Context, id string) (*inspan.DrivenError, error) {
	h, err := t.Driver(ctx, id)
	if h == nil || err != nil {
		return nil, err
	}
	return &inspan.DrivenError{Session: id, PID: h.PID, Host: h.Host, Since: h.Since}, nil
}

// stopGrace is how long a process may take to end after it was told to.
const stopGrace = 2 * time.Second

// Stop stops the run of the session with this full id, ends the processes that continue after the session, and
// describes the outcome.
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

// stop stops the run of the session with this full id, and describes the outcome. The run is interrupted and may
// take as long as wait to stop. With now, or after that time, the process that drives it is ended. If the session
// works for another, only the run is interrupted, since its process drives others too.
func (t *Table) stop(ctx context.Context, id string, now bool, wait time.Duration) (string, error) {
	h, err := t.Driver(ctx, id)
	if h == nil || err != nil {
		return t.rests(ctx, id), err
	}
	child := kin.Parent(id) != ""
	if !now || child {
		rests, err := t.interrupt(ctx, id, wait)
		if err != nil {
			if st, bad := t.Status(ctx, id); bad == nil && !st.Active && st.Stopped != nil {
				return t.rests(ctx, id), nil // it has ended meanwhile, and takes no more inputs
			}
			return "", err
		}
		if rests {
			return t.ending(ctx, id), nil
		}
	}
	switch {
	case t.Server != "":
		return "", fmt.Errorf("session %s has not stopped within %s; look at it with: %s", id, wait, words.Command(t.Server, "attach", id))
	case child:
		return "", fmt.Errorf("session %s has not stopped within %s; it runs in process %d together with others: inspan stop %s",
			id, wait, h.PID, h.Session)
	case !h.Here():
		return "", fmt.Errorf("session %s is driven by process %d on %s; end that process there", id, h.PID, h.Host)
	}
	killed, err := sandbox.End(ctx, h.PID, stopGrace, func() bool { return t.holds(ctx, *h) })
	if err != nil {
		return "", err
	}
	how := "ended on request"
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

// holds reports whether a process still drives a session. Unreadable answers count as no.
func (t *Table) holds(ctx context.Context, h store.Holder) bool {
	now, err := t.Sessions.Holder(ctx, h.Session)
	return err == nil && now != nil && now.PID == h.PID && now.Host == h.Host
}

// rests gives the reason why there is no run of a session to stop.
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

// onward decides how to continue with a session that no process drives. A server continues by itself, or not at
// all.
func (t *Table) onward(id string) string {
	if t.Server != "" {
		return "see it with: " + words.Command(t.Server, "logs", id)
	}
	return "continue with: " + words.Command("", "resume", id)
}

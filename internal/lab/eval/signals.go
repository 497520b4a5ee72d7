package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Signal is what the log of a session says of how it was received. Each is a fact in the log; nothing
// is read out of words.
type Signal struct {
	Session     string
	Began       time.Time
	Ended       bool // a run has
	Undone      bool // the conversation or files were taken back
	Denied      bool // a call was not allowed, by a person or as nobody answered, or one that would change something by anything but mode plan
	Interrupted bool // a person stopped it
	Failed      bool // a run ended for a reason other than being done or being stopped
	Rerun       bool // the same was asked again in a later session of the workspace
	Labels      map[string]string
	task        string // digest of the workspace and what was asked first
}

// Bad reports whether something speaks against what the session did.
func (s *Signal) Bad() bool { return s.Undone || s.Denied || s.Interrupted || s.Failed || s.Rerun }

// Accepted reports whether it ended and nothing does.
func (s *Signal) Accepted() bool { return s.Ended && !s.Bad() }

func (s *Signal) add(e event.Event) {
	switch b := e.Body.(type) {
	case event.Opened:
		s.Began, s.Labels, s.task = e.Time, b.Labels, b.Root
	case event.Said:
		if s.task != "" && len(s.task) != 2*sha256.Size && b.Leads() && b.Origin != event.OriginLead {
			sum := sha256.Sum256([]byte(s.task + "\n" + text.Flat(b.Parts.Text())))
			s.task = hex.EncodeToString(sum[:])
		}
	case event.Rewound, event.Restored:
		s.Undone = true
	case event.Judged:
		s.Denied = s.Denied || b.Action == tool.Deny && b.By != "mode "+string(tool.ModePlan) && !tool.ReadOnly(b.Effects)
	case event.Decided:
		s.Denied = s.Denied || !b.Allow && b.Rule == ""
	case event.Cancelled:
		s.Interrupted = s.Interrupted || b.Limit == ""
	case event.Stopped:
		s.Ended = true
		s.Failed = s.Failed || b.Reason != event.ReasonDone && b.Reason != event.ReasonCancelled
	}
}

// Signals folds the sessions of a store that began since a time, the oldest first. Those that work for
// another one are left out.
func Signals(ctx context.Context, sessions store.Store, since time.Time) ([]Signal, error) {
	list, err := sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Signal
	for _, info := range list {
		if info.Parent != "" || info.Created.Before(since) {
			continue
		}
		s := Signal{Session: info.ID}
		for e, err := range store.Events(ctx, sessions, info.ID) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", info.ID, err)
			}
			s.add(e)
		}
		out = append(out, s)
	}
	slices.SortStableFunc(out, func(a, b Signal) int { return a.Began.Compare(b.Began) })
	last := map[string]int{}
	for i := range out {
		if before, again := last[out[i].task]; again && len(out[i].task) == 2*sha256.Size {
			out[before].Rerun = true
		}
		last[out[i].task] = i
	}
	return out, nil
}

// Label is what a session of a canary is labelled with, and [WithChange] or [WithoutChange] its value.
func (p *Proposal) Label() string { return "learned." + p.ID }

// The values of a canary's label.
const (
	WithChange    = "with"
	WithoutChange = "without"
)

// Watch counts the sessions of a canary, and rolls the change back if more fail with it than without
// it. It may be asked after every session: however often it is, a harmless change is rolled back with
// a probability of at most [Roll]. Signals are in the order in which their sessions began.
func (b *Book) Watch(id string, signals []Signal) (Entry, error) {
	p, err := b.Proposal(id)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Step: Watched, Proposal: id, Share: p.Share}
	for i := range signals {
		s := &signals[i]
		with := s.Labels[p.Label()] == WithChange
		if !s.Ended || !with && s.Labels[p.Label()] != WithoutChange {
			continue
		}
		e.Arms.count(with, s.Bad())
		if s.Bad() {
			e.Evidence = max(e.Evidence, stats.Rising(e.Arms.WithFailed, e.Arms.WithFailed+e.Arms.WithoutFailed, p.Share))
		}
	}
	if e.Why = e.Arms.text(); e.Evidence >= 1/Roll {
		e.Step = RolledBack
		e.Why += ": more than chance"
	}
	return b.next(e), nil
}

func (a *Arms) count(with, failed bool) {
	switch {
	case with && failed:
		a.WithFailed++
	case failed:
		a.WithoutFailed++
	}
	if with {
		a.With++
	} else {
		a.Without++
	}
}

func (a *Arms) text() string {
	return strings.Join([]string{
		fmt.Sprintf("%d of %s with it failed", a.WithFailed, text.Count(a.With, "session")),
		fmt.Sprintf("%d of %d without it", a.WithoutFailed, a.Without),
	}, ", ")
}

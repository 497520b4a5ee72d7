package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/lab/stats"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// Signal is how a session was received, according to its log. Each is a fact in the log; nothing is derived
// from words.
type Signal struct {
	Session     string
	Began       time.Time
	Ended       bool    // a run has
	Undone      bool    // the conversation or files were rewound
	Denied      bool    // a call was denied, by a person or as no answer came, or a changing call by anything other than mode plan
	Interrupted bool    // a person stopped it
	Failed      bool    // a run ended for a reason other than being done or being stopped
	Unproven    bool    // the last command that checks the work had failed when it ended
	Reverted    bool    // one of its commits was reverted later
	Rerun       bool    // the same task came again in a later session of the workspace
	Cost        float64 // US dollars, including subagents
	Tokens      int     // including subagents
	Labels      map[string]string
	task        string // digest of the workspace and the first message
	root        string
	commits     []string       // the commits that it made, by git's abbreviations
	quiet       [][2]time.Time // when such calls ran that did not print their commit
	state       loop.State
	fold        transcript.Fold
}

// Bad reports whether a signal is against the session's work.
func (s *Signal) Bad() bool {
	return s.Undone || s.Denied || s.Interrupted || s.Failed || s.Unproven || s.Reverted || s.Rerun
}

// Accepted reports whether it ended without a bad signal.
func (s *Signal) Accepted() bool { return s.Ended && !s.Bad() }

// made matches git's message about a commit that it makes.
var made = regexp.MustCompile(`(?m)^\[[^\]\n]* ([0-9a-f]{7,64})\] `)

func (s *Signal) add(e event.Event) {
	_ = s.state.Apply(e) // an event that can't be folded says nothing about checks and costs
	for _, item := range s.fold.Apply(e) {
		switch i := item.(type) {
		case *transcript.Said:
			if s.task != "" && len(s.task) != 2*sha256.Size && i.Origin.Leads() && !i.Steered && i.Origin != event.OriginLead {
				sum := sha256.Sum256([]byte(s.task + "\n" + text.Flat(i.Parts.Text())))
				s.task = hex.EncodeToString(sum[:])
			}
		case *transcript.Question:
			s.Denied = s.Denied || i.Answer != nil && !i.Answer.Allow && i.Answer.Rule == ""
		case *transcript.Call:
			s.called(e, i)
		case *transcript.Note:
			switch b := i.Of.(type) {
			case event.Opened:
				s.Began, s.Labels, s.task, s.root = e.Time, b.Labels, b.Root, b.Root
			case event.Rewound, event.Restored:
				s.Undone = true
			case event.Cancelled:
				s.Interrupted = s.Interrupted || b.Limit == ""
			}
		case *transcript.Stop:
			s.Ended, s.Unproven = true, false
			for _, ran := range s.state.Work.Ran { // the last one counts
				if ran.Check {
					s.Unproven = ran.Failed
				}
			}
			s.Failed = s.Failed || i.Stopped.Reason != event.ReasonDone && i.Stopped.Reason != event.ReasonCancelled
		}
	}
}

// called adds what an event did to a call.
func (s *Signal) called(e event.Event, c *transcript.Call) {
	switch c.State {
	case transcript.Judged:
		s.Denied = s.Denied || c.Judged.Action == tool.Deny && c.Judged.By != "mode "+string(tool.ModePlan) && !tool.ReadOnly(c.Effects())
	case transcript.Over:
		commits := slices.ContainsFunc(c.Effects(), func(effect tool.Effect) bool {
			return effect.Kind == tool.Execute && slices.Contains(strings.Fields(effect.Text), "commit")
		})
		if !commits || c.Started.IsZero() {
			return
		}
		printed := made.FindAllStringSubmatch(c.Ended.Parts.Text(), -1)
		for _, m := range printed {
			s.commits = append(s.commits, m[1])
		}
		if len(printed) == 0 {
			s.quiet = append(s.quiet, [2]time.Time{c.Started.Truncate(time.Second), e.Time})
		}
	}
}

// Signals folds the sessions of a store that began since a time, oldest first. Subagents are omitted. Label, if
// it is not empty, is one that they must have.
func Signals(ctx context.Context, sessions store.Store, since time.Time, label string) ([]Signal, error) {
	list, err := sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Signal
	for _, info := range list {
		if info.Parent != "" || info.Created.Before(since) || label != "" && info.Labels[label] == "" {
			continue
		}
		s := Signal{Session: info.ID}
		for e, err := range store.Events(ctx, sessions, info.ID) {
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", info.ID, err)
			}
			s.add(e)
		}
		total := s.state.Total
		s.Cost, s.Tokens, s.state, s.fold = total.Cost, total.Usage.Prompt()+total.Usage.Output, loop.State{}, transcript.Fold{}
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
	return out, reverted(ctx, out)
}

// reverted marks the sessions with a commit that was reverted later, according to the message of the revert.
func reverted(ctx context.Context, signals []Signal) error {
	reverts, commits := map[string]string{}, map[string]string{} // by repository
	log := func(root string, of map[string]string, args ...string) string {
		if _, known := of[root]; !known {
			// A repository that is gone, or no longer one, says nothing.
			out, _, _ := sandbox.Git(ctx, root, nil, append([]string{
				"-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "log", "--all", "--no-ext-diff", "--max-count=10000",
			}, args...)...)
			of[root] = string(out)
		}
		return of[root]
	}
	for i := range signals {
		s := &signals[i]
		if len(s.commits)+len(s.quiet) == 0 {
			continue
		}
		text := log(s.root, reverts, "--fixed-strings", "--grep", revertOf, "--format=%B")
		if text != "" && len(s.quiet) > 0 {
			s.found(log(s.root, commits, "--format=%H %ct"))
		}
		s.Reverted = slices.ContainsFunc(s.commits, func(commit string) bool { return strings.Contains(text, revertOf+commit) })
	}
	return ctx.Err()
}

// found adds the commits that were made while a call that committed printed none, as with git commit -q. Each line
// of the list is a commit and its time.
func (s *Signal) found(list string) {
	for line := range strings.Lines(list) {
		commit, at, _ := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseInt(at, 10, 64)
		made := time.Unix(seconds, 0)
		if err == nil && slices.ContainsFunc(s.quiet, func(q [2]time.Time) bool { return !made.Before(q[0]) && !made.After(q[1]) }) {
			s.commits = append(s.commits, commit)
		}
	}
}

// revertOf is the beginning of git's line in a revert that names the commit.
const revertOf = "This reverts commit "

// Label returns the label of a canary's sessions, whose value is [WithChange] or [WithoutChange].
func (p *Proposal) Label() string { return "learned." + p.ID }

// The values of a canary's label.
const (
	WithChange    = "with"
	WithoutChange = "without"
)

// Watch counts the sessions of a canary, and rolls the change back if more fail with it than without it. It may
// be called after every session: however often it is, a harmless change is rolled back with a probability of at
// most [Roll]. Signals are in the order in which their sessions began.
func (b *Book) Watch(id string, signals []Signal) (Entry, error) {
	p, err := b.Proposal(id)
	if err != nil {
		return Entry{}, err
	}
	e := Entry{Step: Watched, Proposal: id, Share: p.Share}
	var before spent
	for i := range signals {
		s := &signals[i]
		with := s.Labels[p.Label()] == WithChange
		if !s.Ended || !with && s.Labels[p.Label()] != WithoutChange {
			continue
		}
		bad, costly := s.Bad(), before.dear(s)
		before.dollars, before.tokens = append(before.dollars, s.Cost), append(before.tokens, float64(s.Tokens))
		if e.Arms.count(with, bad, costly); bad || costly {
			e.Evidence = max(e.Evidence, e.Arms.harm(p.Share))
		}
	}
	if e.Why = e.Arms.text(); e.Evidence >= 1/Roll {
		e.Step = RolledBack
		e.Why += ": more than chance"
	}
	return b.next(e), nil
}

// Limits above which a session counts as expensive: a multiple of the median of those before it, if there are
// enough of them. That median includes both kinds of sessions, so a harmless change makes none more expensive.
const (
	dearTimes  = 2
	leastCosts = 5
)

// spent is the cost of sessions. Tokens count where they have no price.
type spent struct{ dollars, tokens []float64 }

func (b spent) dear(s *Signal) bool {
	if len(b.dollars) < leastCosts {
		return false
	}
	if usual := stats.Median(b.dollars); usual > 0 {
		return s.Cost > dearTimes*usual
	}
	usual := stats.Median(b.tokens)
	return usual > 0 && float64(s.Tokens) > dearTimes*usual
}

// harm returns how strongly the counts speak against the change: the mean of the evidence from failures and
// from costs. Each is at most 1 on average if the change does no harm, so their mean is too.
func (a *Arms) harm(share float64) float64 {
	return (stats.Rising(a.WithFailed, a.WithFailed+a.WithoutFailed, share) + stats.Rising(a.WithDear, a.WithDear+a.WithoutDear, share)) / 2
}

func (a *Arms) count(with, failed, dear bool) {
	one := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	if with {
		a.With, a.WithFailed, a.WithDear = a.With+1, a.WithFailed+one(failed), a.WithDear+one(dear)
	} else {
		a.Without, a.WithoutFailed, a.WithoutDear = a.Without+1, a.WithoutFailed+one(failed), a.WithoutDear+one(dear)
	}
}

func (a *Arms) text() string {
	says := fmt.Sprintf("%d of %s with it failed, %d of %d without it", a.WithFailed, text.Count(a.With, "session"), a.WithoutFailed, a.Without)
	if a.WithDear+a.WithoutDear > 0 {
		says += fmt.Sprintf("; %d with it and %d without it cost more than twice what is usual", a.WithDear, a.WithoutDear)
	}
	return says
}

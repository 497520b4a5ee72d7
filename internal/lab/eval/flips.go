package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/inspan/inspan/store"
)

// Flip is a task that the two sides pass differently often.
type Flip struct {
	Task      string   `json:"task"`
	Base      Tally    `json:"base"`
	Candidate Tally    `json:"candidate"`
	Won       bool     `json:"won"` // by the candidate
	Parting   *Parting `json:"parting,omitempty"`
	Why       string   `json:"why,omitempty"` // there is no parting
}

// Tally is how often a task was passed, and one of its trials: the first with an outcome that the other side
// lacks.
type Tally struct {
	Passed  int    `json:"passed"`
	Tries   int    `json:"tries"`
	Outcome string `json:"outcome"` // of that trial
	Reason  string `json:"reason,omitempty"`
	Session string `json:"session,omitempty"`
}

// flips returns the pairs that differ, largest differences first.
func flips(p pairs) []Flip {
	var out []Flip
	for _, t := range p.list {
		if t.base.share() == t.candidate.share() {
			continue
		}
		won := t.candidate.share() > t.base.share()
		out = append(out, Flip{
			Task: t.task, Won: won, Base: t.base.shown(won), Candidate: t.candidate.shown(!won),
		})
	}
	size := func(f Flip) float64 {
		return math.Abs(float64(f.Candidate.Passed)/float64(f.Candidate.Tries) - float64(f.Base.Passed)/float64(f.Base.Tries))
	}
	slices.SortStableFunc(out, func(a, b Flip) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), strings.Compare(a.Task, b.Task))
	})
	return out
}

// shown returns a failed trial, or a passed one.
func (t *tally) shown(failed bool) Tally {
	out := Tally{Passed: t.passed, Tries: len(t.trials)}
	for _, trial := range t.trials {
		if (trial.Outcome == Failed) == failed {
			out.Outcome, out.Reason, out.Session = string(trial.Outcome), trial.Reason, trial.Session
			break
		}
	}
	return out
}

// Part finds the first event where the two sessions of each flip differ. A missing session is not an error.
func (c *Comparison) Part(ctx context.Context, sessions store.Store) error {
	for i := range c.Flips {
		f := &c.Flips[i]
		if f.Base.Session == "" || f.Candidate.Session == "" {
			f.Why = "one of the trials has no session"
			continue
		}
		d, err := Diff(ctx, sessions, f.Base.Session, f.Candidate.Session)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Why = "one of the sessions is gone"
		case err != nil:
			return fmt.Errorf("task %s: %w", f.Task, err)
		case d.Parting == nil:
			f.Why = "the sessions do the same"
		default:
			f.Parting = d.Parting
		}
	}
	return nil
}

package cost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Question is what to explain.
type Question struct {
	Session string    // id of one, or a unique part of it: with all that have worked for it; empty: all
	Day     time.Time // only this day of UTC; zero: any
	Since   time.Time // only from this day of UTC on; zero: any
	By      string    // one of Explanations
}

// Report is where every token of the bills went.
type Report struct {
	By        string   `json:"by"`
	Rows      []Row    `json:"rows"`
	Total     Row      `json:"total"` // which the rows add up to
	Costliest []Costly `json:"costliest"`
}

// Costly is one cause, and what would have avoided its costs.
type Costly struct {
	Cause
	Session string `json:"session"`
	Sent    int    `json:"sent,omitempty"` // requests that carried it, if it is a part of prompts
	Row
	Advice string `json:"advice,omitempty"`
}

// Line is the amount, the cause and the advice in a line that can go to a terminal. What had no
// price is told in tokens.
func (c Costly) Line() string {
	amount := text.Thousands(c.Usage.Prompt() + c.Usage.Output)
	if c.Dollars > 0 {
		amount = words.Dollars(c.Dollars.Dollars())
	}
	line := fmt.Sprintf("%8s  %s", amount, words.OneLine(c.Key, 100))
	if c.Advice != "" {
		line += ": " + c.Advice
	}
	return line
}

// mostCostly is how many of the costliest causes a report names.
const mostCostly = 10

// Explanations lists what can be explained by.
func Explanations() []string { return []string{Causes, "tool", "model", "session", "day"} }

// Explain tells where every token of the bills went. In a report on one session, its subagents are
// a cause each, with all that they have cost; else each session is explained by itself. A session
// that can't be read to its end is explained as far as it goes, and named by warn.
func Explain(ctx context.Context, sessions store.Store, q Question, warn func(string)) (Report, error) {
	if !slices.Contains(Explanations(), q.By) {
		return Report{}, fmt.Errorf("explain by %q: none of %s", q.By, strings.Join(Explanations(), ", "))
	}
	var tallies []Tally
	var err error
	if q.Session == "" {
		tallies, err = Spent(ctx, sessions, Spending{Since: later(q.Since, q.Day)}, warn)
	} else {
		tallies, err = tree(ctx, sessions, q.Session, warn)
	}
	if err != nil {
		return Report{}, err
	}
	tallies = slices.DeleteFunc(tallies, func(t Tally) bool {
		return !q.Day.IsZero() && t.Day != q.Day.UTC().Format(time.DateOnly) || t.Day < Spending{Since: q.Since}.since()
	})
	rows, err := Group(tallies, q.By)
	return Report{By: q.By, Rows: append([]Row{}, rows...), Total: Sum(tallies), Costliest: costliest(tallies)}, err
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// tree sums up a session and those that have worked for it. Of a child whose log is gone it counts
// what the log above says that it has used up.
func tree(ctx context.Context, sessions store.Store, session string, warn func(string)) ([]Tally, error) {
	top, err := store.Resolve(ctx, sessions, session)
	if err != nil {
		return nil, err
	}
	ids, err := sessions.IDs(ctx)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !store.InFamily(top, id) })
	slices.Sort(ids) // parents come before their children
	kinds := map[string]string{}
	var all []Tally
	for _, id := range ids {
		r := NewRecorder(id)
		if err := r.read(store.Events(ctx, sessions, id)); err != nil {
			warn(err.Error())
		}
		of := r.Tallies()
		if id != top {
			for i := range of {
				of[i].child(cmp.Or(kinds[id], id))
			}
		}
		all = append(all, of...)
		for child, kind := range r.children {
			kinds[child] = kind
		}
		for child, gone := range r.returned {
			if !slices.Contains(ids, child) {
				all = append(all, gone...)
			}
		}
	}
	return all, ctx.Err()
}

// child makes all parts of a tally those of a child.
func (t *Tally) child(name string) {
	p := Part{Cause: Cause{Kind: Child, Name: name}, Usage: t.All.Usage, Dollars: t.All.Dollars, Bills: t.All.Replies}
	t.Parts = []Part{p}
}

// costliest are the causes that have cost most, each in one session, all results of a call
// together. Causes without a price count by their tokens, below all that have one.
func costliest(tallies []Tally) []Costly {
	type key struct {
		session string
		cause   Cause
	}
	all := map[key]*Costly{}
	for _, t := range tallies {
		for _, p := range t.Parts {
			k := key{t.Session, p.Cause.first()}
			if all[k] == nil {
				all[k] = &Costly{Cause: k.cause, Session: t.Session}
			}
			all[k].Sent = max(all[k].Sent, p.Sent)
			all[k].merge(p.row())
		}
	}
	out := []Costly{}
	for _, c := range all {
		c.Key, c.Advice = c.words(), c.advice()
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b Costly) int {
		return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Session, b.Session),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Digest, b.Digest))
	})
	return out[:min(mostCostly, len(out))]
}

// words say what it is, and how often it was sent.
func (c Costly) words() string {
	what := strings.TrimSpace(c.String() + " " + c.Of)
	if c.Sent > 1 {
		return fmt.Sprintf("%s, sent %d times", what, c.Sent)
	}
	return what
}

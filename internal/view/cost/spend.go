package cost

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

// Question is the question to explain.
type Question struct {
	Session string    // id of one session with its subagents, or a unique part of it; empty means all
	Day     time.Time // only this day, by UTC; zero means any
	Since   time.Time // from this day on, by UTC; zero means any
	By      string    // one of Explanations
}

// Report says where every token of the bills went.
type Report struct {
	By        string      `json:"by"`
	Rows      []Row       `json:"rows"`
	Total     Row         `json:"total"` // the sum of the rows
	Costliest []CostCause `json:"costliest"`
}

// Costly is one cause, and a way to avoid its cost.
type CostCause struct {
	Cause
	Session string `json:"session"`
	Sent    int    `json:"sent,omitempty"` // requests that carried it, if it is part of prompts
	Row
	Advice string `json:"advice,omitempty"`
}

// Line returns the amount, the cause and the advice in a line for a terminal. Costs of unknown price are in
// tokens.
func (c CostCause) Line() string {
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

// Explanations returns the possible groupings of an explanation.
func Explanations() []string { return []string{Causes, "tool", "model", "session", "day"} }

// Explain says where every token of the bills went. In a report on one session, each subagent is a cause with
// its whole cost; otherwise each session is explained separately. A session that can't be read to its end is
// explained up to there, and named by warn.
func Explain(ctx context.Context, sessions store.Store, q Question, warn func(string)) (Report, error) {
	if !slices.Contains(Explanations(), q.By) {
		return Report{}, fmt.Errorf("explain by %q: none of %s", q.By, strings.Join(Explanations(), ", "))
	}
	var tallies []Tally
	var err error
	if q.Session == "" {
		since := q.Since
		if q.Day.After(since) {
			since = q.Day
		}
		tallies, err = Spent(ctx, sessions, Spending{Since: since}, warn)
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

// tree sums up a session and the sessions that worked for it. If the log of a child is gone, it uses the
// child's report in its parent's log.
func tree(ctx context.Context, sessions store.Store, session string, warn func(string)) ([]Tally, error) {
	top, err := store.Resolve(ctx, sessions, session)
	if err != nil {
		return nil, err
	}
	ids, err := sessions.IDs(ctx)
	if err != nil {
		return nil, err
	}
	ids = slices.DeleteFunc(ids, func(id string) bool { return !kin.In(top, id) })
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

// child attributes all parts of a tally to a child.
func (t *Tally) child(name string) {
	p := Part{Cause: Cause{Kind: Child, Name: name}, Usage: t.All.Usage, Dollars: t.All.Dollars, Bills: t.All.Replies}
	t.Parts = []Part{p}
}

// costliest returns the causes that cost most, for each session separately, with all results of a call
// together. Causes of unknown price come last, by their tokens.
func costliest(tallies []Tally) []CostCause {
	type key struct {
		session string
		cause   Cause
	}
	all := map[key]*CostCause{}
	for _, t := range tallies {
		for _, p := range t.Parts {
			k := key{t.Session, p.Cause.first()}
			if all[k] == nil {
				all[k] = &CostCause{Cause: k.cause, Session: t.Session}
			}
			all[k].Sent = max(all[k].Sent, p.Sent)
			all[k].merge(p.row())
		}
	}
	out := []CostCause{}
	for _, c := range all {
		c.Key, c.Advice = c.words(), c.advice()
		out = append(out, *c)
	}
	slices.SortStableFunc(out, func(a, b CostCause) int {
		return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.tokens(), a.tokens()), cmp.Compare(a.Session, b.Session),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Digest, b.Digest))
	})
	return out[:min(mostCostly, len(out))]
}

// words describes the cause, and how often it was sent.
func (c CostCause) words() string {
	what := strings.TrimSpace(c.String() + " " + c.Of)
	if c.Sent > 1 {
		return fmt.Sprintf("%s, sent %d times", what, c.Sent)
	}
	return what
}

package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Row is what bills, or parts of bills, that belong together have cost.
type Row struct {
	Key       string    `json:"key"`
	Replies   int       `json:"replies"` // and what else was paid for; a reply that has several causes counts once, where its output does
	Usage     llm.Usage `json:"usage"`
	Dollars   Money     `json:"dollars"`
	Unpriced  int       `json:"unpriced,omitempty"`  // replies whose price was not known
	Estimated int       `json:"estimated,omitempty"` // replies whose tokens were estimated
}

// Tally is what a session has spent with one route on one day of UTC.
type Tally struct {
	Session, Parent string
	Day             string // such as 2026-11-21
	Route           string // that answered, or judged; "(calls)" for what calls have spent
	All             Row
	Tools           []Row  // parts of All by tool; what is about none by its kind, in parentheses
	Parts           []Part // of All, by cause; nil if the tally is from an index
}

// Groupings lists what can be grouped by.
func Groupings() []string { return []string{"session", "day", "model", "tool", "agent"} }

// Causes is the grouping of [Group] by what has caused the costs. Tallies from an index lack it.
const Causes = "cause"

// Group sums tallies up by one of Groupings, or by Causes: days in order, everything else by
// what it cost, the dearest first, and in tokens where that is the same. Days are those of UTC. An agent is the
// session a person started, or one that was spawned by another, "PARENT > SESSION".
func Group(tallies []Tally, by string) ([]Row, error) {
	if by != Causes && !slices.Contains(Groupings(), by) {
		return nil, fmt.Errorf("group by %q: none of %s", by, strings.Join(Groupings(), ", "))
	}
	rows := map[string]*Row{}
	add := func(key string, of Row) {
		if rows[key] == nil {
			rows[key] = &Row{Key: key}
		}
		rows[key].merge(of)
	}
	for _, t := range tallies {
		switch by {
		case "tool":
			for _, r := range t.Tools {
				add(r.Key, r)
			}
		case Causes:
			for _, p := range t.Parts {
				add(p.Cause.String(), p.row())
			}
		default:
			add(t.key(by), t.All)
		}
	}
	var out []Row
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, *rows[key])
	}
	if by != "day" {
		slices.SortStableFunc(out, func(a, b Row) int {
			return cmp.Or(cmp.Compare(b.Dollars, a.Dollars), cmp.Compare(b.tokens(), a.tokens()))
		})
	}
	return out, nil
}

// Sum is the row of all tallies.
func Sum(tallies []Tally) Row {
	r := Row{Key: "total"}
	for _, t := range tallies {
		r.merge(t.All)
	}
	return r
}

// key is the row that a whole tally belongs to.
func (t Tally) key(by string) string {
	switch by {
	case "day":
		return t.Day
	case "model":
		return t.Route
	case "agent":
		if t.Parent != "" {
			return t.Parent + " > " + t.Session
		}
	}
	return t.Session
}

func (r *Row) merge(of Row) {
	r.Replies += of.Replies
	r.Dollars += of.Dollars
	r.Usage = r.Usage.Add(of.Usage)
	r.Unpriced += of.Unpriced
	r.Estimated += of.Estimated
}

// add adds one bill.
func (r *Row) add(used llm.Usage, dollars Money, unpriced bool) {
	r.Replies++
	r.Usage = r.Usage.Add(used)
	r.Dollars += dollars
	if unpriced {
		r.Unpriced++
	}
	if used.Estimated {
		r.Estimated++
	}
}

// tokens are those of prompts and replies.
func (r Row) tokens() int { return r.Usage.Prompt() + r.Usage.Output }

// row is the part as a row.
func (p Part) row() Row {
	return Row{Key: p.Cause.String(), Replies: p.Bills, Usage: p.Usage, Dollars: p.Dollars}
}

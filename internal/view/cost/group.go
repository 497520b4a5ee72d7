package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Row is the cost of a group of bills, or of parts of bills.
type Row struct {
	Key       string    `json:"key"`
	Replies   int       `json:"replies"` // including other bills; a reply with several causes counts once, for the cause of its output
	Usage     llm.Usage `json:"usage"`
	Dollars   Money     `json:"dollars"`
	Unpriced  int       `json:"unpriced,omitempty"`  // replies of unknown price
	Estimated int       `json:"estimated,omitempty"` // replies with estimated tokens
}

// Tally is the cost of a session on one route in one day, by UTC.
type Tally struct {
	Session, Parent string
	Day             string // such as 2026-11-21
	Route           string // route that answered, or judged; "(calls)" for the cost of calls
	All             Row
	Tools           []Row  // parts of All by tool; parts without a tool by kind, in parentheses
	Parts           []Part // of All, by cause; nil if the tally comes from an index
}

// Groupings returns the possible groupings.
func Groupings() []string { return []string{"session", "day", "model", "tool", "agent"} }

// Causes is the grouping of [Group] by cause. Tallies from an index lack it.
const Causes = "cause"

// Group sums up tallies by one of Groupings, or by Causes: days in order, everything else by cost, the most
// expensive first, and by tokens if costs are equal. Days are in UTC. An agent is a session started by a
// person, or one spawned by another, "PARENT > SESSION".
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

// Sum returns the total of all tallies.
func Sum(tallies []Tally) Row {
	r := Row{Key: "total"}
	for _, t := range tallies {
		r.merge(t.All)
	}
	return r
}

// key returns the row that a whole tally belongs to.
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

// tokens returns the tokens of prompts and replies.
func (r Row) tokens() int { return r.Usage.Prompt() + r.Usage.Output }

// row returns the part as a row.
func (p Part) row() Row {
	return Row{Key: p.Cause.String(), Replies: p.Bills, Usage: p.Usage, Dollars: p.Dollars}
}

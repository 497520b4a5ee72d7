package cost

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
)

// Row is what entries that belong together have cost.
type Row struct {
	Key       string    `json:"key"`
	Replies   float64   `json:"replies"` // and what else was paid for; shares where one belongs to several rows
	Usage     llm.Usage `json:"usage"`
	Dollars   float64   `json:"dollars"`
	Unpriced  int       `json:"unpriced,omitempty"`  // replies whose price was not known
	Estimated int       `json:"estimated,omitempty"` // replies whose tokens were estimated
}

// Tally is what a session has spent with one route on one day of UTC.
type Tally struct {
	Session, Parent string
	Day             string // such as 2026-11-21
	Route           string
	All             Row
	Tools           []Row // shares of All by tool
}

// Tallies sums up entries, in no order.
func Tallies(entries []Entry) []Tally {
	type key struct{ session, day, route string }
	at, out := map[key]int{}, []Tally(nil)
	for _, e := range entries {
		day := e.Time.UTC().Format(time.DateOnly)
		k := key{e.Session, day, e.Route}
		i, there := at[k]
		if !there {
			i, at[k] = len(out), len(out)
			out = append(out, Tally{Session: e.Session, Parent: e.Parent, Day: day, Route: e.Route})
		}
		out[i].add(e)
	}
	return out
}

func (t *Tally) add(e Entry) {
	t.All.add(e, 1)
	for _, name := range slices.Sorted(maps.Keys(e.Tools)) {
		i := slices.IndexFunc(t.Tools, func(r Row) bool { return r.Key == name })
		if i < 0 {
			i, t.Tools = len(t.Tools), append(t.Tools, Row{Key: name})
		}
		t.Tools[i].add(e, e.Tools[name])
	}
}

// Groupings lists what can be grouped by.
func Groupings() []string { return []string{"session", "day", "model", "tool", "agent"} }

// Group sums tallies up by one of Groupings: days in order, everything else by
// what it cost, the dearest first. Days are those of UTC. An agent is the
// session a person started, or one that was spawned by another, "PARENT > SESSION".
func Group(tallies []Tally, by string) ([]Row, error) {
	if !slices.Contains(Groupings(), by) {
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
		if by != "tool" {
			add(t.key(by), t.All)
			continue
		}
		for _, r := range t.Tools {
			add(r.Key, r)
		}
	}
	var out []Row
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		out = append(out, *rows[key])
	}
	if by != "day" {
		slices.SortStableFunc(out, func(a, b Row) int { return cmp.Compare(b.Dollars, a.Dollars) })
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

// key is the row that a tally belongs to, unless it is grouped by tool.
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

func (r *Row) add(e Entry, share float64) {
	r.Replies += share
	r.Dollars += e.Dollars * share
	r.Usage = r.Usage.Add(part(e.Usage, share))
	if e.Unpriced {
		r.Unpriced++
	}
	if e.Usage.Estimated {
		r.Estimated++
	}
}

// part is a share of a usage, in whole tokens.
func part(u llm.Usage, share float64) llm.Usage {
	if share == 1 {
		return u
	}
	of := func(n int) int { return int(float64(n)*share + 0.5) }
	return llm.Usage{
		Input: of(u.Input), CacheRead: of(u.CacheRead), CacheWrite: of(u.CacheWrite),
		Output: of(u.Output), Reasoning: of(u.Reasoning), Estimated: u.Estimated,
	}
}

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

// Groupings lists what entries can be grouped by.
func Groupings() []string { return []string{"session", "day", "model", "tool", "agent"} }

// Group sums entries up by one of Groupings: days in order, everything else by
// what it cost, the dearest first. Days are those of UTC. An agent is the
// session a person started, or one that was spawned by another, "PARENT > SESSION".
func Group(entries []Entry, by string) ([]Row, error) {
	if !slices.Contains(Groupings(), by) {
		return nil, fmt.Errorf("group by %q: none of %s", by, strings.Join(Groupings(), ", "))
	}
	rows := map[string]*Row{}
	for _, e := range entries {
		for key, share := range e.keys(by) {
			if rows[key] == nil {
				rows[key] = &Row{Key: key}
			}
			rows[key].add(e, share)
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

// Sum is the row of all entries.
func Sum(entries []Entry) Row {
	r := Row{Key: "total"}
	for _, e := range entries {
		r.add(e, 1)
	}
	return r
}

// keys are the rows the entry belongs to, and how much of it.
func (e Entry) keys(by string) map[string]float64 {
	switch by {
	case "day":
		return map[string]float64{e.Time.UTC().Format(time.DateOnly): 1}
	case "model":
		return map[string]float64{e.Route: 1}
	case "tool":
		return e.Tools
	case "agent":
		if e.Parent != "" {
			return map[string]float64{e.Parent + " > " + e.Session: 1}
		}
	}
	return map[string]float64{e.Session: 1}
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

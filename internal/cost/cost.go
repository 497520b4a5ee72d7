// Package cost tells what sessions have cost, from their events alone: by
// session, day, model, tool or agent, and what they would have cost with other
// models. It changes nothing and asks nobody.
package cost

import (
	"iter"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Entry is one reply that was paid for.
type Entry struct {
	Session string
	Parent  string // session that spawned it; empty for one that a person started
	Time    time.Time
	Route   string // that answered
	Rule    string // of the router that chose it; empty without one
	// Tools holds, for each tool, its share of the results that the request
	// carried for the first time, by bytes; the shares add up to 1. A request
	// without new results has "(prompt)" alone.
	Tools    map[string]float64
	Usage    llm.Usage
	Dollars  float64
	Unpriced bool // the price was not known; Dollars is 0
}

// prompt stands for a request that answers a person, where tools are counted.
const prompt = "(prompt)"

// Entries returns the replies of one session's events. Events that a fork has
// copied from another session are that one's.
func Entries(session string, events iter.Seq2[event.Event, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		r := reader{session: session}
		for e, err := range events {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			entry, ok := r.read(e)
			if ok && !yield(entry, nil) {
				return
			}
		}
	}
}

// reader remembers what an entry needs of the events before it.
type reader struct {
	session, parent string
	rule            string
	names           map[string]string // of the tools called, by call
	fresh           map[string]int    // bytes of results since the last reply, by tool
}

func (r *reader) read(e event.Event) (Entry, bool) {
	switch b := e.Body.(type) {
	case event.Opened:
		r.parent = b.Parent
	case event.Routed:
		r.rule = b.Rule
	case event.Ended:
		if r.fresh == nil {
			r.fresh = map[string]int{}
		}
		r.fresh[r.names[b.Call]] += 1 + b.Parts.Bytes()
	case event.Replied:
		entry := Entry{
			Session: r.session, Parent: r.parent, Time: e.Time, Route: b.Route, Rule: r.rule, Tools: shares(r.fresh),
			Usage: b.Usage, Dollars: b.Cost, Unpriced: b.Unpriced,
		}
		r.replied(b)
		return entry, e.Session == r.session
	}
	return Entry{}, false
}

func (r *reader) replied(b event.Replied) {
	r.rule, r.fresh, r.names = "", nil, map[string]string{}
	for _, c := range b.Parts.Calls() {
		r.names[c.ID] = c.Name
	}
}

func shares(bytes map[string]int) map[string]float64 {
	if len(bytes) == 0 {
		return map[string]float64{prompt: 1}
	}
	all := 0
	for _, n := range bytes {
		all += n
	}
	out := map[string]float64{}
	for name, n := range bytes {
		out[name] = float64(n) / float64(all)
	}
	return out
}

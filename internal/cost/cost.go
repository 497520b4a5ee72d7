// Package cost sums up the cost of sessions from their events alone: by session,
// day, model, tool or agent, and with other models than those used. It changes
// nothing and contacts nobody.
package cost

import (
	"cmp"
	"iter"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
)

// Entry is something that was paid for: a reply, a summary, a review of a call, or
// what a call has spent.
type Entry struct {
	Session string
	Parent  string // session that spawned it; empty for one that a person started
	Time    time.Time
	Route   string // that answered, or judged; "(calls)" for what a call has spent
	Rule    string // of the router that chose it; empty without one
	// Tools holds, for each tool, its share of the results that the request
	// carried for the first time, by bytes; the shares add up to 1. A request
	// without new results has "(prompt)" alone, a summary "(summary)", and what was
	// paid for one call that call's.
	Tools    map[string]float64
	Usage    llm.Usage
	Dollars  float64
	Unpriced bool // the price was not known; Dollars is 0
}

// What stands where there is no tool, or no route.
const (
	prompt  = "(prompt)"  // a request that answers a person
	summary = "(summary)" // of a conversation, to shorten it
	refused = "(refused)" // an answer that a check has refused
	routing = "(routing)" // the question how hard a task is
	byCalls = "(calls)"
)

// Entries returns what one session's events say was paid for. Events that a fork has
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
		return r.paid(e, Entry{Route: b.Judge, Tools: whole(routing), Usage: b.Usage, Dollars: b.Cost})
	case event.Failed:
		return r.paid(e, Entry{Route: b.Route, Rule: r.rule, Tools: whole(refused), Usage: b.Usage, Dollars: b.Cost})
	case event.Ended:
		if r.fresh == nil {
			r.fresh = map[string]int{}
		}
		r.fresh[r.names[b.Call]] += 1 + b.Parts.Bytes()
		return r.paid(e, Entry{Route: byCalls, Tools: whole(r.names[b.Call]), Dollars: b.Cost})
	case event.Judged:
		by := cmp.Or(b.Route, strings.TrimPrefix(b.By, "reviewer ")) // as version 0.1 says it
		return r.paid(e, Entry{Route: by, Tools: whole(cmp.Or(b.Tool, r.names[b.Call])), Dollars: b.Cost})
	case event.Compacted:
		return r.paid(e, Entry{Route: b.Route, Tools: whole(summary), Usage: b.Usage, Dollars: b.Cost})
	case event.Kept:
		return r.paid(e, Entry{Route: summary, Tools: whole(summary), Usage: b.Usage, Dollars: b.Cost})
	case event.Replied:
		entry, _ := r.paid(e, Entry{Route: b.Route, Rule: r.rule, Tools: shares(r.fresh), Usage: b.Usage, Dollars: b.Cost, Unpriced: b.Unpriced})
		r.replied(b)
		return entry, e.Session == r.session
	}
	return Entry{}, false
}

// paid fills in where and when, and reports whether anything was spent by this session.
func (r *reader) paid(e event.Event, entry Entry) (Entry, bool) {
	entry.Session, entry.Parent, entry.Time = r.session, r.parent, e.Time
	return entry, e.Session == r.session && (entry.Dollars > 0 || entry.Usage != llm.Usage{})
}

func whole(name string) map[string]float64 { return map[string]float64{name: 1} }

func (r *reader) replied(b event.Replied) {
	r.rule, r.fresh, r.names = "", nil, map[string]string{}
	for _, c := range b.Parts.Calls() {
		r.names[c.ID] = c.Name
	}
}

func shares(bytes map[string]int) map[string]float64 {
	if len(bytes) == 0 {
		return whole(prompt)
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

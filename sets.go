package inspan

import (
	"encoding/json"
	"fmt"
	"slices"
	"sort"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/tool"
)

// Sets puts those of the questions together that are to be asked and answered as one: the calls that
// one call has made, if it has asked for some of them ahead. All other questions stay as they are, and so does the order.
func Sets(questions []Pending) []Pending {
	var out []Pending
	at := map[string]int{}
	for _, p := range questions {
		of := p.Parent
		if of == "" || p.Asks || !slices.ContainsFunc(questions, func(q Pending) bool { return q.Parent == of && q.Ahead && !q.Asks }) {
			out = append(out, p)
			continue
		}
		i, some := at[of]
		if !some {
			at[of] = len(out)
			out = append(out, p)
			continue
		}
		if len(out[i].Set) == 0 {
			out[i].Set = []Pending{out[i]}
		}
		out[i].Set = append(out[i].Set, p)
	}
	for _, i := range at {
		if len(out[i].Set) > 0 {
			out[i] = set(out[i].Set)
		}
	}
	return out
}

// set is the question about several calls.
func set(all []Pending) Pending {
	sort.Slice(all, func(i, j int) bool { return all[i].Question < all[j].Question })
	out := all[0]
	out.Set, out.Rules, out.Offers, out.Effects, out.Until = all, nil, nil, nil, soonest(all)
	seen := map[string]bool{}
	for _, p := range all {
		for _, e := range p.Effects {
			if key := effectKey(e); !seen[key] {
				seen[key] = true
				out.Effects = append(out.Effects, e)
			}
		}
	}
	return out
}

func effectKey(e tool.Effect) string {
	raw, _ := json.Marshal(e) // it holds nothing that can't be written
	return string(raw)
}

// Raised is the question as one to be raised in the session that this one works for, without its ID and
// the child. It is one of the first call alone if there is a Set.
func (p Pending) Raised() event.Raised {
	return event.Raised{
		Of: p.Question, Agent: p.Agent, Tool: p.Call.Name, Args: p.Call.Args, Effects: p.Effects, Reason: p.Reason, Preview: p.Preview,
		Rules: p.Rules, Offers: p.Offers, Until: p.Until,
	}
}

// Calls are the questions of a Set, each alone; nil if there is none.
func (p Pending) Calls() (out []event.Raised) {
	for _, one := range p.Set {
		out = append(out, one.Raised())
	}
	return out
}

// Name is what asks, in words of others: the tool, or how many calls do together, behind the subagent
// if one asks.
func (p Pending) Name() string {
	name := p.Call.Name
	if n := len(p.Set); n > 0 {
		name = fmt.Sprintf("a set of %d calls", n)
	}
	if p.Agent != "" {
		name = p.Agent + " › " + name
	}
	return name
}

// Answer is a decision as one on the question, and on those of the rest of its Set.
func (p Pending) Answer(d event.Decided) event.Decided {
	d.Call, d.Question, d.Also = p.Call.ID, p.Question, nil
	for i, w := range p.Set {
		if i > 0 {
			d.Also = append(d.Also, w.Question)
		}
	}
	return d
}

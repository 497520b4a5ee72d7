package inspan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/places"
)

var errSetScope = errors.New("calls that are asked about together can be allowed once or denied")

// Sets combines questions that are asked and answered together: nested calls with the same parent, if the parent
// requested some of them ahead. Other questions, and the order, stay as they are.
func Sets(questions []Pending) []Pending {
	var out []Pending
	byParent := map[string]int{} // index in out
	for _, p := range questions {
		parent := p.Parent
		ahead := func(q Pending) bool { return q.Parent == parent && q.RequestedAhead && !q.Asks }
		if parent == "" || p.Asks || !slices.ContainsFunc(questions, ahead) {
			out = append(out, p)
			continue
		}
		i, found := byParent[parent]
		if !found {
			byParent[parent] = len(out)
			out = append(out, p)
			continue
		}
		if len(out[i].Set) == 0 {
			out[i].Set = []Pending{out[i]}
		}
		out[i].Set = append(out[i].Set, p)
	}
	for _, i := range byParent {
		if len(out[i].Set) > 0 {
			out[i] = combine(out[i].Set)
		}
	}
	return out
}

// combine returns one question for several calls. It takes its name from the call that was requested first. Calls that
// a person must see first come first in the Set.
func combine(all []Pending) Pending {
	slices.SortFunc(all, func(a, b Pending) int { return cmp.Compare(a.Question, b.Question) })
	out := all[0]
	sort.SliceStable(all, func(i, j int) bool {
		return places.Worst(out.Root, all[i].Effects) && !places.Worst(out.Root, all[j].Effects)
	})
	out.Set, out.Rules, out.Offers, out.Effects, out.Until = all, nil, nil, nil, earliestUntil(all)
	seen := map[string]bool{}
	for _, p := range all {
		for _, e := range p.Effects {
			key, _ := json.Marshal(e) // an effect can always be encoded
			if !seen[string(key)] {
				seen[string(key)] = true
				out.Effects = append(out.Effects, e)
			}
		}
	}
	return out
}

// Raised returns the event that raises the question in the parent session, without its ID and Child. If there is a Set,
// it describes the first call only.
func (p Pending) Raised() event.Raised {
	return event.Raised{
		Of: p.Question, Agent: p.Agent, Tool: p.Call.Name, Args: p.Call.Args, Effects: p.Effects, Reason: p.Reason, Preview: p.Preview,
		Rules: p.Rules, Offers: p.Offers, Until: p.Until,
	}
}

// Calls returns the single questions of a Set as events, each with its ID; nil if there is no Set.
func (p Pending) Calls() (out []event.Raised) {
	for _, one := range p.Set {
		r := one.Raised()
		r.ID = one.ID()
		out = append(out, r)
	}
	return out
}

// Name describes who asks: the tool, or the number of calls in the Set. If a subagent asks, its name comes first.
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

// Answer addresses a decision to the question and, if there is a Set, to the rest of it. For a single call, it keeps
// Also.
func (p Pending) Answer(d event.Decided) event.Decided {
	if d.Call, d.Question = p.Call.ID, p.Question; len(p.Set) > 0 {
		d.Also = nil
	}
	for _, w := range p.Set {
		if w.Question != p.Question {
			d.Also = append(d.Also, w.Question)
		}
	}
	return d
}

// ID identifies the question for people and for [Status.Question]. It is the id of the call. For a Set, the number of
// the last call is added to the id of the first one, as in "call_1/2-5".
func (p Pending) ID() string {
	last := p
	for _, w := range p.Set {
		if w.Question > last.Question {
			last = w
		}
	}
	if len(p.Set) == 0 {
		return p.Call.ID
	}
	return p.Call.ID + "-" + strings.TrimPrefix(last.Call.ID, loop.NestedID(p.Parent, ""))
}

// Question returns the open question with this [Pending.ID], and whether there is one. The id of a single call in a
// Set works too. If a Set has changed since its id was shown, the id matches nothing, so no one approves calls that
// they have not seen.
func (st Status) Question(id string) (p Pending, open bool) {
	all := st.Questions()
	for _, p := range slices.Concat(all, Sets(all)) {
		if p.ID() == id {
			return p, true
		}
	}
	return Pending{}, false
}

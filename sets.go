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
	"github.com/inspan/inspan/tool"
)

var errTogether = errors.New("calls that are asked about together can be allowed once or denied")

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

// set is the question about several calls: the one that was asked for first names it, and those are shown
// first that a person must see first.
func set(all []Pending) Pending {
	slices.SortFunc(all, func(a, b Pending) int { return cmp.Compare(a.Question, b.Question) })
	out := all[0]
	sort.SliceStable(all, func(i, j int) bool {
		return places.Worst(out.Root, all[i].Effects) && !places.Worst(out.Root, all[j].Effects)
	})
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

// Calls are the questions of a Set, each alone, with its ID; nil if there is none.
func (p Pending) Calls() (out []event.Raised) {
	for _, one := range p.Set {
		r := one.Raised()
		r.ID = one.ID()
		out = append(out, r)
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

// Answer is a decision as one on the question, and on those of the rest of its Set. Of one on a call alone,
// Also stays.
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

// ID is what people call the question by, and what [Status.Question] finds it by: the id of its call.
// Of a Set it is that of the first call with the number of the last behind it, such as "call_1/2-5".
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
	return p.Call.ID + "-" + strings.TrimPrefix(last.Call.ID, loop.MadeBy(p.Parent, ""))
}

// Question is the open question with a [Pending.ID], and whether there is one. A call of a Set can be
// named alone too. The id of a Set that has grown or shrunk since names none: whoever says it has not been
// shown what is asked now.
func (st Status) Question(id string) (p Pending, open bool) {
	all := st.Questions()
	for _, p := range slices.Concat(all, Sets(all)) {
		if p.ID() == id {
			return p, true
		}
	}
	return Pending{}, false
}

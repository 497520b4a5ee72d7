package inspan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/drive"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Pending is a call that waits for a person. Answer it with event.Decided.
type Pending struct {
	Call llm.Call // the call as it will run
	// Question is the number of the event that asks. With the id of the call it identifies the question in
	// event.Decided, so an answer applies to this question only.
	Question   uint64
	Effects    []tool.Effect
	Waits      bool          // it waits for a decision
	IsQuestion bool          // the call asks the person something, and the decision is the answer
	Reason     string        // why a person is asked
	Preview    string        // the change that the call would make; may be empty
	Rules      []string      // the narrowest rules that would allow it from now on; if empty, it can only be allowed once
	Offers     []event.Offer // further permissions that can be granted with it for this session
	Until      time.Time     // when the question times out and the call is denied; zero means never
	Agent      string        // kind of the subagent that asks; empty if the session itself does
	// Parent is the call that made this one; empty if the model did, or if the question was raised. RequestedAhead means
	// that the parent requested it while an earlier call waits, see [tool.Tool].
	Parent         string
	RequestedAhead bool
	Root           string // the workspace of the session; empty if the question was raised
	// Set holds the single questions if the question is about several calls, see [Sets]. Calls that a person must see
	// first, such as calls that reach hosts, come first. Call, Reason and Preview belong to the call that was requested
	// first; Effects and Until cover all. Show the whole Set to the person, because one answer applies to all of it:
	// allow once, or deny.
	Set []Pending
}

// Question is a question that was raised, with its event number.
type Question = loop.Question

// PendingOf returns a raised question in the form of a waiting call. An event.Decided must name its Call.ID and Question.
func PendingOf(r Question) Pending {
	return Pending{
		Question: r.Seq,
		Call:     llm.Call{ID: r.ID, Name: r.Tool, Args: r.Args}, Effects: r.Effects, Waits: true, IsQuestion: drive.AsksPerson(r.Effects),
		Reason: r.Reason, Preview: r.Preview, Rules: r.Rules, Offers: r.Offers, Until: r.Until, Agent: cmp.Or(r.Agent, r.Child),
	}
}

// bindDecision adds the number of the question to a decision that names only its [Pending.ID].
func bindDecision(st *loop.State, d event.Decided) event.Decided {
	if d.Question > 0 {
		return d
	}
	if p, open := statusOf(st).Question(d.Call); open {
		return p.Answer(d)
	}
	return d
}

// answered reports whether d is about this question.
func (p Pending) answered(d event.Decided) bool {
	return d.OnCall(p.Call.ID, p.Parent, p.Question)
}

func pending(calls []loop.Call, root string) []Pending {
	var out []Pending
	for _, c := range calls {
		if c.Ended == nil {
			call := c.Call
			call.Name = cmp.Or(c.Tool, c.Name)
			out = append(out, Pending{
				Call: call, Question: c.WaitingSeq, Effects: c.Effects, Waits: c.Waits(), IsQuestion: drive.AsksPerson(c.Effects), Reason: c.Reason, Preview: c.Preview,
				Rules: c.Rules, Offers: c.Offers, Until: c.Until, Parent: c.Parent, RequestedAhead: c.RequestedAhead, Root: root,
			})
		}
	}
	return out
}

var errSetScope = errors.New("calls that are asked about together can be allowed once or denied")

// Sets combines questions that are asked and answered together: nested calls with the same parent, if the parent
// requested some of them ahead. Other questions, and the order, stay as they are.
func Sets(questions []Pending) []Pending {
	var out []Pending
	byParent := map[string]int{} // index in out
	for _, p := range questions {
		parent := p.Parent
		ahead := func(q Pending) bool { return q.Parent == parent && q.RequestedAhead && !q.IsQuestion }
		if parent == "" || p.IsQuestion || !slices.ContainsFunc(questions, ahead) {
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

package cost

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/router"
)

// Turn is a recorded request in the form that a router sees, and the tokens of its answer.
type Turn struct {
	Session  string
	Route    string // route that did answer
	Cold     bool   // the prompt does not continue the previous one
	Features router.Features
	Loop     bool // it continues with results of calls of the same run
	Usage    llm.Usage
	Dollars  float64 // its actual cost
	Unpriced bool
	At       time.Time
}

// Turns folds the events of one session, in order and from the start, and returns the requests and answers as
// the router sees them. Events that a fork copied are left out.
func Turns(session string, events iter.Seq2[event.Event, error], m *router.Model) ([]Turn, error) {
	var state loop.State
	var turns []Turn
	var asked llm.Request
	cold := true
	for e, err := range events {
		if err != nil {
			return turns, err
		}
		switch b := e.Body.(type) {
		case event.Asked:
			asked = state.Request()
		case event.Compacted, event.Pruned, event.Healed, event.Rewound:
			cold = true
		case event.Replied:
			if e.Session != session {
				break
			}
			turns = append(turns, Turn{
				Session: session, Route: b.Route, Cold: cold,
				Features: m.Features(asked), Loop: asked.Pin != "",
				Usage: b.Usage, Dollars: b.Cost, Unpriced: b.Unpriced, At: e.Time,
			})
			cold = false
		}
		if err := state.Apply(e); err != nil {
			return turns, fmt.Errorf("session %s: %w", session, err)
		}
	}
	return turns, nil
}

// Outcome is the cost of a strategy.
type Outcome struct {
	Strategy string  `json:"strategy"`
	Dollars  float64 `json:"dollars"`
	Turns    int     `json:"turns"`
	Local    int     `json:"local"`              // turns answered by a local model
	Unpriced int     `json:"unpriced,omitempty"` // turns of models with unknown prices
	Nobody   int     `json:"nobody,omitempty"`   // turns that no model could have answered
	Rules    []Share `json:"rules,omitempty"`    // what decided, the most frequent first
}

// Share is the part of one rule.
type Share struct {
	Rule    string  `json:"rule"`
	Turns   int     `json:"turns"`
	Cloud   int     `json:"cloud"` // turns that it sent to models that are not local
	Dollars float64 `json:"dollars"`
}

// Recorded returns the actual cost of the turns.
func Recorded(turns []Turn) Outcome {
	o := Outcome{Strategy: "as it was", Turns: len(turns)}
	for _, t := range turns {
		o.Dollars += t.Dollars
		if t.Unpriced {
			o.Unpriced++
		}
	}
	return o
}

// Suppose returns the cost of the turns, of one session after the other, with a router whose routes are always
// available. Every turn takes its recorded tokens, at the price of its day; a local model of unknown price is free.
// Cached tokens follow from who would have answered before, see [caches].
func Suppose(strategy string, turns []Turn, m *router.Model) Outcome {
	o := Outcome{Strategy: strategy, Turns: len(turns)}
	infos := map[string]router.Route{}
	for _, r := range m.Routes {
		infos[r.Name] = r
	}
	var c caches
	rule := ""
	shares := map[string]*Share{}
	for _, t := range turns {
		d := m.Decide(c.features(t), router.View{At: t.At})
		use := slices.Concat(d.Use, d.Reserve)
		if len(use) == 0 {
			o.Nobody++
			continue
		}
		r := infos[use[0]]
		if d.Rule != "pinned" {
			rule = d.Rule // the rule also counts for turns pinned by it
		}
		o.count(t, r, c.usage(t, r), share(shares, rule))
	}
	for _, s := range shares {
		o.Rules = append(o.Rules, *s)
	}
	slices.SortStableFunc(o.Rules, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Rule, b.Rule))
	})
	return o
}

func share(shares map[string]*Share, rule string) *Share {
	if shares[rule] == nil {
		shares[rule] = &Share{Rule: rule}
	}
	return shares[rule]
}

// count adds a turn that the route answers by the rule of s.
func (o *Outcome) count(t Turn, r router.Route, used llm.Usage, s *Share) {
	used.Tier = "" // another vendor's tier says nothing about this one
	dollars, known := r.Model.Info().Prices.Bill(t.At, used)
	o.Dollars += dollars
	s.Dollars += dollars
	s.Turns++
	if r.Local {
		o.Local++
	} else {
		s.Cloud++
	}
	if !known && !r.Local {
		o.Unpriced++
	}
}

// Warnings returns facts that a report of a router must not hide: a rule that sends everything to the cloud, and
// turns that no model could have answered.
func (o Outcome) Warnings() []string {
	var out []string
	for _, s := range o.Rules {
		switch {
		case s.Turns == o.Turns && s.Cloud == s.Turns:
			out = append(out, fmt.Sprintf("the rule %q sends all %d turns to the cloud: this is cloud only by another name", s.Rule, s.Turns))
		case o.Local == 0 && s.Cloud > 0:
			out = append(out, fmt.Sprintf("the rule %q sends %d of %d turns to the cloud, and no other rule keeps any", s.Rule, s.Cloud, o.Turns))
		}
	}
	if o.Nobody > 0 {
		out = append(out, fmt.Sprintf("%d of %d turns could have been answered by nobody: they hold secrets or do not fit", o.Nobody, o.Turns))
	}
	if o.Unpriced > 0 {
		out = append(out, fmt.Sprintf("the price of %d turns is not known; they count as nothing", o.Unpriced))
	}
	return out
}

// Package policy decides whether calls may happen: modes, rules over tools and
// their effects, sensitive places, and how verdicts combine. It is pure; it
// asks nobody and reads nothing.
package policy

import (
	"cmp"
	"context"
	"fmt"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/tool"
)

// Combine makes one verdict of several: deny beats ask beats allow, and of
// equals the first counts. If all abstain, or there are none, it asks.
func Combine(verdicts []tool.Verdict) tool.Verdict {
	best := tool.Verdict{}
	for _, v := range verdicts {
		if weight(v.Action) > weight(best.Action) {
			best = v
		}
	}
	if best.Action == tool.Abstain {
		return tool.Verdict{Action: tool.Ask, By: "default", Reason: "no rule allows it"}
	}
	return best
}

func weight(a tool.Action) int {
	switch a {
	case tool.Abstain:
		return 0
	case tool.Allow:
		return 1
	case tool.Ask:
		return 2
	}
	return 3 // Deny, and anything unknown: fail closed
}

// Policy is the judge that every call passes first: it looks at each effect
// alone and takes the strictest answer. In this order, the first that speaks
// decides an effect:
//
//  1. a rule that denies
//  2. the places that are never read or changed
//  3. a rule that asks
//  4. the mode, where it allows or denies
//  5. a rule that allows
//
// What is left asks.
type Policy struct {
	Map   places.Map
	Rules []Rule
}

// Judge implements [tool.Judge].
func (p Policy) Judge(_ context.Context, c *tool.Call, effects []tool.Effect) (tool.Verdict, error) {
	verdicts := []tool.Verdict{}
	for _, f := range p.Findings(c, effects) {
		verdicts = append(verdicts, f.Verdict)
	}
	return Combine(verdicts), nil
}

// Finding is the verdict on one effect.
type Finding struct {
	Effect  tool.Effect // zero for a call without effects
	Verdict tool.Verdict
	// Mode says that it is the mode that asks, which a rule, or whoever else
	// speaks for the person, can answer.
	Mode bool
	// Rule is the narrowest rule that would allow what asks. Empty: no rule
	// would be safe.
	Rule string
}

// Findings judges each effect of a call, in their order.
func (p Policy) Findings(c *tool.Call, effects []tool.Effect) []Finding {
	var out []Finding
	for _, s := range subjects(effects) {
		out = append(out, p.finding(c, s))
	}
	return out
}

// subjects are what is judged of a call, one for each effect.
func subjects(effects []tool.Effect) []subject {
	if len(effects) == 0 {
		return []subject{{pure: true}}
	}
	var out []subject
	command := (*tool.Effect)(nil)
	for i, e := range effects {
		if e.Kind == tool.Execute {
			command = &effects[i]
		}
		out = append(out, subject{Effect: e, command: command})
	}
	return out
}

// subject is one effect, and the command that has it if there is one.
type subject struct {
	tool.Effect
	command *tool.Effect
	pure    bool // there is no effect
}

// ofCommand reports whether the effect is one that goes with its command:
// whoever allows the command allows it too.
func (s subject) ofCommand(m places.Map) bool {
	switch {
	case s.command == nil:
		return false
	case s.Kind == tool.Network:
		return s.command.Class == tool.Unproven
	}
	at := m.Of(s.Path)
	return s.Kind == tool.Write && s.command.Class == tool.ProvenInside && at.Zone == places.Workspace && at.Guard == places.Plain
}

func (p Policy) finding(c *tool.Call, s subject) Finding {
	v, byRule := p.decide(c, s)
	f := Finding{Effect: s.Effect, Verdict: v}
	if f.Mode = v.Action == tool.Ask && !byRule; f.Mode {
		f.Rule = propose(p.Map, c, s)
	}
	return f
}

// decide judges one effect. byRule says that a rule asks or denies, which no
// other rule can answer.
func (p Policy) decide(c *tool.Call, s subject) (v tool.Verdict, byRule bool) {
	if v := p.ruled(tool.Deny, c, s); v.Action != tool.Abstain {
		return v, true
	}
	if s.Kind == tool.Question {
		return tool.Verdict{Action: tool.Ask, By: "the model", Reason: "it asks you something"}, true
	}
	place := p.Map.Of(s.Path)
	if v := sensitive(place, s.Effect); v.Action != tool.Abstain {
		return v, false
	}
	if v := p.ruled(tool.Ask, c, s); v.Action != tool.Abstain {
		return v, true
	}
	v = judgeEffect(c, place, s)
	if v.Action != tool.Ask {
		return v, false
	}
	for _, r := range p.Rules {
		if r.Action == tool.Allow && r.covers(p.Map, c, s) {
			return tool.Verdict{Action: tool.Allow, By: r.by()}, true
		}
	}
	return v, false
}

// ruled looks for rules that deny, or ask. Where it can't be told whether one
// speaks of the effect, as its words or its host are not known, it asks.
func (p Policy) ruled(action tool.Action, c *tool.Call, s subject) tool.Verdict {
	verb := "denies"
	if action == tool.Ask {
		verb = "asks about"
	}
	v := tool.Verdict{}
	for _, r := range p.Rules {
		if r.Action != action {
			continue
		}
		switch r.touches(p.Map, c, s) {
		case yes:
			return tool.Verdict{Action: action, By: r.by(), Reason: cmp.Or(r.Reason, "a rule "+verb+" it")}
		case perhaps:
			v = tool.Verdict{Action: tool.Ask, By: r.by(), Reason: "it can't be told whether this rule " + verb + " " + quoted(s.Text)}
		}
	}
	return v
}

// sensitive denies what no mode and no rule opens.
func sensitive(at places.Place, e tool.Effect) tool.Verdict {
	var doing string
	switch {
	case e.Kind == tool.Read && at.Guard == places.Secret:
		doing = "read"
	case e.Kind == tool.Write && (at.Guard == places.Secret || at.Guard == places.Frozen):
		doing = "changed"
	default:
		return tool.Verdict{}
	}
	return tool.Verdict{
		Action: tool.Deny, By: "sensitive places",
		Reason: fmt.Sprintf("%s is not %s by tools: it %s", e.Path, doing, at.Why),
	}
}

func quoted(text string) string {
	if len(text) > 80 {
		text = text[:80] + "…"
	}
	return fmt.Sprintf("%q", text)
}

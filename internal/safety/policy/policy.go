// Package policy decides whether calls may run: modes, rules for tools and effects, sensitive places, and the
// combination of verdicts. It is pure: it asks no one and reads nothing.
package policy

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Combine combines verdicts: deny beats ask beats allow; of equal ones the first counts. If all abstain, or
// there are none, it asks.
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

// Policy is the judge that every call passes first. It judges each effect alone and returns the strictest
// verdict. For an effect the first of these that applies decides:
//
//  1. a rule that denies
//  2. a question to the person, which always asks
//  3. the places that are never read or changed
//  4. the mode, if it denies
//  5. a rule that asks
//  6. files that are secret by their names, which ask unless a rule names exactly that file
//  7. the mode, if it allows
//  8. a rule that allows
//
// Otherwise it asks. In mode yolo, step 3 applies only to tools that name their files, and only to inspan's own
// files; step 6 does not apply.
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
	Effect  tool.Effect // zero for a call without effects; includes whether it is sensitive
	Verdict tool.Verdict
	// Mode says that the mode asks, which a rule, or a judge that speaks for the person, can answer.
	Mode bool
	// Rule is the narrowest rule that would allow an effect that asks. Empty: no rule would be safe.
	Rule string
	// Edits says that a rule for all edits would allow it, if rules can.
	Edits bool
	// Folder is a folder that the person can open to the session to allow an effect that asks. Empty: not
	// applicable.
	Folder string
	// Host is the rule for the single host that asks. Empty: none would be safe.
	Host string
	pure bool // there is no effect
}

// Findings judges each effect of a call, in order.
func (p Policy) Findings(c *tool.Call, effects []tool.Effect) []Finding {
	var out []Finding
	anywhere := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.External })
	for _, s := range subjects(p.Map, effects) {
		s.Own = !anywhere && p.own(c, s)
		out = append(out, p.finding(c, s))
	}
	return together(out)
}

// together makes each question about a host name all hosts that are asked about for the same reason: the call
// is a single one, and the person sees one of the reasons.
func together(out []Finding) []Finding {
	var hosts []string
	of := func(f Finding) bool {
		return f.Mode && f.Effect.Kind == tool.Network && f.Verdict.Reason == "it would "+describe(f.Effect)
	}
	for _, f := range out {
		if said := strings.TrimPrefix(describe(f.Effect), "talk to "); of(f) && !slices.Contains(hosts, said) {
			hosts = append(hosts, said)
		}
	}
	for i, f := range out {
		if of(f) && len(hosts) > 1 {
			out[i].Verdict.Reason = "it would talk to " + strings.Join(hosts, ", ")
		}
	}
	return out
}

// Judged returns the effects of a call as judged, with their sensitivity.
func Judged(findings []Finding) []tool.Effect {
	var out []tool.Effect
	for _, f := range findings {
		if !f.pure {
			out = append(out, f.Effect)
		}
	}
	return out
}

// subjects returns what to judge in a call, one per effect. Each place is examined once: its content may
// change, but a call has one verdict.
func subjects(m places.Map, effects []tool.Effect) []subject {
	if len(effects) == 0 {
		return []subject{{pure: true}}
	}
	var out []subject
	command := (*tool.Effect)(nil)
	for i, e := range effects {
		if e.Kind == tool.Execute {
			command = &effects[i]
		}
		s := subject{Effect: e, command: command}
		s.Own = false
		if e.Path != "" {
			s.place, s.root = m.Of(e.Path), e.Path == m.Root
		}
		s.Sensitive = s.care()
		out = append(out, s)
	}
	return out
}

// subject is one effect, with its command if any.
type subject struct {
	tool.Effect
	command *tool.Effect
	place   places.Place // of its path
	root    bool         // its path is the whole workspace
	pure    bool         // there is no effect
}

// care returns why an effect is sensitive; empty: it is not.
func (s subject) care() string {
	switch {
	case s.Kind == tool.Read && s.place.Guard == places.Secret, s.Kind == tool.Write && s.place.Guard != places.Plain:
		return s.place.Why
	}
	return ""
}

// own reports whether a write goes to the session's own folder for temporary files: no question was asked and
// no rule names the path. Otherwise the machine's folder is meant.
func (p Policy) own(c *tool.Call, s subject) bool {
	unasked := c.Mode == tool.ModeEdit || c.Mode == tool.ModeAuto || s.command != nil && s.command.Throwaway
	if s.Kind != tool.Write || !unasked || s.place.Zone == places.Workspace {
		return false
	}
	named := slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Action == tool.Allow && r.pattern != "" && r.tool == string(tool.Write) && r.covers(p.Map, c, s)
	})
	return !named && c.Env.Own(s.Path, s.command != nil)
}

// ofCommand reports whether the effect belongs to its command: approving the command approves it.
func (s subject) ofCommand() bool {
	switch {
	case s.command == nil:
		return false
	case s.Kind == tool.Network:
		return s.command.Class == tool.Unproven && !s.Asked
	}
	return s.Kind == tool.Write && s.command.Class == tool.ProvenInside && s.place.Zone == places.Workspace && s.place.Guard == places.Plain
}

func (p Policy) finding(c *tool.Call, s subject) Finding {
	v, by := p.decide(c, s)
	f := Finding{Effect: s.Effect, Verdict: v, Mode: v.Action == tool.Ask && by == byMode, pure: s.pure}
	if v.Action == tool.Ask && by != byRule {
		all := Rule{Action: tool.Allow, tool: edit}
		if by == byMode && s.Kind == tool.Write && s.place.Zone != places.Workspace && s.place.Guard == places.Plain {
			f.Folder = folderFor(p.Map, s)
		}
		f.Edits = by == byMode && all.covers(p.Map, c, s)
		f.Rule, f.Host = p.checked(c, s, propose(p.Map, c, s)), p.checked(c, s, proposeHost(s))
	}
	return f
}

// checked returns a rule if it parses to its intended meaning: it allows the effect. A name with blanks at its
// ends, or an empty word, can't be expressed.
func (p Policy) checked(c *tool.Call, s subject, text string) string {
	if r, err := ParseRule(tool.Allow, text, ""); err != nil || !r.covers(p.Map, c, s) {
		return ""
	}
	return text
}

// decider says which step decided about an effect.
type decider int

const (
	byRule  decider = iota // no other rule can answer
	byPlace                // a rule that names the place can answer
	byMode                 // a rule can answer
)

// decide judges one effect. All denials come before questions, so that no rule, possibly from a repository,
// turns a denial into a question.
func (p Policy) decide(c *tool.Call, s subject) (tool.Verdict, decider) {
	denied := p.ruled(tool.Deny, c, s)
	if denied.Action == tool.Deny {
		return denied, byRule
	}
	if s.Kind == tool.Question {
		return tool.Verdict{Action: tool.Ask, By: "the model", Reason: "it has a question for you"}, byRule
	}
	if v := p.closed(c, s); v.Action != tool.Abstain {
		return v, byPlace
	}
	v, by := judgeEffect(c, s), byMode
	if v.Action == tool.Deny {
		return v, by
	}
	for _, asks := range []tool.Verdict{denied, p.ruled(tool.Ask, c, s)} {
		if asks.Action != tool.Abstain {
			return asks, byRule
		}
	}
	if s.Sensitive != "" && s.place.Named && c.Mode != tool.ModeYolo {
		v, by = tool.Verdict{Action: tool.Ask, By: sensitivePlaces, Reason: named(s.Effect)}, byPlace
	}
	if v.Action != tool.Ask {
		return v, by
	}
	for _, r := range p.Rules {
		if r.Action == tool.Allow && r.covers(p.Map, c, s) && (by == byMode || r.names(p.Map, s)) {
			return tool.Verdict{Action: tool.Allow, By: r.by()}, byRule
		}
	}
	return v, by
}

// ruled applies rules that deny, or ask. If it is unknown whether one matches the effect, because its words or
// its host are unknown, it asks.
func (p Policy) ruled(action tool.Action, c *tool.Call, s subject) tool.Verdict {
	verb := "denies"
	if action == tool.Ask {
		verb = "asks about"
	}
	v := tool.Verdict{}
	for _, r := range p.Rules {
		if r.Action != action || r.Scope == TrustedContent && c.Mode == tool.ModeYolo {
			continue // in yolo trusted content is only checked before it runs
		}
		if r.Scope == TrustedContent && s.Kind == tool.Write && s.Path == p.Map.Root && c.Env.Walls.Workspace {
			continue // only a program can change the whole workspace, and its sandbox protects trusted content
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

// sensitivePlaces is the author of verdicts on sensitive places.
const sensitivePlaces = "sensitive places"

// closed denies effects that no allow rule can open.
func (p Policy) closed(c *tool.Call, s subject) tool.Verdict {
	at := s.place
	if c.Mode == tool.ModeYolo {
		if s.command != nil || s.Path == "" {
			return tool.Verdict{} // no sandbox enforces it for the command
		}
		at = p.Map.Unguarded().Of(s.Path)
	}
	var doing string
	switch {
	case at.Named:
		return tool.Verdict{}
	case s.Kind == tool.Read && at.Guard == places.Secret:
		doing = "read"
	case s.Kind == tool.Write && (at.Guard == places.Secret || at.Guard == places.Frozen):
		doing = "changed"
	default:
		return tool.Verdict{}
	}
	return tool.Verdict{Action: tool.Deny, By: sensitivePlaces, Reason: fmt.Sprintf("%s is not %s by tools: it %s%s",
		s.Path, doing, at.Why, p.wayTo(s.Path))}
}

// wayTo returns how a person can open a place anyway.
func (p Policy) wayTo(path string) string {
	if p.Map.Unguarded().Of(path).Guard != places.Plain {
		return ""
	}
	return fmt.Sprintf("; the person can do it, or open the place with public = [%q] in the settings", relative(p.Map, path))
}

// named describes an effect on a sensitive place.
func named(e tool.Effect) string {
	if e.Kind == tool.Read {
		return fmt.Sprintf("it reads %s, which %s", e.Path, e.Sensitive)
	}
	return fmt.Sprintf("it changes %s, which %s", e.Path, e.Sensitive)
}

func quoted(s string) string { return fmt.Sprintf("%q", text.Cut(s, 80)) }

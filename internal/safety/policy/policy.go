// Package policy decides whether calls may run. It combines modes, rules for tools and effects, and sensitive places.
// It is pure: it asks no one and reads nothing.
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

// Combine combines verdicts: deny beats ask, and ask beats allow. Of equal verdicts the first counts. If all abstain,
// or there are none, it asks.
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

// Policy is the judge that every call passes first. It judges each effect alone and returns the strictest verdict. For
// each effect, the first of these that applies decides:
//
//  1. a rule that denies
//  2. a question to the person, which always asks
//  3. places that tools may never read or change
//  4. the mode, if it denies
//  5. a rule that asks
//  6. files that are secret by name, which ask unless a rule names exactly that file
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
	Effect  tool.Effect // with Sensitive and Own filled in; zero for a call without effects
	Verdict tool.Verdict
	// Mode means that the mode asks. A rule, or a judge that speaks for the person, can answer.
	Mode bool
	// Rule is the narrowest rule that would allow an effect that asks; empty if no rule would be safe.
	Rule string
	// Edits means that the rule for all edits would allow an effect that asks.
	Edits bool
	// Folder is a folder that the person can open to the session to allow an effect that asks; empty if there is none.
	Folder string
	// Host is a rule for the single host that asks; empty if no rule would be safe.
	Host     string
	noEffect bool // there is no effect
}

// Findings judges each effect of a call, in order.
func (p Policy) Findings(c *tool.Call, effects []tool.Effect) []Finding {
	var out []Finding
	external := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.External })
	for _, s := range subjects(p.Map, effects) {
		s.Temporary = !external && p.isOwnTemporary(c, s)
		out = append(out, p.finding(c, s))
	}
	return nameAllHosts(out)
}

// nameAllHosts makes each question of the mode about a host name all such hosts of the call, because the person sees
// only one reason.
func nameAllHosts(out []Finding) []Finding {
	var hosts []string
	asksAboutHost := func(f Finding) bool {
		return f.Mode && f.Effect.Kind == tool.Network && f.Verdict.Reason == "it would "+describe(f.Effect)
	}
	for _, f := range out {
		if host := strings.TrimPrefix(describe(f.Effect), "talk to "); asksAboutHost(f) && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for i, f := range out {
		if asksAboutHost(f) && len(hosts) > 1 {
			out[i].Verdict.Reason = "it would talk to " + strings.Join(hosts, ", ")
		}
	}
	return out
}

// Judged returns the effects of a call with Sensitive and Own filled in.
func Judged(findings []Finding) []tool.Effect {
	var out []tool.Effect
	for _, f := range findings {
		if !f.noEffect {
			out = append(out, f.Effect)
		}
	}
	return out
}

// subjects returns the subjects of a call, one for each effect. Each place is examined only here, because its content
// may change in between.
func subjects(m places.Map, effects []tool.Effect) []subject {
	if len(effects) == 0 {
		return []subject{{noEffect: true}}
	}
	var out []subject
	command, moved := (*tool.Effect)(nil), false
	for i, e := range effects {
		s := subject{Effect: e, moved: moved}
		if e.Kind == tool.Execute {
			command, moved = &effects[i], moved || changesFolder(e.Words)
		}
		s.command = command
		s.Temporary = false
		if e.Path != "" {
			s.place, s.root = m.Of(e.Path), e.Path == m.Root
		}
		s.Sensitive = ""
		if e.Kind == tool.Read && s.place.Guard == places.Secret || e.Kind == tool.Write && s.place.Guard != places.Plain {
			s.Sensitive = s.place.Why
		}
		out = append(out, s)
	}
	return out
}

// subject is one effect, with its command if any.
type subject struct {
	tool.Effect
	command  *tool.Effect
	place    places.Place // of its path
	root     bool         // its path is the whole workspace
	moved    bool         // a command before it may have changed the working folder
	noEffect bool         // the call has no effects
}

// isOwnTemporary reports whether a write goes to the session's own folder for temporary files. If it needs approval, or
// a rule names the path, it goes to the machine's folder instead.
func (p Policy) isOwnTemporary(c *tool.Call, s subject) bool {
	unasked := c.Mode == tool.ModeEdit || c.Mode == tool.ModeAuto || s.command != nil && s.command.Throwaway
	if s.Kind != tool.Write || !unasked || s.place.Zone == places.Workspace {
		return false
	}
	hasRule := slices.ContainsFunc(p.Rules, func(r Rule) bool {
		return r.Action == tool.Allow && r.pattern != "" && r.tool == string(tool.Write) && r.covers(p.Map, c, s)
	})
	return !hasRule && c.Env.IsTemporary(s.Path, s.command != nil)
}

// belongsToCommand reports whether a rule that allows the command also allows the effect.
func (s subject) belongsToCommand() bool {
	switch {
	case s.command == nil:
		return false
	case s.Kind == tool.Network:
		return s.command.Class == tool.Unproven && !s.FromArgument
	}
	return s.Kind == tool.Write && s.command.Class == tool.ProvenInside && s.place.Zone == places.Workspace && s.place.Guard == places.Plain
}

func (p Policy) finding(c *tool.Call, s subject) Finding {
	v, by := p.decide(c, s)
	f := Finding{Effect: s.Effect, Verdict: v, Mode: v.Action == tool.Ask && by == byMode, noEffect: s.noEffect}
	if v.Action == tool.Ask && by != byRule {
		all := Rule{Action: tool.Allow, tool: edit}
		if by == byMode && s.Kind == tool.Write && s.place.Zone != places.Workspace && s.place.Guard == places.Plain {
			f.Folder = folderFor(p.Map, s)
		}
		f.Edits = by == byMode && all.covers(p.Map, c, s)
		f.Rule, f.Host = p.verifyRule(c, s, propose(p.Map, c, s)), p.verifyRule(c, s, proposeHost(s))
	}
	return f
}

// verifyRule returns a proposed rule if, once parsed, it allows the effect; otherwise empty. Rules can't express some
// names, such as a name that ends with a space.
func (p Policy) verifyRule(c *tool.Call, s subject, text string) string {
	if r, err := ParseRule(tool.Allow, text, ""); err != nil || !r.covers(p.Map, c, s) {
		return ""
	}
	return text
}

// decider says which step decided on an effect, and so which rules could answer its question.
type decider int

const (
	byRule  decider = iota // none
	byPlace                // only a rule that names exactly the place
	byMode                 // any allow rule
)

// decide judges one effect. Denials come before questions, so a rule that asks, possibly from a repository, can't turn
// a denial into a question.
func (p Policy) decide(c *tool.Call, s subject) (tool.Verdict, decider) {
	denial := p.applyRules(tool.Deny, c, s) // or a question, if it is unclear whether a rule denies
	if denial.Action == tool.Deny {
		return denial, byRule
	}
	if s.Kind == tool.Question {
		return tool.Verdict{Action: tool.Ask, By: "the model", Reason: "it has a question for you"}, byRule
	}
	if v := p.judgePlace(c, s); v.Action != tool.Abstain {
		return v, byPlace
	}
	v, by := tool.Verdict{By: "mode " + string(c.Mode)}, byMode
	if v.Action, v.Reason = judgeByMode(c, s); v.Action == tool.Deny {
		return v, by
	}
	for _, asks := range []tool.Verdict{denial, p.applyRules(tool.Ask, c, s)} {
		if asks.Action != tool.Abstain {
			return asks, byRule
		}
	}
	if s.Sensitive != "" && s.place.Named && c.Mode != tool.ModeYolo {
		v, by = tool.Verdict{Action: tool.Ask, By: sensitivePlaces, Reason: describeAccess(s.Effect)}, byPlace
	}
	if v.Action != tool.Ask {
		return v, by
	}
	for _, r := range p.Rules {
		if r.Action == tool.Allow && r.covers(p.Map, c, s) && (by == byMode || r.namesExactly(p.Map, s)) {
			return tool.Verdict{Action: tool.Allow, By: r.author()}, byRule
		}
	}
	return v, by
}

// applyRules applies the rules that deny, or the rules that ask. If it is unclear whether a rule matches the effect,
// because the words or the host are unknown, it asks.
func (p Policy) applyRules(action tool.Action, c *tool.Call, s subject) tool.Verdict {
	verb := "denies"
	if action == tool.Ask {
		verb = "asks about"
	}
	v := tool.Verdict{}
	for _, r := range p.Rules {
		if r.Action != action || r.Scope == TrustedContent && c.Mode == tool.ModeYolo {
			continue // in mode yolo, trusted content is only checked before it runs
		}
		if r.Scope == TrustedContent && s.Kind == tool.Write && s.Path == p.Map.Root && c.Env.Walls.Workspace {
			continue // the effect is of a program, whose sandbox protects trusted content
		}
		switch r.mayMatch(p.Map, c, s) {
		case yes:
			return tool.Verdict{Action: action, By: r.author(), Reason: cmp.Or(r.Reason, "a rule "+verb+" it")}
		case perhaps:
			v = tool.Verdict{Action: tool.Ask, By: r.author(), Reason: "it is unclear whether this rule " + verb + " " + quoted(s.Text)}
		}
	}
	return v
}

// sensitivePlaces is the author of verdicts on sensitive places.
const sensitivePlaces = "sensitive places"

// judgePlace denies access to places that no allow rule can open.
func (p Policy) judgePlace(c *tool.Call, s subject) tool.Verdict {
	at := s.place
	if c.Mode == tool.ModeYolo {
		if s.command != nil || s.Path == "" {
			return tool.Verdict{} // no sandbox could enforce it for a command
		}
		at = p.Map.Unguarded().Of(s.Path)
	}
	var access string
	switch {
	case at.Named:
		return tool.Verdict{}
	case s.Kind == tool.Read && at.Guard == places.Secret:
		access = "read"
	case s.Kind == tool.Write && (at.Guard == places.Secret || at.Guard == places.Frozen):
		access = "changed"
	default:
		return tool.Verdict{}
	}
	why := fmt.Sprintf("%s is not %s by tools: it %s", s.Path, access, at.Why)
	if p.Map.Unguarded().Of(s.Path).Guard == places.Plain { // a person can open it
		why += fmt.Sprintf("; the person can do it, or open the place with public = [%q] in the settings", relative(p.Map, s.Path))
	}
	return tool.Verdict{Action: tool.Deny, By: sensitivePlaces, Reason: why}
}

// describeAccess describes a read or change of a sensitive place.
func describeAccess(e tool.Effect) string {
	if e.Kind == tool.Read {
		return fmt.Sprintf("it reads %s, which %s", e.Path, e.Sensitive)
	}
	return fmt.Sprintf("it changes %s, which %s", e.Path, e.Sensitive)
}

func quoted(s string) string { return fmt.Sprintf("%q", text.Cut(s, 80)) }

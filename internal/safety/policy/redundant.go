package policy

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

// Swallowed finds redundant rules: another rule decides all calls that they match. The result maps the index of a
// redundant rule to that of the other one. It detects only simple cases.
func Swallowed(rules []Rule) map[int]int {
	out := map[int]int{}
	for i, r := range rules {
		at := slices.IndexFunc(rules, func(other Rule) bool { return other.makesRedundant(r) })
		if at < 0 || at == i {
			at = slices.IndexFunc(rules[:i], func(other Rule) bool { return other.Action == r.Action && other.matchesSame(r) })
		}
		if at >= 0 && at != i {
			out[i] = at
		}
	}
	return out
}

// matchesSame reports whether two rules match the same effects.
func (r Rule) matchesSame(other Rule) bool { return r.tool == other.tool && r.pattern == other.pattern }

// makesRedundant reports whether the rule decides all effects that another matches: it matches them too, and is at
// least as strict.
func (r Rule) makesRedundant(other Rule) bool {
	switch {
	case r.Scope == TrustedContent || other.Scope == TrustedContent:
		return false
	case weight(r.Action) < weight(other.Action):
		return false
	case r.Written != "" && r.Written == other.Written && r.Scope == other.Scope:
		return false // two parts of one rule that a person wrote
	case r.matchesSame(other):
		return r.Action != other.Action
	}
	return r.includes(other)
}

// includes reports whether the rule matches all effects that another matches.
func (r Rule) includes(other Rule) bool {
	plain := func(name string) bool { return !strings.ContainsAny(name, `*?[\`) }
	if r.tool != other.tool {
		ok, _ := filepath.Match(r.tool, other.tool)
		isKind := slices.Contains(append(kinds(), edit), other.tool)
		return ok && r.pattern == "" && plain(other.tool) && !isKind && r.tool != edit
	}
	switch {
	case r.pattern == "" || other.pattern == "":
		return r.pattern == ""
	case r.isForCommands():
		return r.command.includes(other.command)
	case strings.HasPrefix(r.pattern, "!") || strings.HasPrefix(other.pattern, "!"):
		return false // not analysed
	case r.tool == string(tool.Network):
		return strings.Trim(other.pattern, "*") == other.pattern && netguard.Hosts{r.pattern}.Match(other.pattern, 0)
	}
	dir, whole := strings.CutSuffix(r.pattern, "**")
	if !whole || !plain(dir) || strings.ContainsAny(dir, "{}") {
		return false
	}
	outside := path.IsAbs(other.pattern) || strings.HasPrefix(other.pattern, "~") || strings.HasPrefix(path.Clean(other.pattern), "..")
	if dir == "" {
		return !outside
	}
	return strings.HasSuffix(dir, "/") && strings.HasPrefix(other.pattern, dir) && !strings.Contains(other.pattern, "..") &&
		!strings.ContainsAny(other.pattern, "{}")
}

// includes reports whether a pattern matches all commands that another matches.
func (c command) includes(other command) bool {
	return c.open && len(c.words) <= len(other.words) && slices.Equal(c.words, other.words[:len(c.words)])
}

// Tried is a rule and whether it matches a call.
type Tried struct {
	Rule    Rule
	Matches bool
}

// Try reports for each rule whether it matches a call. It lists rules that protect trusted content only if they match.
func (p Policy) Try(c *tool.Call, effects []tool.Effect) (out []Tried) {
	all := subjects(p.Map, effects)
	for _, r := range p.Rules {
		matches := slices.ContainsFunc(all, func(s subject) bool {
			if r.Action == tool.Allow {
				return r.covers(p.Map, c, s)
			}
			return r.mayMatch(p.Map, c, s) != no
		})
		if matches || r.Scope != TrustedContent {
			out = append(out, Tried{r, matches})
		}
	}
	return out
}

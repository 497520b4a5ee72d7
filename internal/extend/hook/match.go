package hook

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// matcher is a compiled [Config.Match]. The zero value matches all.
type matcher struct {
	names  []string // globs; one must match
	re     expression
	claude bool
	event  string // of Claude Code
}

// expression is a compiled regular expression.
type expression interface{ MatchString(s string) bool }

// scriptExpression is an expression of JavaScript that RE2 can't express. One that takes too long matches, so that the
// hook looks for itself.
type scriptExpression struct{ *regexp2.Regexp }

// longestMatch bounds the time of comparing a pattern with a name, as a pattern may take exponential time.
const longestMatch = time.Second

func (e scriptExpression) MatchString(s string) bool {
	ok, err := e.Regexp.MatchString(s)
	return ok || err != nil
}

// compileExpression compiles a regular expression: in RE2, and for Claude Code, which uses those of JavaScript, also
// one with look-around or a back reference.
func compileExpression(pattern string, claude bool) (expression, error) {
	re, err := regexp.Compile(pattern)
	if err == nil {
		return re, nil
	}
	if claude {
		if script, scriptErr := regexp2.Compile(pattern, regexp2.ECMAScript); scriptErr == nil {
			script.MatchTimeout = longestMatch
			return scriptExpression{script}, nil
		}
	}
	return nil, err
}

// newMatcher returns the zero matcher with an error.
func newMatcher(text string, claude bool) (matcher, error) {
	m := matcher{claude: claude}
	pattern, isRegexp := regexpOf(text, claude)
	switch {
	case text == "" || text == "*":
	case isRegexp:
		re, err := compileExpression(pattern, claude)
		if err != nil {
			return matcher{}, fmt.Errorf("match %q: %w", text, err)
		}
		m.re = re
	default:
		separators := "|"
		if claude {
			separators = "|,"
		}
		m.names = split(text, separators)
		if err := checkGlobs(text, m.names); err != nil {
			return matcher{}, err
		}
	}
	return m, nil
}

// regexpOf returns the regular expression of a matcher, if it has that form.
func regexpOf(text string, claude bool) (pattern string, ok bool) {
	if claude {
		return text, strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_ ,|", r)
		})
	}
	if len(text) > 1 && strings.HasPrefix(text, "/") && strings.HasSuffix(text, "/") {
		return text[1 : len(text)-1], true
	}
	return "", false
}

func checkGlobs(text string, names []string) error {
	if len(names) == 0 {
		return fmt.Errorf("match %q has no name in it", text)
	}
	for _, name := range names {
		if _, err := path.Match(name, ""); err != nil {
			return fmt.Errorf("match %q: %q is not a name", text, name)
		}
	}
	return nil
}

// checkTools refuses names that no tool can have, as a hook for them would never run.
func checkTools(matcher string, names []string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	for _, name := range names {
		if strings.Trim(name, letters+"*") != "" {
			return fmt.Errorf("match %q: no tool is called %q; write a regular expression between slashes, as in /^bash$/", matcher, name)
		}
		// Only Claude Code begins names with a capital letter.
		if near := text.Nearest(name, foreign.Names()); near != "" && near != name &&
			name[0] >= 'A' && name[0] <= 'Z' && !strings.Contains(name, "*") {
			return fmt.Errorf("match %q: no tool is called %q; did you mean %q? To match a tool of that name, use /^%s$/",
				matcher, name, near, name)
		}
	}
	return nil
}

func split(text, separators string) []string {
	var out []string
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// matches reports whether the matcher matches a point.
func (m matcher) matches(p tool.Point) bool {
	if p.Moment == tool.PromptSaid || m.re == nil && m.names == nil {
		return true
	}
	return slices.ContainsFunc(m.subjects(p), m.one)
}

func (m matcher) one(name string) bool {
	if m.re != nil {
		return m.re.MatchString(name)
	}
	return slices.ContainsFunc(m.names, func(n string) bool {
		ok, _ := path.Match(n, name)
		return ok
	})
}

// subjects returns the values of a point; one of them must match.
func (m matcher) subjects(p tool.Point) []string {
	switch {
	case m.claude && (p.Moment == tool.AgentStart || p.Moment == tool.AgentStop):
		return foreign.ClaudeKinds(p.Who.Kind)
	case p.Call == nil && m.claude:
		return []string{claudeWhy(p, m.event)}
	case p.Moment == tool.AgentStart || p.Moment == tool.AgentStop:
		return []string{p.Who.Kind, p.Why}
	case p.Moment == tool.TeammateIdle:
		return []string{p.Who.Name, p.Who.Kind}
	case p.Call == nil:
		return []string{p.Why}
	case m.claude:
		return foreign.ClaudeNames(p.Call.Name)
	}
	// A tool that stands for another is found by both names.
	// Whole names of Claude Code are understood; "*" must not find them, or "*e*"
	// would match what has no e.
	out := []string{p.Call.Name}
	if p.Call.CalledAs != "" {
		out = append(out, p.Call.CalledAs)
	}
	for _, name := range foreign.ClaudeNames(p.Call.Name) {
		if slices.Contains(m.names, name) {
			out = append(out, name)
		}
	}
	return out
}

package hook

import (
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/foreign"
	"github.com/inspan/inspan/tool"
)

// speaksOf reports whether the event and the rule of a hook of Claude Code fit a
// point.
func (c Config) speaksOf(p tool.Point) bool {
	switch {
	case p.Who.Parent != "" && c.Kind == "" && c.ofLead(p):
		return false
	case p.Moment == tool.AfterCall && c.Event == "PostToolUse" && failed(p):
		return false
	case p.Moment == tool.AfterCall && c.Event == "PostToolUseFailure" && !failed(p):
		return false
	case c.If == "":
		return true
	}
	return p.Call != nil && fits(c.If, p)
}

// ofLead reports whether the event is one of the person's session, which Claude Code has none of in the
// sessions of agents.
func (c Config) ofLead(p tool.Point) bool {
	return c.Claude && slices.Contains([]string{"SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"}, c.event(p))
}

// fits reports whether a call fits a rule such as "Bash(git *)". An uncertain case counts as a match, because the
// hook decides for itself.
func fits(rule string, p tool.Point) bool {
	name, pattern, has := strings.Cut(strings.TrimSpace(rule), "(")
	pattern = strings.TrimSuffix(pattern, ")")
	// A rule for a tool of Claude Code is one for ours. A rule for Edit is for all that change files.
	own := p.Call.Name
	if !slices.Contains(foreign.ClaudeNames(own), name) && (name != "Edit" || own != "write_file") {
		return false
	}
	_, in, err := input(p.Call)
	if !has || err != nil || pattern == "" || pattern == "*" {
		return true
	}
	switch name {
	case "Bash":
		command, _ := in["command"].(string)
		return runs(pattern, command, p.Effects)
	case "Edit", "Write", "Read", "MultiEdit":
		file, _ := in["file_path"].(string)
		return inPlace(pattern, file, p.Root)
	case "WebFetch":
		return fetches(pattern, in["url"])
	}
	return true
}

// runs reports whether a command line has a command that fits a pattern.
func runs(pattern, line string, effects []tool.Effect) bool {
	pattern = strings.Replace(pattern, ":*", " *", 1)
	if strings.Contains(strings.TrimSuffix(pattern, " *"), " ") && strings.ContainsAny(line, "$`") {
		return true
	}
	commands := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|\n()`{}", r) })
	for _, e := range effects {
		if e.Kind == tool.Execute {
			commands = append(commands, e.Text)
		}
	}
	return slices.ContainsFunc(append(commands, line), func(c string) bool {
		c = withoutVariables(c)
		return strings.HasPrefix(c, "$") || text.Wild(pattern, c) || strings.HasSuffix(pattern, " *") && text.Wild(strings.TrimSuffix(pattern, " *"), c)
	})
}

// withoutVariables cuts "A=b" off the front of a command.
func withoutVariables(c string) string {
	for {
		c = strings.TrimSpace(c)
		word, rest, ok := strings.Cut(c, " ")
		if name, _, assigns := strings.Cut(word, "="); !ok || !assigns || name == "" || strings.ContainsAny(name, "-/.\"'") {
			return c
		}
		c = rest
	}
}

// inPlace reports whether a file is where a pattern says: a name at any depth, a
// path from the workspace, or after // from the root of the file system.
func inPlace(pattern, file, root string) bool {
	if strings.HasPrefix(pattern, "~") {
		return true
	}
	rel, err := filepath.Rel(root, file)
	if err != nil {
		return true
	}
	subject := filepath.ToSlash(rel)
	switch {
	case strings.HasPrefix(pattern, "//"):
		pattern, subject = pattern[1:], filepath.ToSlash(file)
	case !strings.Contains(pattern, "/"):
		subject = path.Base(subject)
	default:
		pattern = strings.TrimPrefix(strings.TrimPrefix(pattern, "./"), "/")
	}
	ok, err := doublestar.Match(pattern, subject)
	return ok || err != nil
}

func fetches(pattern string, address any) bool {
	want, isDomain := strings.CutPrefix(pattern, "domain:")
	text, _ := address.(string)
	u, err := url.Parse(text)
	if !isDomain || err != nil {
		return true
	}
	return u.Hostname() == want || strings.HasSuffix(u.Hostname(), "."+want)
}

package policy

import (
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Proposals lists the narrowest rules that together would allow a call that asks; empty if rules can't allow all of it.
func Proposals(findings []Finding) []string {
	var out []string
	for _, f := range findings {
		switch {
		case f.Verdict.Action != tool.Ask:
		case f.Rule == "":
			return nil
		case !slices.Contains(out, f.Rule):
			out = append(out, f.Rule)
		}
	}
	return out
}

// Offers lists wider approvals for a session: all edits, if only edits ask, and the hosts, if only effects on hosts
// ask. It leaves out approvals that equal the proposals.
func Offers(findings []Finding) []event.Offer {
	var hosts, rules []string
	asks, edits, reaches := false, true, true
	for _, f := range findings {
		if f.Verdict.Action != tool.Ask {
			continue
		}
		asks = true
		edits, reaches = edits && f.Edits, reaches && f.Host != ""
		if !slices.Contains(hosts, f.Host) {
			hosts = append(hosts, f.Host)
		}
		rules = append(rules, f.Rule)
	}
	var out []event.Offer
	if asks && edits {
		out = append(out, event.Offer{Reach: event.ReachEdits, Rules: []string{edit}})
	}
	if asks && reaches && !slices.Equal(hosts, slices.Compact(rules)) {
		out = append(out, event.Offer{Reach: event.ReachHost, Rules: hosts})
	}
	return out
}

// propose returns the narrowest rule that allows an effect; empty if a rule would allow more than a person can see from
// it.
func propose(m places.Map, c *tool.Call, s subject) string {
	if s.belongsToCommand() {
		if rule := proposeCommand(c, *s.command); rule != "" {
			return rule
		}
	}
	switch s.Kind {
	case tool.Execute:
		return proposeCommand(c, s.Effect)
	case tool.Keep:
		if strings.ContainsAny(s.Text, "*'()\n") || !simple(s.Text) {
			return ""
		}
		return string(tool.Keep) + "(" + s.Text + ")"
	case tool.Write, tool.Read:
		if !utf8.ValidString(s.Path) {
			return "" // logs store rules as text
		}
		if s.Kind == tool.Write && (text.Inside(s.Path, m.Root) || m.Home != "" && text.Inside(s.Path, m.Home)) {
			return "" // the whole workspace or home can only be allowed once
		}
		return string(s.Kind) + "(" + relative(m, s.Path) + ")"
	case tool.Network:
		return proposeHost(s)
	case tool.External:
		if s.Text == "" {
			return c.Name
		}
	}
	return ""
}

// folderFor returns the folder of a path outside the workspace, if the person can open that folder; empty for system
// folders, shared folders, and folders that contain the home.
func folderFor(m places.Map, s subject) string {
	dir := filepath.Dir(s.Path)
	shared := dir == filepath.Dir(dir) || slices.Contains([]string{"/tmp", "/var/tmp"}, dir)
	if s.place.Zone == places.System || shared || m.Home != "" && text.Inside(dir, m.Home) {
		return ""
	}
	return dir
}

// proposeHost returns the rule for the host of an effect; empty if it names no single host.
func proposeHost(s subject) string {
	if s.Kind != tool.Network || s.Text == "" || strings.ContainsAny(s.Text, "*()") {
		return ""
	}
	return string(tool.Network) + "(" + s.Text + ")"
}

func proposeCommand(c *tool.Call, e tool.Effect) string {
	if e.Words == nil {
		return ""
	}
	prefix, rest := e.Words.Prefix, " *)"
	if prefix == nil && e.Words.Exact && isProjectBuild(e.Words.Argv) {
		prefix, rest = e.Words.Argv, ")"
	}
	if prefix == nil {
		return ""
	}
	var words []string
	for _, w := range prefix {
		if strings.ContainsAny(w, "()'\n") || !utf8.ValidString(w) {
			return ""
		}
		if strings.ContainsAny(w, " \t*") {
			w = "'" + w + "'"
		}
		words = append(words, w)
	}
	return c.Name + "(" + strings.Join(words, " ") + rest
}

// isProjectBuild reports whether a command runs a build tool with the project's own build file. Unknown options don't
// count as such, because they could name another file.
func isProjectBuild(argv []string) bool {
	if len(argv) == 0 || !slices.Contains([]string{"make", "gmake", "ninja", "rake", "mvn", "gradle", "ctest", "yarn", "task", "just"},
		argv[0]) {
		return false
	}
	for _, w := range argv[1:] {
		if strings.HasPrefix(w, "-") && !slices.Contains([]string{"-j", "-k", "-s", "-B", "-n", "-q"}, strings.TrimRight(w, "0123456789")) {
			return false
		}
	}
	return true
}

// relative returns a pattern that matches only this path.
func relative(m places.Map, path string) string {
	if rel, err := filepath.Rel(m.Root, path); err == nil && m.Root != "" && text.Inside(m.Root, path) && !strings.HasPrefix(rel, "~") {
		path = rel
	}
	var b strings.Builder
	for _, r := range filepath.ToSlash(path) {
		if strings.ContainsRune(`*?[]{}\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

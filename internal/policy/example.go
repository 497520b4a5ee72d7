package policy

import (
	"strings"

	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/shell"
	"github.com/inspan/inspan/tool"
)

// SpeaksOf reports whether the rule speaks of an example: a command line, a host or a path, as the
// rule has it. Paths that are not absolute are meant in the workspace.
func (r Rule) SpeaksOf(example string) bool {
	at := places.Map{Root: "/workspace", Home: "/home/user"}
	name, _, _ := strings.Cut(r.Text, "(")
	c := &tool.Call{Name: strings.TrimSpace(name), Cwd: at.Root, Env: tool.Env{Root: at.Root}}
	path := example
	switch {
	case strings.HasPrefix(path, "~/"):
		path = at.Home + path[1:]
	case !strings.HasPrefix(path, "/"):
		path = at.Root + "/" + path
	}
	switch c.Name {
	case "bash", "execute":
		return r.Matches(at, c, shell.Explain(example, shell.Place{Root: at.Root, Cwd: at.Root, Home: at.Home}).Calls())
	case "network":
		return r.Matches(at, c, []tool.Effect{{Kind: tool.Network, Text: example}})
	case "read":
		return r.Matches(at, c, []tool.Effect{{Kind: tool.Read, Path: path}})
	}
	// The others are named by a tool, and may mean any of what it does.
	for _, e := range []tool.Effect{{Kind: tool.Write, Path: path}, {Kind: tool.Network, Text: example}} {
		if r.Matches(at, c, []tool.Effect{e}) {
			return true
		}
	}
	return false
}

package tools

import (
	"slices"
	"strings"

	"github.com/inspan/inspan/tool"
)

// Truth is the state of a session at its start, as far as descriptions of tools depend on it.
type Truth struct {
	Mode       tool.Mode // permission mode; empty means the default
	Walls      tool.Walls
	Unattended bool // no person is there to answer
	Keeps      bool // the call decides whether a process continues after the end
	GoesOn     bool // processes that still run at the end continue
	Throwaway  bool // see [tool.Env]
}

// DescribeFor returns tools whose descriptions match the session. A call with an argument that is not described
// still works, because the mode may change.
func DescribeFor(list []tool.Tool, s Truth) []tool.Tool {
	out := slices.Clone(list)
	s.Keeps = s.Keeps && s.Mode != tool.ModePlan
	for i, t := range out {
		if t.Name == "jobs" {
			out[i].Doc = strings.Replace(t.Doc, "\n", " "+s.ends()+"\n", 1)
		}
		if t.Name != "bash" {
			continue
		}
		switch {
		case s.Mode == tool.ModeYolo:
			out[i].Unshown = []string{"network", "outside"}
		case s.Mode == tool.ModePlan:
			out[i].Unshown = []string{"network", "outside"}
			out[i].Doc += map[bool]string{false: planDoc, true: throwawayDoc}[s.Throwaway && s.Walls.Throwaway]
		case !s.Walls.Workspace:
			out[i].Unshown = []string{"outside"}
			out[i].Doc += unwalledDoc
		default:
			out[i].Doc += walledDoc
		}
		if s.Mode != tool.ModeYolo && s.Mode != tool.ModePlan {
			out[i].Doc += map[bool]string{false: attendedDoc, true: unattendedDoc}[s.Unattended]
		}
		if !s.Keeps {
			out[i].Unshown = append(out[i].Unshown, "keep")
		}
	}
	return out
}

// ends describes what happens to jobs at the end of the session.
func (s Truth) ends() string {
	switch {
	case s.GoesOn:
		return "What still runs when the session ends goes on; end what nobody needs."
	case s.Keeps:
		return "At the end of the session jobs end, unless they are kept."
	}
	return "At the end of the session jobs end."
}

const (
	walledDoc = "- Commands run in a sandbox: they write below the workspace and in the session's own /tmp, and reach servers of this " +
		"session on localhost. " +
		"Ask in the call for what one needs beyond: network for hosts, outside for the machine's own /tmp, services and devices. "
	planDoc       = "- In mode plan only commands run that are known to read. Do not try to get around it.\n"
	throwawayDoc  = "- In mode plan a command that does more than read runs in a sandbox, on a copy of the workspace that is thrown away.\n"
	unwalledDoc   = "- Commands that are not proven to only read need approval. "
	attendedDoc   = "A person then decides; do not try to get around it.\n"
	unattendedDoc = "Nobody is there to approve it: what no rule allows is denied. Do not try to get around it.\n"
)

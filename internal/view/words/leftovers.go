package words

import (
	"fmt"

	"github.com/inspan/inspan/tool"
)

// Leftovers returns lines about the end of a session: processes that were still running, which instruction files it
// has written, and which agents have unmerged changes in a copy.
func Leftovers(session string, kept, ended []tool.Leftover, instructions, unmerged []string) []string {
	var out []string
	for _, agent := range unmerged {
		if agent == session {
			out = append(out, "not merged: the changes of this session, which are in its worktree; show them with: inspan copies diff "+agent+
				", then merge them (inspan copies merge "+agent+") or discard them (inspan copies discard "+agent+")")
			continue
		}
		out = append(out, "not merged: the work of agent "+agent+", which is in a copy; show it with: inspan copies diff "+agent+
			", then merge it (inspan copies merge) or discard it (inspan copies discard)")
	}
	for _, path := range instructions {
		out = append(out, OneLine(path, 200)+" changed in this session: later agents treat it as unconfirmed until you run 'inspan trust'")
	}
	for _, l := range kept {
		out = append(out, fmt.Sprintf("still running: %s (process %d, output in %s)", OneLine(l.Command, 100), l.PID, l.Output))
		for _, p := range l.Ports {
			out = append(out, "  "+OneLine(p.String(), 200))
		}
	}
	if len(kept) > 0 {
		out = append(out, "stop it with: inspan stop "+session)
	}
	for _, l := range ended {
		text := "ended with the session: " + OneLine(l.Command, 100)
		if l.Error != "" {
			text += " (" + OneLine(l.Error, 200) + ")"
		}
		out = append(out, text)
	}
	return out
}

package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// Session is the facts about a session that decide what works in it.
type Session struct {
	Mode       tool.Mode // permission mode
	Walls      tool.Walls
	Throwaway  bool // see [tool.Env]
	Unattended bool // no person is there to answer
	Turns      int  // of one run; 0: no limit
	Cost       float64
	Time       time.Duration
}

// Facts returns the facts about the session, one per line.
func (s Session) Facts() []string {
	out := []string{"permissions: " + s.Permissions()}
	if s.Unattended {
		out = append(out, "nobody is there to answer: decide sensibly, go on, and say what you assumed")
	}
	var limits []string
	if s.Turns > 0 {
		limits = append(limits, fmt.Sprintf("%d turns", s.Turns))
	}
	if s.Time > 0 {
		limits = append(limits, fmt.Sprintf("%.0f minutes", s.Time.Minutes()))
	}
	if s.Cost > 0 {
		limits = append(limits, fmt.Sprintf("$%.2f", s.Cost))
	}
	if len(limits) > 0 {
		out = append(out, "limits of a run: "+strings.Join(limits, ", "))
	}
	return out
}

// Permissions describes what calls may do in the session's mode.
func (s Session) Permissions() string {
	asks := "asks the person"
	if s.Unattended {
		asks = "is denied"
	}
	boxed := s.Walls.Workspace
	switch s.Mode {
	case "yolo":
		return "mode yolo: nothing asks, and commands run with all rights of the person"
	case "auto":
		if !boxed {
			return "mode auto, without a sandbox: files in the workspace change freely, and any command that is not known to be harmless " + asks
		}
		return "mode auto: commands run in a sandbox that writes in the workspace and /tmp and has a network of its own (localhost); " +
			"what needs other hosts or places (network, outside) " + asks
	case "edit":
		return "mode edit: files in the workspace change freely; any command that is not known to be harmless " + asks
	case "plan":
		if s.Throwaway && s.Walls.Throwaway {
			return "mode plan: nothing may be changed; commands that do more than read, such as tests, run in a sandbox on a throwaway copy of " +
				"the " +
				"workspace (localhost, no other network), and what they write there is gone when they end"
		}
		return "mode plan: look and plan, nothing may be changed"
	}
	return "mode ask: reading is free; every change and any other command " + asks
}

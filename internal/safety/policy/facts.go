package policy

import (
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/tool"
)

// Session holds the facts about a session that the model needs to know.
type Session struct {
	Mode       tool.Mode // permission mode
	Walls      tool.Walls
	Throwaway  bool // see [tool.Env]
	Unattended bool // no one answers questions
	Turns      int  // limit of one run; 0 means none
	Cost       float64
	Time       time.Duration
}

// Facts returns the facts about the session, one per line.
func (s Session) Facts() []string {
	out := []string{"permissions: " + s.Permissions()}
	if s.Unattended {
		out = append(out, "nobody is there to answer: decide sensibly, continue, and state your assumptions")
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

// Permissions describes for the model which calls run without approval in the session's mode.
func (s Session) Permissions() string {
	asks := "asks the person"
	if s.Unattended {
		asks = "is denied"
	}
	boxed := s.Walls.Workspace
	switch s.Mode {
	case "yolo":
		return "mode yolo: everything runs without a sandbox or questions, unless the person's rules deny it or ask"
	case "auto":
		if !boxed {
			return "mode auto, without a sandbox: file changes in the workspace run; any command that is not known to be harmless " + asks
		}
		return "mode auto: commands run in a sandbox that can write to the workspace and /tmp and has its own network (localhost); " +
			"access to other hosts or places (network, outside) " + asks
	case "edit":
		return "mode edit: file changes in the workspace run; any command that is not known to be harmless " + asks
	case "plan":
		if s.Throwaway && s.Walls.Throwaway {
			return "mode plan: nothing may be changed; commands that do more than read, such as tests, run in a sandbox on a throwaway copy of " +
				"the workspace (localhost, no other network), and their changes there disappear when they end"
		}
		return "mode plan: read and plan, change nothing"
	}
	return "mode ask: reading runs; every change and any other command " + asks
}

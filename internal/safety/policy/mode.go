package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/tool"
)

// Unanswered returns a warning about calls that a mode denies if no one can answer, with remedies; empty if the
// mode denies little.
func Unanswered(mode tool.Mode) string {
	denied := map[tool.Mode]string{
		tool.ModeAsk:  "every change, and every command that is not proven to only read",
		tool.ModeEdit: "every command that is not proven to stay in the workspace, and changes outside of it",
	}[mode]
	if denied == "" {
		return ""
	}
	return "nobody can answer here, so mode " + string(mode) + " denies " + denied +
		"; --mode auto runs commands in the sandbox, --mode yolo runs everything, --allow RULE allows single calls"
}

// Outside ends the reason for a question about a path outside the workspace.
const Outside = " is outside the workspace"

func judgeByMode(c *tool.Call, s subject) (tool.Action, string) {
	e, at := s.Effect, s.place
	switch {
	case c.Mode.Doc() == "":
		return tool.Deny, "there is no such mode"
	case c.Mode == tool.ModeYolo && e.Sensitive != "":
		return tool.Allow, describeAccess(e)
	case s.noEffect, e.Kind == tool.Read, c.Mode == tool.ModeYolo:
		return tool.Allow, ""
	case c.Mode == tool.ModePlan && staysInThrowaway(c, s):
		return tool.Allow, ""
	case e.Kind == tool.Execute && e.Class == tool.ProvenRead:
		if !c.Env.Walls.Read {
			return tool.Ask, "no sandbox here can limit a command to reading" // in plan mode too, because it may be harmless
		}
		return tool.Allow, ""
	case c.Mode == tool.ModePlan:
		return tool.Deny, "plan mode only reads; this would " + describe(e) + whyNoThrowaway(c, e)
	case e.Kind == tool.Write && at.Guard == places.Guarded:
		return tool.Ask, fmt.Sprintf("%s %s", e.Path, at.Why)
	case e.Kind == tool.Write && at.Zone != places.Workspace && !e.Temporary:
		return tool.Ask, e.Path + Outside
	case e.Kind == tool.Network && s.command != nil && netguard.Loopback(e.Text):
		return judgeOther(c, *s.command) // in the sandbox, loopback reaches only the session's own processes
	case e.Kind == tool.Network && !e.FromArgument && c.Env.Walls.Workspace && netguard.Loopback(e.Text):
		return tool.Ask, "it would " + describe(e) + " outside the sandbox. Servers of this session are inside: use curl in bash. " +
			c.Name + " reaches only ports that sandbox.local in the settings opens"
	}
	return judgeOther(c, e)
}

// staysInThrowaway reports whether an effect of a command stays in a throwaway copy of the workspace or in the
// session's own temporary files.
func staysInThrowaway(c *tool.Call, s subject) bool {
	if !c.Env.Throwaway || !c.Env.Walls.Throwaway || s.command == nil || !s.command.Throwaway {
		return false
	}
	switch s.Kind {
	case tool.Execute:
		return true
	case tool.Network:
		return !s.FromArgument && netguard.Loopback(s.Text) // only the session's own processes
	case tool.Write:
		inside := s.Throwaway && s.place.Zone == places.Workspace || s.Temporary
		return inside && s.place.Guard == places.Plain
	}
	return false
}

// whyNoThrowaway gives the reason why a command can't run in a throwaway copy of the workspace; empty if that is
// not the obstacle.
func whyNoThrowaway(c *tool.Call, e tool.Effect) string {
	if !c.Env.Throwaway || c.Env.Walls.Throwaway || e.Kind != tool.Execute {
		return ""
	}
	return "; it could run on a throwaway copy of the workspace, which is unavailable here: " +
		cmp.Or(c.Env.Walls.NoThrowaway, c.Env.Walls.Why)
}

// judgeOther returns the verdict of a mode on an effect without a special case.
func judgeOther(c *tool.Call, e tool.Effect) (tool.Action, string) {
	command := e.Kind == tool.Execute
	switch {
	case command && !c.Env.Walls.Workspace && c.Mode != tool.ModeAsk:
		return tool.Ask, "no sandbox here can confine a command to the workspace; it would " + describe(e)
	case c.Mode == tool.ModeEdit && (e.Kind == tool.Write || command && e.Class == tool.ProvenInside),
		c.Mode == tool.ModeAuto && (e.Kind == tool.Write || command):
		return tool.Allow, ""
	}
	return tool.Ask, "it would " + describe(e)
}

// Plain reports whether a reason says only that the call would have one of these effects: run a command, change a file
// or talk to a host.
func Plain(reason string, effects []tool.Effect) bool {
	return slices.ContainsFunc(effects, func(e tool.Effect) bool {
		return (e.Kind == tool.Execute || e.Kind == tool.Write || e.Kind == tool.Network) && reason == "it would "+describe(e)
	})
}

// describe returns an effect in words that follow "would".
func describe(e tool.Effect) string {
	switch e.Kind {
	case tool.Read:
		return "read " + e.Path
	case tool.Write:
		return "change " + e.Path
	case tool.Execute:
		return "run " + quoted(e.Text)
	case tool.Keep:
		return "keep it running after the session"
	case tool.Network:
		if e.Text == "" || e.Text == "*" {
			return "talk to other machines"
		}
		return "talk to " + e.Text
	case tool.External:
		if e.Text != "" {
			return e.Text
		}
	}
	return "do something unknown"
}

package words

import (
	"path/filepath"
	"slices"
	"strconv"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/policy"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// Consent is a question about a call, or about a set of calls, in parts that each front end draws one below the
// other. Each thing is said once. Only the preview is text by others.
type Consent struct {
	Title   string   // who asks, and for what, as in "bash asks to run a command"
	Why     string   // why a person is asked; empty if the rest says it
	Preview string   // the change as a diff, or other text that shows what would happen; else empty
	Command string   // the command that would run; empty if there is none or the preview shows it
	Others  string   // the other arguments, in the same way
	Effects []string // what the call would touch beyond that, a line each
}

// Consents returns the question about a call in the workspace root, or about a set of calls. Name is who asks.
func Consents(root, name string, call event.Raised, set []event.Raised) Consent {
	why, preview := Asking(root, call.Reason, call.Preview, set)
	c := Consent{
		Title: text.Visible(name) + " asks", Why: text.Line(why), Preview: preview, Effects: Effects(call.Effects, preview != ""),
	}
	if len(set) > 0 {
		return c
	}
	if preview == "" {
		c.Command, c.Others = Asked(llm.Call{Name: call.Tool, Args: call.Args})
	}
	if c.Command != "" {
		c.Title += " to run a command"
	} else {
		c.Title += wanted(root, call.Effects)
	}
	if policy.Plain(call.Reason, call.Effects) {
		c.Why = ""
	}
	return c
}

// Brief sums up a question in one line, for people who see nothing else of it: the whole command, and why it asks.
func Brief(root string, call event.Raised, set []event.Raised) string {
	q := Consents(root, "", call, set)
	if q.Command == "" {
		why, _ := Asking(root, call.Reason, call.Preview, set)
		return why
	}
	brief := "it would run " + strconv.Quote(q.Command)
	if q.Why != "" {
		brief += "; " + q.Why
	}
	return brief
}

// wanted describes the effects of a call in words that follow "asks". It is empty if its effects have no short
// name.
func wanted(root string, effects []tool.Effect) string {
	var written []string
	host := ""
	for _, e := range effects {
		switch e.Kind {
		case tool.Execute:
			return " to run a command"
		case tool.Write:
			written = once(written, e.Path)
		case tool.Network:
			host = text.Visible(e.Text)
		}
	}
	external := slices.ContainsFunc(effects, func(e tool.Effect) bool { return e.Kind == tool.External || e.Kind == tool.Question })
	switch {
	case external:
		return ""
	case len(written) == 1:
		path := written[0]
		if below, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(below) && below != "." {
			path = below
		}
		return " to change " + text.Visible(path)
	case len(written) > 1:
		return " to change " + text.Count(len(written), "file")
	case host != "" && host != "*":
		return " to talk to " + host
	}
	return ""
}

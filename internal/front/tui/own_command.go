package tui

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/words"
)

// ownCommand runs a command of the person's own, typed after an exclamation mark. It needs no approval, since the
// person typed it. The session learns the outcome.
type ownCommand struct {
	talk  *talk
	hints *hints
	clock func() time.Time

	command string // the running command, without secrets; empty if none
	since   time.Time
	stop    context.CancelFunc
}

// isRunning reports whether a command is running.
func (e *ownCommand) isRunning() bool { return e.command != "" }

// begin runs a command, one at a time.
func (e *ownCommand) begin(command string) tea.Cmd {
	a, root := e.talk.tui.here(), e.talk.root()
	switch {
	case command == "":
		e.hints.say("type a command after !, such as !git status")
		return nil
	case e.isRunning():
		e.hints.say("your last command still runs; Esc stops it")
		return nil
	case e.talk.tui.at() != "":
		e.talk.note("! runs commands on this machine, and the session is on a server; ask the agent to run it there")
		return nil
	case a == nil:
		e.hints.say("no shell is set up here")
		return nil
	}
	ctx, stop := context.WithCancel(e.talk.ctx)
	e.command, e.since, e.stop = words.Hidden(command), e.clock(), stop
	return func() tea.Msg {
		said, err := a.Running.Own(ctx, root, command)
		return later(func() tea.Cmd {
			e.stop()
			e.command = ""
			if err != nil {
				e.talk.fail(err)
				return nil
			}
			return e.talk.tellSession(said)
		})
	}
}

// lines shows the running command.
func (e *ownCommand) lines(l look, now time.Time) []string {
	if !e.isRunning() {
		return nil
	}
	took := " " + clock(now.Sub(e.since)) + " · Esc stops it"
	return []string{l.paint(bold, "! ") + words.OneLine(e.command, max(1, l.width-2-len(took))) + l.paint(dim, took)}
}

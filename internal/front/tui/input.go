package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

// box returns the box that has the keys, or nil if the prompt has them.
func (m *model) box() box {
	if m.over.box != nil {
		return m.over.box
	}
	if a := m.questions.open(m.screen.look); a != nil {
		return a
	}
	return nil
}

// unseen reports whether the keys go to a question that the person can't have seen yet.
func (m *model) unseen() bool {
	a, ok := m.box().(*ask)
	return ok && a.unseen(m.clock())
}

// room returns how many cells a line of the prompt has.
func (m *model) room() int { return m.screen.look.width - 2 }

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	action := m.keys[k.Keystroke()]
	if action == "" && k.Code == tea.KeyEscape && k.Mod == tea.ModAlt {
		// Two presses that arrive at once.
		esc := tea.KeyPressMsg{Code: tea.KeyEscape}
		return tea.Batch(m.key(esc), m.key(esc))
	}
	if action != m.taps.action {
		m.taps = taps{} // another key between two taps: they are not a double tap
	}
	b := m.box()
	if action == "background" {
		if jobs := m.talk.background(); b == nil && m.talk.running && jobs != nil && jobs.Background() > 0 {
			m.hints.say("the command continues in the background; /jobs lists it")
			return nil
		}
		action = "left"
	}
	switch action {
	case "suspend":
		return tea.Suspend
	case "redraw":
		return m.screen.redraw()
	case "mode":
		modes := []tool.Mode{tool.ModePlan, tool.ModeAsk, tool.ModeEdit, tool.ModeAuto} // those that need no warning
		return m.talk.switchTo(modes[(slices.Index(modes, m.talk.mode())+1)%len(modes)])
	case "unfold":
		return m.unfold()
	case "reasoning":
		return m.commands.reasoning("")
	case "page-up", "page-down":
		if b == nil && m.screen.full != nil {
			m.screen.full.page(m.screen.height, action == "page-up")
			return nil
		}
	}
	if m.questions.continuesHeldKeys(k, action, b) {
		return nil
	}
	if m.unseen() && m.questions.keyBeforeSeen(k, action, m.room()) {
		return nil
	}
	if b != nil {
		return b.key(k, action)
	}
	m.hints.reset()
	if action == "" && k.Text == "?" && m.composer.prompt.empty() {
		m.over.openText(m.commands.facts().card(m.screen.look.width))
		return nil
	}
	return m.promptKey(k, action)
}

// promptKey handles a key for the prompt.
func (m *model) promptKey(k tea.KeyPressMsg, action string) tea.Cmd {
	c := m.composer
	if c.vim.key(k, action, &c.prompt, m.room()) {
		c.touched()
		return c.offerCompletions()
	}
	switch action {
	case "send", "queue":
		if m.clock().Before(c.ignoreUntil) {
			return nil
		}
		if action == "queue" {
			return m.tab()
		}
		return m.enter()
	case "escape":
		return m.escape()
	case "interrupt":
		return m.ctrlC()
	case "quit":
		if c.prompt.empty() {
			return m.quit()
		}
		c.prompt.cut(c.prompt.at, c.prompt.at+1)
		return c.offerCompletions()
	case "search":
		return c.search()
	case "edit":
		return c.inEditor()
	case "paste-image":
		return c.pasteImage()
	}
	return c.edit(k, action, m.room())
}

// enter sends the written text, or accepts a completion.
func (m *model) enter() tea.Cmd {
	c := m.composer
	if c.continued() {
		return nil
	}
	if c.offer.open() && c.accept() {
		return c.offerCompletions()
	}
	text := strings.TrimSpace(c.prompt.text())
	name, args, slash := words.Slash(text)
	own, mine := strings.CutPrefix(text, "!")
	switch {
	case text == "" && m.talk.cutOff():
		return m.talk.continueCutOff()
	case text == "":
		return nil
	case slash:
		return m.command(name, args)
	case mine:
		c.history.add(text)
		c.empty()
		return m.ownCommand.begin(strings.TrimSpace(own))
	}
	if fact := c.fact(); fact != "" {
		return c.remember(func() tea.Cmd { return m.command("memory", "add "+fact) }, m.say)
	}
	return m.talk.refreshDriver(m.say)
}

// say sends the written text to the run in progress, here or elsewhere, or starts a run with it.
func (m *model) say() tea.Cmd {
	parts := m.composer.take()
	text := transcript.Spoken(parts)
	m.composer.history.add(text)
	return m.talk.withFiles(text, func(files []event.Body) tea.Cmd {
		switch t := m.talk; {
		case t.running, t.drivenElsewhere():
			for _, f := range files {
				t.tellSession(f.(event.Said))
			}
			if t.running {
				t.send(event.Steered{Origin: event.OriginPerson, Parts: parts}, text)
			} else {
				t.sendToDriver(event.Steered{Origin: event.OriginPerson, Parts: parts}, text)
			}
			return nil
		case len(t.view.Waiting()) > 0: // the model reads the text after the person has answered
			return t.start(append([]event.Body{event.Steered{Origin: event.OriginPerson, Parts: parts}}, files...)...)
		}
		return m.talk.start(append([]event.Body{event.Said{Parts: parts}}, files...)...)
	})
}

// command runs a slash command.
func (m *model) command(name, args string) tea.Cmd {
	all := m.commands.all()
	c, ok := all.find(name)
	if !ok {
		m.hints.say(all.nearest(name))
		return nil
	}
	m.composer.empty()
	return m.commands.do(c, args)
}

// tab completes a word, or queues the written text for after the run.
func (m *model) tab() tea.Cmd {
	c := m.composer
	if c.offer.open() {
		c.accept()
		return c.offerCompletions()
	}
	if !m.talk.running || strings.TrimSpace(c.prompt.text()) == "" {
		return nil
	}
	c.queued = append(c.queued, c.prompt)
	parts := c.take()
	text := transcript.Spoken(parts)
	c.history.add(text)
	m.talk.send(event.Said{Parts: parts}, text)
	return nil
}

func (m *model) escape() tea.Cmd {
	switch {
	case m.composer.offer.open():
		m.composer.offer = offer{closed: true}
	case m.ownCommand.isRunning():
		m.ownCommand.stop()
	case m.talk.queues():
		m.talk.takeBack()
	case m.talk.running, m.talk.drivenElsewhere():
		return m.talk.interrupt()
	case m.composer.prompt.empty() && m.loops.on != nil:
		m.loops.end("")
	case m.taps.twice("escape", m.clock()):
		m.hints.reset()
		return m.back.pick()
	case m.composer.prompt.empty() && m.talk.runner.session() != nil:
		m.hints.say("press again to rewind")
	}
	return nil
}

func (m *model) ctrlC() tea.Cmd {
	c := m.composer
	switch {
	case m.taps.twice("interrupt", m.clock()) && c.prompt.empty():
		return m.quit()
	case m.ownCommand.isRunning():
		m.ownCommand.stop()
		return nil
	case m.talk.running && !m.talk.view.Idle():
		cmd := m.talk.interrupt()
		m.hints.say(quittable)
		return cmd
	case !c.prompt.empty():
		c.history.add(c.prompt.text())
		c.empty()
	}
	m.hints.say("press again to quit")
	return nil
}

func (m *model) quit() tea.Cmd {
	m.quitting = true
	return tea.Quit
}

// unfold shows the last result and all later ones in full. The next time, they are folded again.
func (m *model) unfold() tea.Cmd {
	v := m.talk.view
	verbose := !m.screen.look.verbose
	m.screen.look.verbose, m.screen.print.verbose = verbose, verbose
	m.hints.say(map[bool]string{true: "verbose: results are shown in full; press again to fold them", false: "results are folded again"}[verbose])
	if m.screen.full != nil {
		m.screen.reflow(v)
	}
	if !verbose {
		return nil
	}
	b := v.ended
	if b == nil {
		return nil
	}
	if b.call == nil {
		m.screen.unfold(v, b)
		return nil
	}
	name, id := words.Stored(b.call.Ended.Parts.Text()), v.Session.ID
	if b.whole || name == "" || b.stored != "" || m.App == nil {
		m.screen.unfold(m.talk.view, b)
		return nil
	}
	more := int64(0)
	return m.talk.work(func(ctx context.Context) (said string, err error) {
		said, more, err = m.App.Running.Blob(ctx, id, name, mostUnfolded)
		return said, err
	}, func(said string) tea.Cmd {
		if b.stored = strings.ToValidUTF8(said, "\uFFFD"); more > 0 {
			b.stored += fmt.Sprintf("\n[… %s more; the model can read them as blob:%s …]", text.Count(int(more), "byte"), name)
		}
		m.screen.unfold(m.talk.view, b)
		return nil
	})
}

// mostUnfolded bounds how much is shown of a result that is not in the log.
const mostUnfolded = 1 << 20

// paste passes pasted or dropped text to whatever has the keys, or to the prompt while a question is unseen.
func (m *model) paste(text string) tea.Cmd {
	text = clean(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	if m.unseen() {
		m.questions.stepBack()
	} else if b := m.box(); b != nil {
		b.paste(text)
		return nil
	}
	return m.composer.paste(text)
}

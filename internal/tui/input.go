package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/transcript"
	"github.com/inspan/inspan/internal/words"
)

// box is something that takes the keys in the place of the prompt.
type box interface {
	// lines shows it in at most rows lines, with the cell of the cursor; x is
	// negative if there is none.
	lines(m *model, rows int) (lines []string, x, y int)
	// key takes a key with its action, empty if it has none.
	key(m *model, k tea.KeyPressMsg, action string) tea.Cmd
	// paste takes text.
	paste(m *model, text string)
}

// open is the box that takes the keys, nil if the prompt does.
func (m *model) box() box {
	if m.over != nil {
		return m.over
	}
	if m.asks() {
		return m.ask
	}
	return nil
}

func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	action := m.keys[k.Keystroke()]
	if action == "" && k.Code == tea.KeyEscape && k.Mod == tea.ModAlt {
		// Two presses that arrive at once.
		esc := tea.KeyPressMsg{Code: tea.KeyEscape}
		return tea.Batch(m.key(esc), m.key(esc))
	}
	b := m.box()
	switch action {
	case "suspend":
		return tea.Suspend
	case "redraw":
		return tea.ClearScreen
	case "mode":
		return m.nextMode()
	case "unfold":
		return m.unfold()
	case "page-up", "page-down":
		if b == nil && m.full != nil {
			m.full.page(m.height, action == "page-up")
			return nil
		}
	}
	if m.unseen() && m.ahead(k, action) {
		return nil
	}
	if b != nil {
		return b.key(m, k, action)
	}
	m.hint = ""
	return m.promptKey(k, action)
}

// promptKey is a key for the prompt.
func (m *model) promptKey(k tea.KeyPressMsg, action string) tea.Cmd {
	switch action {
	case "send", "queue":
		if m.clock().Before(m.early) {
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
		if m.prompt.empty() {
			return m.quit()
		}
		m.prompt.cut(m.prompt.at, m.prompt.at+1)
	case "edit":
		return m.editor()
	case "paste-image":
		return m.pasteImage()
	case "up", "down":
		if m.offer.move(action) {
			return nil
		}
		m.recall(action, m.look.width-2)
	default:
		if !m.prompt.key(k, action, m.look.width-2) {
			return nil
		}
		m.history.left()
		m.typed = m.clock()
	}
	return m.suggest()
}

// key edits; it reports false if the key means nothing to an editor.
func (e *editor) key(k tea.KeyPressMsg, action string, width int) bool {
	switch action {
	case "newline":
		e.insert(atom{shown: "\n"})
	case "left":
		e.at, e.goal = max(e.at-1, 0), -1
	case "right":
		e.at, e.goal = min(e.at+1, len(e.atoms)), -1
	case "word-left":
		e.at, e.goal = e.word(), -1
	case "word-right":
		e.at, e.goal = e.wordEnd(), -1
	case "home":
		e.at, e.goal = e.lineStart(), -1
	case "end":
		e.at, e.goal = e.lineEnd(), -1
	case "up":
		e.up(width)
	case "down":
		e.down(width)
	case "backspace":
		if e.at > 0 {
			e.cut(e.at-1, e.at)
		}
	case "delete":
		e.cut(e.at, e.at+1)
	case "delete-word":
		e.cut(e.word(), e.at)
	case "delete-start":
		e.cut(e.lineStart(), e.at)
	case "delete-end":
		at := e.at
		e.cut(at, max(e.lineEnd(), min(at+1, len(e.atoms)))) // at the end of a line, the line's end
	case "":
		if k.Text == "" {
			return false
		}
		e.insert(atomsOf(k.Text)...)
	default:
		return false
	}
	return true
}

// enter sends what is written, or does what a completion says.
func (m *model) enter() tea.Cmd {
	if n := m.prompt.at; n > 0 && m.prompt.atoms[n-1].shown == `\` && !m.prompt.atoms[n-1].big() {
		m.prompt.cut(n-1, n)
		m.prompt.insert(atom{shown: "\n"})
		return nil
	}
	if m.offer.open() {
		if more := m.accept(m.commands()); more {
			return m.suggest()
		}
	}
	text := strings.TrimSpace(m.prompt.text())
	if text == "" {
		if m.cutOff() {
			return m.goOnHere()
		}
		return nil
	}
	if name, args, ok := words.Slash(text); ok {
		return m.command(name, args)
	}
	if m.cutOff() && m.driver != "" {
		return m.unlessDriven((*model).enter)
	}
	parts := m.prompt.parts()
	m.clear()
	switch {
	case m.running:
		m.history.add(transcript.Spoken(parts))
		m.seat.post(m.next(event.Steered{Parts: parts}, true, transcript.Spoken(parts)))
		return nil
	case len(m.view.Waiting()) > 0: // the question comes next
		m.history.add(transcript.Spoken(parts))
		return m.start(event.Steered{Parts: parts})
	}
	return m.say(parts)
}

// tab completes, or keeps what is written for after the run.
func (m *model) tab() tea.Cmd {
	if m.offer.open() {
		m.accept(m.commands())
		return m.suggest()
	}
	parts := m.prompt.parts()
	if !m.running || strings.TrimSpace(m.prompt.text()) == "" {
		return nil
	}
	m.history.add(transcript.Spoken(parts))
	m.clear()
	m.seat.post(m.next(event.Said{Parts: parts}, false, transcript.Spoken(parts)))
	return nil
}

func (c *composer) clear() {
	c.prompt, c.offer = editor{}, offer{}
	c.history.left()
}

func (m *model) escape() tea.Cmd {
	switch {
	case m.offer.open():
		m.offer = offer{closed: true}
	case m.running:
		return m.interrupt()
	case m.twice("escape"):
		m.hint = ""
		return m.pickPoint()
	case m.prompt.empty() && m.seat.session() != nil:
		m.hint = "once more to go back to an earlier place"
	}
	return nil
}

func (m *model) ctrlC() tea.Cmd {
	switch {
	case m.twice("interrupt") && m.prompt.empty():
		return m.quit()
	case m.running && !m.view.Idle():
		cmd := m.interrupt()
		m.hint = "interrupting; once more to leave"
		return cmd
	case !m.prompt.empty():
		m.history.add(m.prompt.text())
		m.clear()
	}
	m.hint = "once more to leave"
	return nil
}

func (m *model) quit() tea.Cmd {
	m.quitting = true
	return tea.Quit
}

// nextMode goes round the modes that need no warning.
func (m *model) nextMode() tea.Cmd {
	modes := []string{"plan", "ask", "edit", "auto"}
	i := slices.Index(modes, m.mode())
	return m.switchTo(modes[(i+1)%len(modes)])
}

// unfold shows the last result whole.
func (m *model) unfold() tea.Cmd {
	b := m.view.ended
	if b == nil {
		m.hint = "no call has ended yet"
		return nil
	}
	if m.full != nil {
		b.whole = !b.whole
		m.reflow(m.view)
		return nil
	}
	whole := *b
	whole.whole = true
	m.view.add(&whole)
	return nil
}

// editor opens what is written in the person's editor.
func (m *model) editor() tea.Cmd {
	if m.Edit == nil {
		m.hint = "set $EDITOR to write in an editor"
		return nil
	}
	path, err := scratch(m.prompt.parts().Text())
	if err != nil {
		m.fail(err)
		return nil
	}
	return tea.Exec(m.Edit(path), func(failed error) tea.Msg {
		text, err := unscratch(path)
		return later(func(m *model) tea.Cmd {
			if failed != nil || err != nil {
				m.warn(fmt.Sprint("the editor failed: ", firstError(failed, err)))
				return nil
			}
			images := slices.DeleteFunc(m.prompt.atoms, func(a atom) bool { return a.image.Data == nil })
			m.prompt.set(strings.TrimRight(text, "\n"))
			m.prompt.insert(images...)
			return nil
		})
	})
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Pastes that are longer are shown by their size.
const (
	pasteLines = 8
	pasteBytes = 2000
)

// paste takes pasted or dropped text: a path of a picture becomes the picture.
func (m *model) paste(text string) tea.Cmd {
	text = clean(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	if m.unseen() {
		m.stepBack()
	} else if b := m.box(); b != nil {
		b.paste(m, text)
		return nil
	}
	m.history.left()
	if paths := imagePaths(text); paths != nil {
		return func() tea.Msg { return readImages(paths, text) }
	}
	m.insert(text)
	return m.suggest()
}

// insert takes pasted text, by its size if it is long.
func (c *composer) insert(s string) {
	if n := strings.Count(strings.TrimRight(s, "\n"), "\n") + 1; n > pasteLines {
		c.prompt.insert(atom{shown: "[pasted " + text.Count(n, "line") + "]", whole: s})
	} else if len(s) > pasteBytes {
		c.prompt.insert(atom{shown: "[pasted " + text.Count(len(s), "byte") + "]", whole: s})
	} else {
		c.prompt.insert(atomsOf(s)...)
	}
}

// command does what a slash command says.
func (m *model) command(name, args string) tea.Cmd {
	all := m.commands()
	c, ok := all.named(name)
	if !ok {
		m.hint = all.nearest(name)
		return nil
	}
	m.clear()
	return m.do(c, args)
}

// history is what was said, to say it again.
type history struct {
	lines []string
	at    int // from the end, 0: what is being written
	draft editor
}

func (h *history) add(text string) {
	if n := len(h.lines); text != "" && (n == 0 || h.lines[n-1] != text) {
		h.lines = append(h.lines, text)
	}
	h.left()
}

// left says that something new is being written.
func (h *history) left() { h.at = 0 }

// recall moves in the prompt, and at its edges through the history.
func (c *composer) recall(action string, width int) {
	h := &c.history
	by := 1
	if action == "down" {
		if c.prompt.down(width) {
			return
		}
		by = -1
	} else if c.prompt.up(width) {
		return
	}
	to := h.at + by
	if to < 0 || to > len(h.lines) {
		return
	}
	if h.at == 0 {
		h.draft = c.prompt
	}
	if h.at = to; to == 0 {
		c.prompt = h.draft
		return
	}
	c.prompt.set(h.lines[len(h.lines)-to])
}

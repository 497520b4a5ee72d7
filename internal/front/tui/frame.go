package tui

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/view/words"
)

// Most lines that parts of the frame take.
const (
	mostPrompt  = 10
	mostCalls   = 8
	mostTodo    = 6
	mostPending = 3

	leastRuled = 14 // rows of the live part that leave room for a rule
	mostRule   = 40 // cells; a longer one would be broken, and half of it left, when the terminal shrinks
)

// View implements tea.Model: the live part at the bottom, or the whole screen.
func (m *model) View() tea.View {
	if m.quitting { // only printed lines stay
		return tea.NewView("")
	}
	s := m.screen
	lines, x, y := m.live(s.rows())
	if s.full != nil {
		above := s.full.visible(s.height-len(lines), s.print.tail)
		y += len(above)
		lines = append(above, lines...)
	}
	for i, line := range lines { // every line must stay a single line
		if len(line) > s.look.width && cells(line) > s.look.width {
			lines[i] = ansi.Truncate(line, s.look.width, "")
		}
	}
	s.remember(len(lines))
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen, v.ReportFocus = s.full != nil || m.over.isReading() && !s.printing, m.alert.reports()
	if x >= 0 {
		v.Cursor = tea.NewCursor(min(x, s.look.width), y)
	}
	return v
}

// live draws the live part in at most rows lines, and returns the position of the cursor. Room goes first to the
// status line, then to the part that takes the keys, then to work in progress, then to streaming text.
func (m *model) live(rows int) (out []string, x, y int) {
	l, left := m.screen.look, rows
	var foot, front []string
	if rows > 1 {
		foot = append(foot, m.status().line(l))
		left--
	}
	if hint := m.hints.lines(l); left > 1 {
		foot = append(hint, foot...)
		left -= len(hint)
	}
	if b := m.box(); b != nil {
		front, x, y = b.lines(l, left)
		front = front[:min(len(front), left)]
	} else {
		front, x, y = m.composer.lines(l, left)
	}
	if rows >= leastRuled && left > len(front) && !l.reader { // separates the prompt from the output
		front = append([]string{l.paint(dim, strings.Repeat("─", min(l.width, mostRule)))}, front...)
		y++
	}
	above := m.workLines(left - len(front))
	above, foot = l.spoken(above), l.spoken(foot)
	if l.reader && strings.HasPrefix(strings.Join(front, "\n"), "? ") { // the other lines hold the cursor
		front[0], _ = linear(front[0])
	}
	return slices.Concat(above, front, foot), x, y + len(above)
}

// workLines shows the work in progress in at most left lines. Messages that the model has not heard get room first,
// and are next to the prompt.
func (m *model) workLines(left int) []string {
	l, t := m.screen.look, m.talk
	now := activity{look: l, view: t.view, now: m.clock(), running: t.isWorking(), trouble: t.trouble}
	var parts [][]string
	for _, part := range [][]string{slices.Concat(m.ownCommand.lines(l, now.now), t.pendingLines(l, t.view, now.now)), now.pause(), now.calls(), now.todo()} {
		part = part[:min(len(part), max(0, left))]
		left -= len(part)
		parts = append(parts, part)
	}
	var air []string
	if left > 0 && (t.running || t.view.Run.Busy) {
		air = []string{""} // a blank line below the scrollback
		left--
	}
	return slices.Concat(m.screen.tail(left), air, parts[2], parts[1], parts[3], parts[0])
}

// status returns the content of the status line.
func (m *model) status() status {
	s := status{
		view: m.talk.view, route: cmp.Or(m.talk.route(), m.lacks.route), mode: string(m.talk.mode()),
		keys: m.composer.vim.mode(), printed: m.line.shown, server: m.talk.tui.at(), trouble: m.talk.trouble,
		loop: m.loops.line(),
	}
	if s.view.Spent.Turns == 0 {
		s.lacks = m.lacks.what
	}
	if s.view.Run.Busy && m.talk.isWorking() && !m.screen.look.reader {
		s.took = clock(m.clock().Sub(s.view.Run.Began))
	}
	return s
}

// promptLines shows an editor in at most rows lines.
func promptLines(l look, e *editor, rows int, empty string) (out []string, x, y int) {
	width := max(l.width-2, 1)
	if e.empty() {
		return []string{l.paint(boldCyan, "› ") + l.paint(dim, words.OneLine(empty, width))}, 2, 0
	}
	all := e.rows(width)
	cy, cx := e.cursorCell(all, width)
	from := max(0, min(cy-rows/2, len(all)-rows))
	for i := from; i < min(from+rows, len(all)); i++ {
		mark := "  "
		switch i {
		case 0:
			mark = l.paint(boldCyan, "› ")
		case from:
			mark = l.paint(dim, "↑ ")
		}
		out = append(out, mark+textOf(e.atoms[all[i].from:all[i].to]))
	}
	return out, cx + 2, cy - from
}

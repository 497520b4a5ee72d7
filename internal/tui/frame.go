package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/words"
)

// Most lines that parts of the picture take.
const (
	mostPrompt  = 10
	mostCalls   = 8
	mostTodo    = 6
	mostPending = 3
)

// View implements tea.Model: the live part at the bottom, or all of the screen.
func (m *model) View() tea.View {
	if m.quitting { // only what is printed stays
		return tea.NewView("")
	}
	rows := max(m.height-1, 1)
	if m.printing {
		rows = min(rows, m.room)
	}
	lines, x, y := m.live(rows)
	if m.full != nil {
		above := m.full.visible(m.height-len(lines), m.print.tail)
		y += len(above)
		lines = append(above, lines...)
	}
	for i, line := range lines { // whatever happens, a line is a line
		if len(line) > m.look.width && cells(line) > m.look.width {
			lines[i] = ansi.Truncate(line, m.look.width, "")
		}
	}
	m.remember(len(lines))
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = m.full != nil
	if x >= 0 {
		v.Cursor = tea.NewCursor(min(x, m.look.width), y)
	}
	return v
}

// live draws what goes on in at most rows lines, and tells where the cursor is.
// What matters most gets its room first: the line of the status, then what takes
// the keys, then what goes on, then the text that streams in.
func (m *model) live(rows int) (out []string, x, y int) {
	status := m.status()
	left := rows
	var foot []string
	if rows > 1 {
		foot = append(foot, status)
		left--
	}
	if m.hint != "" && left > 1 {
		foot = append([]string{m.look.paint(yellow, words.OneLine(m.hint, m.look.width))}, foot...)
		left--
	}
	var front []string
	if b := m.box(); b != nil {
		front, x, y = b.lines(m, left)
		front = front[:min(len(front), left)]
	} else {
		front, x, y = m.promptBox(left)
	}
	left -= len(front)
	now := activity{look: m.look, view: m.view, now: m.clock(), running: m.works()}
	var parts [][]string
	for _, part := range [][]string{m.pending(m.look, m.view), now.pause(), now.calls(), now.todo()} {
		part = part[:min(len(part), max(0, left))]
		left -= len(part)
		parts = append(parts, part)
	}
	if left > 0 && (m.running || m.view.Run.Busy) {
		parts = append(parts, []string{""}) // some air below the scrollback
		left--
	} else {
		parts = append(parts, nil)
	}
	var tail []string
	if m.full == nil {
		tail = m.print.tail
		tail = tail[len(tail)-max(0, min(len(tail), left)):]
	}
	for _, part := range [][]string{tail, parts[4], parts[2], parts[1], parts[3], parts[0]} {
		out = append(out, part...)
	}
	y += len(out)
	return append(append(out, front...), foot...), x, y
}

// promptBox is the prompt with what could complete it.
func (m *model) promptBox(rows int) (out []string, x, y int) {
	empty := "say what to do"
	switch {
	case m.running:
		empty = "enter says it into the run, tab keeps it for after"
	case m.cutOff() && m.driver != "":
		empty = m.driver
	case m.view.Run.Busy:
		empty = "the run was cut off; enter goes on with it"
	}
	offers := m.offer.lines(m.look, min(offered, rows-1))
	out, x, y = promptLines(m.look, &m.prompt, min(mostPrompt, max(1, rows-len(offers))), empty)
	return append(out, offers...), x, y
}

// promptLines shows an editor in at most rows lines.
func promptLines(l look, e *editor, rows int, empty string) (out []string, x, y int) {
	width := max(l.width-2, 1)
	if e.empty() {
		return []string{l.paint(bold, "› ") + l.paint(dim, words.OneLine(empty, width))}, 2, 0
	}
	all := e.rows(width)
	cy, cx := e.place(all, width)
	from := max(0, min(cy-rows/2, len(all)-rows))
	for i := from; i < min(from+rows, len(all)); i++ {
		mark := "  "
		switch i {
		case 0:
			mark = l.paint(bold, "› ")
		case from:
			mark = l.paint(dim, "↑ ")
		}
		out = append(out, mark+textOf(e.atoms[all[i].from:all[i].to]))
	}
	return out, cx + 2, cy - from
}

// status is the line at the bottom: as much of it as there is room for.
func (m *model) status() string {
	v := m.view
	fields := []string{m.mode()}
	if route := m.route(); route != "" {
		fields = append([]string{route}, fields...)
	}
	if v.Spent.Turns > 0 {
		fields = append(fields, words.Cost(v.Spent.Cost, v.Spent.Unpriced))
	}
	if pct := v.share(); pct >= 0 && v.Spent.Turns > 0 {
		fields = append(fields, fmt.Sprintf("%d%% of %dk", pct, v.Session.Window/1000))
	}
	if pct := v.cached(); pct > 0 {
		fields = append(fields, fmt.Sprintf("%d%% cached", pct))
	}
	if v.Run.Busy && m.works() {
		fields = append(fields, clock(m.clock().Sub(v.Run.Began)))
	}
	line := words.OneLine(fields[0], m.look.width)
	room := m.look.width - cells(line)
	for _, f := range fields[1:] {
		if n := cells(f) + 3; n <= room {
			line, room = line+" · "+f, room-n
		}
	}
	return m.look.paint(dim, line)
}

// route is the model that answers, or will.
func (m *model) route() string {
	switch {
	case m.view.Session.Route != "":
		return m.view.Session.Route
	case m.opts.Model != "":
		return m.opts.Model
	case m.App != nil:
		return m.App.Config.Model
	}
	return ""
}

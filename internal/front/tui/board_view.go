package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// View implements tea.Model: the whole screen.
func (m *boardModel) View() tea.View {
	if m.over {
		return tea.NewView("")
	}
	l, height := m.screen.look, m.screen.height
	front, x, y := m.footLines(max(1, height-3)) // below the title, the headings and one row
	m.room = max(1, height-2-len(front))
	m.scroll()
	heads := "  " + pad("STATE", 7) + " " + m.columns(l).afterState("WHAT", "WHERE", "AGE", "COST", "LAST")
	lines := append([]string{m.counts(l), l.paint(dim, heads)}, m.bodyLines(l)...)
	for len(lines) < height-len(front) {
		lines = append(lines, "")
	}
	lines = lines[:max(0, min(len(lines), height-len(front)))]
	y += len(lines)
	lines = append(lines, front...)
	for i, line := range lines {
		if len(line) > l.width && cells(line) > l.width {
			lines[i] = ansi.Truncate(line, l.width, "")
		}
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	if x >= 0 {
		v.Cursor = tea.NewCursor(min(x, l.width), y)
	}
	return v
}

// footLines shows the part that takes the keys: the question, the filter, or else a hint or the line of keys.
func (m *boardModel) footLines(rows int) (out []string, x, y int) {
	l := m.screen.look
	if m.ask != nil {
		if m.ask.width != l.width {
			m.ask.prepare(l)
		}
		return m.ask.lines(l, rows)
	}
	if hint := m.hints.lines(l); len(hint) > 0 && !m.typing {
		return hint, -1, 0
	}
	switch {
	case m.typing:
		return promptLines(l, &m.find, 1, "type to filter; Enter searches all that was said, Esc closes")
	case m.stop != nil:
		return []string{l.paint(yellow, words.OneLine("searching all that was said; Esc stops", l.width))}, -1, 0
	case m.said != nil:
		return []string{l.paint(dim, words.OneLine("said in these: "+m.find.text()+" · Esc shows all sessions", l.width))}, -1, 0
	case !m.find.empty():
		return []string{l.paint(dim, words.OneLine("only what matches: "+m.find.text()+" · Esc shows all sessions", l.width))}, -1, 0
	}
	return []string{l.paint(dim, words.OneLine("Enter opens · y, n answer · 1-5 and / filter · ? keys · q leaves", l.width))}, -1, 0
}

// counts shows how many sessions there are in each state, with the key that selects it. Each has a fixed place
// if there is room.
func (m *boardModel) counts(l look) string {
	states, count := m.board.Standings(), m.count
	line, room := "", l.width
	add := func(text, sgr string) {
		if n := cells(text); n <= room {
			line, room = line+l.paint(sgr, text), room-n
		}
	}
	for i, s := range states {
		text := fmt.Sprintf("%d %s %d", i+1, s, count[i])
		sgr := dim
		switch {
		case m.state == i+1:
			text, sgr = "["+text+"]", bold
		case count[i] > 0:
			sgr = boardColor(i)
		}
		if l.width < boardWide && m.state != i+1 && count[i] == 0 {
			continue
		}
		add(strings.Repeat("  ", min(1, len(line)))+text, sgr)
	}
	if at := words.On(m.server()); at != "" {
		add("  "+at, dim)
	}
	return line
}

// boardColor returns the colour of a state: warm if it needs the person.
func boardColor(state int) string { return []string{yellow, cyan, dim, red, green}[state] }

// boardWide is how many cells a line needs to have room for folders, and boardWider for costs and last words.
const (
	boardWide  = 59
	boardWider = 99
)

// boardColumns are the widths of the columns; 0 if there is no room.
type boardColumns struct{ what, where, cost, last int }

func (m *boardModel) columns(l look) (c boardColumns) {
	const fixed = 2 + 8 + 5 // the mark, the state and the age
	room := max(1, l.width-fixed)
	if l.width >= boardWider {
		c.cost = len("  cost unknown")
		room -= c.cost
		c.last = room * 2 / 5
		room -= c.last
	}
	if l.width >= boardWide {
		c.where = min(32, room/3)
	}
	c.what = room - c.where
	return c
}

// afterState returns the columns that follow the state in a line of the board. Each text is a single line.
func (c boardColumns) afterState(what, where, age, cost, last string) string {
	out := pad(what, c.what)
	if c.where > 0 {
		out += " " + pad(where, c.where-1)
	}
	out += fmt.Sprintf(" %4s", age)
	if c.cost > 0 {
		out += fmt.Sprintf(" %*s  ", c.cost-3, cost) + words.OneLine(last, c.last)
	}
	return out
}

// pad pads or cuts text to exactly width cells.
func pad(text string, width int) string {
	text = words.OneLine(text, width)
	return text + strings.Repeat(" ", max(0, width-cells(text)))
}

// bodyLines shows the rows, or the keys, or why there are no rows.
func (m *boardModel) bodyLines(l look) (out []string) {
	switch {
	case m.help:
		for _, k := range boardKeys() {
			out = append(out, wrap(pad(k[0], 16)+k[1], l.width, "  ")...)
		}
		return append(out, wrap("+2 behind a name counts subagents. Any key closes this.", l.width, "  ")...)
	case !m.listed:
		return []string{l.paint(dim, "  reading the sessions")}
	case len(m.rows) == 0:
		return wrap("There are no sessions yet. Start one with: "+words.Command(m.server(), "run", "--detach", `"..."`), l.width, "  ")
	case len(m.shown) == 0:
		return wrap("No session matches. Esc shows all sessions.", l.width, "  ")
	}
	for i := m.top; i < min(m.top+m.room, len(m.shown)); i++ {
		out = append(out, m.rowLine(l, m.rows[m.shown[i]], i == m.at))
	}
	return out
}

// rowLine shows a session.
func (m *boardModel) rowLine(l look, r app.Row, marked bool) string {
	c := m.columns(l)
	last, name, cost := r.Words, r.Name, ""
	if said, ok := m.said[r.ID]; ok {
		last = said
	}
	if c.last == 0 && last != "" && (len(r.Questions) > 0 || m.said != nil) {
		name = last // it matters more
	}
	if r.Known {
		cost = words.Cost(r.Cost, r.Unpriced)
	}
	if r.Agents > 0 {
		more := fmt.Sprintf(" +%d", r.Agents)
		name = words.OneLine(name, c.what-len(more)) + more
	}
	rest := c.afterState(name, m.shortFolder(r.Root, c.where-1), shortAge(m.clock().Sub(r.Modified)), cost, last)
	state := pad(string(r.Standing), 7)
	if marked {
		return l.paint(reverse, "› "+state+" "+rest)
	}
	return "  " + l.paint(boardColor(slices.Index(m.board.Standings(), r.Standing)), state) + " " + rest
}

// shortFolder shortens a folder to width cells. Its end says more than its beginning.
func (m *boardModel) shortFolder(root string, width int) string {
	if home, err := os.UserHomeDir(); err == nil && m.server() == "" {
		if rel, err := filepath.Rel(home, root); err == nil && filepath.IsLocal(rel) {
			root = filepath.Join("~", rel)
		}
	}
	root = words.OneLine(root, 4*max(1, width))
	if n := cells(root); n > width && width > 1 {
		return ansi.TruncateLeft(root, n-width+1, "…")
	}
	return root
}

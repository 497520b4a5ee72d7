package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Choose shows rows of a name and a note below what is on the screen, and returns the number of the row that the
// person chooses with the arrows, counted from 1, or else what they type. It returns an empty text if they go
// back, [io.EOF] if they leave with Ctrl-D, and [context.Canceled] if they interrupt.
func (t *TUI) Choose(ctx context.Context, title string, rows [][2]string) (said string, err error) {
	keys, err := keysOf(t.Keys)
	if err != nil {
		return "", err
	}
	m := newChooser(t, keys, title, rows)
	p := tea.NewProgram(m, t.options(ctx)...)
	stopped := t.signals(p)
	_, err = p.Run()
	stopped()
	if err = errors.Join(m.err, err); err == nil && m.said != "" {
		fmt.Fprintln(t.out(), m.screen.look.paint(boldCyan, "› ")+m.answer())
	}
	return m.said, err
}

// chooser is a list on the screen, outside of the front end.
type chooser struct {
	list   *picker
	keys   keymap
	screen *screen
	rows   [][2]string
	said   string // the answer; empty before it, or if the person went back
	err    error  // why there is no answer
	over   bool
}

func newChooser(t *TUI, keys keymap, title string, rows [][2]string) *chooser {
	m := &chooser{keys: keys, screen: newScreen(t), rows: rows}
	wide := 0
	for _, row := range rows {
		wide = max(wide, cells(row[0]))
	}
	var items []choice
	for i, row := range rows {
		items = append(items, choice{fmt.Sprintf("%d %s", i+1, row[0]), row[1]})
	}
	m.list = &picker{
		title: title, items: items, close: func() {},
		wide: wide + len(strconv.Itoa(len(rows))) + 1,
		take: func(i int) tea.Cmd { return m.answers(strconv.Itoa(i + 1)) },
		own:  m.answers,
	}
	return m
}

// answers ends the question.
func (m *chooser) answers(said string) tea.Cmd {
	m.said, m.over = said, true
	return tea.Quit
}

// Init implements [tea.Model].
func (m *chooser) Init() tea.Cmd { return tea.RequestBackgroundColor }

// Update implements [tea.Model].
func (m *chooser) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.resize(nil, msg.Width, msg.Height)
	case tea.BackgroundColorMsg:
		m.screen.onBackground(!msg.IsDark())
	case tea.PasteMsg:
		m.list.paste(msg.Content)
	case leave:
		m.err = context.Canceled
		return m, m.answers("")
	case tea.KeyPressMsg:
		switch action := m.keys[msg.Keystroke()]; action {
		case "interrupt":
			m.err = context.Canceled
			return m, m.answers("")
		case "quit":
			m.err = io.EOF
			return m, m.answers("")
		case "escape":
			return m, m.answers("")
		default:
			return m, m.list.key(msg, action)
		}
	}
	return m, nil
}

// answer returns the answer for people.
func (m *chooser) answer() string {
	if n, err := strconv.Atoi(m.said); err == nil && n > 0 && n <= len(m.rows) {
		return clean(m.rows[n-1][0])
	}
	return clean(m.said)
}

// View implements [tea.Model]. Nothing of the list stays on the screen.
func (m *chooser) View() tea.View {
	l := m.screen.look
	if m.over {
		return tea.NewView("")
	}
	lines, x, y := m.list.lines(l, max(m.screen.height-2, 1))
	v := tea.NewView(strings.Join(lines, "\n"))
	if x >= 0 {
		v.Cursor = tea.NewCursor(min(x, l.width), y)
	}
	return v
}

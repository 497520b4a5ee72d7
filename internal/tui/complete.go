package tui

import (
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// offer is what could complete the word before the cursor.
type offer struct {
	items  []choice
	at     int  // the one that is taken
	from   int  // where the word begins, in atoms of the prompt
	slash  bool // names of commands
	closed bool // the person does not want it for this word
}

// choice is one of a list.
type choice struct{ text, doc string }

// most items that are shown at once.
const offered = 6

func (o *offer) open() bool { return len(o.items) > 0 && !o.closed }

// move goes up or down, and reports false if nothing is offered.
func (o *offer) move(action string) bool {
	if !o.open() {
		return false
	}
	by := 1
	if action == "up" {
		by = -1
	}
	o.at = (o.at + by + len(o.items)) % len(o.items)
	return true
}

// fileList is the files of the workspace, as far as they are known.
type fileList struct {
	names   []string
	read    time.Time
	reading bool
}

// suggest looks for what could complete the word before the cursor.
func (m *model) suggest() tea.Cmd {
	from := m.prompt.at
	for from > 0 && !m.prompt.atoms[from-1].big() && strings.TrimSpace(m.prompt.atoms[from-1].shown) != "" {
		from--
	}
	word := textOf(m.prompt.atoms[from:m.prompt.at])
	was := m.offer
	m.offer = offer{from: from, closed: was.closed && was.from == from}
	switch {
	case from == 0 && strings.HasPrefix(word, "/"):
		m.offer.slash = true
		m.offer.items = m.commandsLike(word[1:])
	case strings.HasPrefix(word, "@"):
		for _, name := range fuzzy(m.files.names, word[1:], 50) {
			m.offer.items = append(m.offer.items, choice{text: "@" + name})
		}
		return m.readFiles()
	}
	return nil
}

// commandsLike are the commands that begin so; the others follow that hold it.
func (m *model) commandsLike(start string) []choice {
	var first, rest []choice
	for _, c := range m.commands() {
		item := choice{"/" + c.Name, strings.TrimSpace(c.Args + "  " + c.Doc)}
		switch {
		case c.Name == start:
			first = append([]choice{item}, first...)
		case strings.HasPrefix(c.Name, start):
			first = append(first, item)
		case start != "" && strings.Contains(c.Name, start):
			rest = append(rest, item)
		}
	}
	return append(first, rest...)
}

// accept takes the completion that is marked, and reports whether there is more
// to write.
func (m *model) accept() (more bool) {
	o := m.offer
	m.offer = offer{}
	text := o.items[o.at].text
	m.prompt.cut(o.from, m.prompt.at)
	m.prompt.insert(atomsOf(text + " ")...)
	if !o.slash {
		return true
	}
	for _, c := range m.commands() {
		if "/"+c.Name == text {
			return strings.HasPrefix(c.Args, "<") // without them it means nothing
		}
	}
	return false
}

// readFiles looks for the files of the workspace, if that was not done lately.
func (m *model) readFiles() tea.Cmd {
	if m.files.reading || !m.files.read.IsZero() && m.clock().Sub(m.files.read) < 10*time.Second {
		return nil
	}
	m.files.reading = true
	ctx, root := m.ctx, m.root()
	return func() tea.Msg {
		names := filesBelow(ctx, root)
		return later(func(m *model) tea.Cmd {
			m.files = fileList{names: names, read: m.clock()}
			return m.suggest()
		})
	}
}

// root is the workspace of the session, or of the one to come.
func (m *model) root() string {
	if m.view.Session.Root != "" {
		return m.view.Session.Root
	}
	return m.Root
}

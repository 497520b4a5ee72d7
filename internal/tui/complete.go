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

// lines are what is offered, as far as there is room.
func (o *offer) lines(l look, rows int) []string {
	if !o.open() || rows < 1 {
		return nil
	}
	from := max(0, min(o.at-rows/2, len(o.items)-rows))
	var out []string
	for i := from; i < min(from+rows, len(o.items)); i++ {
		out = append(out, choiceLine(l, o.items[i], i == o.at))
	}
	return out
}

// composer is where the person writes, with what helps.
type composer struct {
	prompt  editor
	history history
	offer   offer // completions
	files   fileList
}

// fileList is the files of the workspace, as far as they are known.
type fileList struct {
	names   []string
	read    time.Time
	reading bool
}

// suggest looks for what could complete the word before the cursor, and reports whether
// the files of the workspace could.
func (c *composer) suggest(all catalog) (files bool) {
	from := c.prompt.at
	for from > 0 && !c.prompt.atoms[from-1].big() && strings.TrimSpace(c.prompt.atoms[from-1].shown) != "" {
		from--
	}
	word := textOf(c.prompt.atoms[from:c.prompt.at])
	was := c.offer
	c.offer = offer{from: from, closed: was.closed && was.from == from}
	if from == 0 && strings.HasPrefix(word, "/") {
		c.offer.slash, c.offer.items = true, all.like(word[1:])
		return false
	}
	name, files := strings.CutPrefix(word, "@")
	if files {
		for _, name := range fuzzy(c.files.names, name, 50) {
			c.offer.items = append(c.offer.items, choice{text: "@" + name})
		}
	}
	return files
}

// accept takes the completion that is marked, and reports whether there is more
// to write.
func (c *composer) accept(all catalog) (more bool) {
	o := c.offer
	c.offer = offer{}
	text := o.items[o.at].text
	c.prompt.cut(o.from, c.prompt.at)
	c.prompt.insert(atomsOf(text + " ")...)
	if !o.slash {
		return true
	}
	command, _ := all.named(strings.TrimPrefix(text, "/"))
	return strings.HasPrefix(command.Args, "<") // without them it means nothing
}

// suggest offers what could complete the word before the cursor.
func (m *model) suggest() tea.Cmd {
	if m.composer.suggest(m.commands()) {
		return m.readFiles()
	}
	return nil
}

// readFiles looks for the files of the workspace, if that was not done lately.
func (m *model) readFiles() tea.Cmd {
	if m.files.reading || !m.files.read.IsZero() && m.clock().Sub(m.files.read) < 10*time.Second {
		return nil
	}
	a, ctx, root := m.App, m.ctx, m.root()
	if a == nil {
		return nil
	}
	m.files.reading = true
	return func() tea.Msg {
		names := a.Knowledge.Files(ctx, root)
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

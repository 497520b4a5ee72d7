package tui

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
)

// offer holds the completions of the word before the cursor.
type offer struct {
	items  []choice
	at     int  // the marked one
	from   int  // where the word begins, in atoms of the prompt
	slash  bool // the items are commands
	closed bool // the person has dismissed it for this word
}

// choice is an item of a list.
type choice struct{ text, doc string }

// most items that are shown at once
const offered = 6

func (o *offer) open() bool { return len(o.items) > 0 && !o.closed }

// move moves up or down, and returns false if nothing is offered.
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

// lines shows the completions, as far as there is room.
func (o *offer) lines(l look, rows int) []string {
	if !o.open() || rows < 1 {
		return nil
	}
	from := max(0, min(o.at-rows/2, len(o.items)-rows))
	var out []string
	for i := from; i < min(from+rows, len(o.items)); i++ {
		item := o.items[i]
		if i == o.at && len(o.items) > rows { // the rest is out of sight
			item.doc = fmt.Sprintf("(%d of %d) ", i+1, len(o.items)) + item.doc
		}
		out = append(out, choiceLine(l, item, i == o.at, 0))
	}
	return out
}

// fileList holds the known files of the workspace.
type fileList struct {
	names   []string
	read    time.Time
	reading bool
}

// offerCompletions offers completions of the word before the cursor.
func (c *composer) offerCompletions() tea.Cmd {
	from := c.prompt.at
	for from > 0 && !c.prompt.atoms[from-1].isLarge() && strings.TrimSpace(c.prompt.atoms[from-1].shown) != "" {
		from--
	}
	word := textOf(c.prompt.atoms[from:c.prompt.at])
	was := c.offer
	c.offer = offer{from: from, closed: was.closed && was.from == from}
	if from == 0 && strings.HasPrefix(word, "/") {
		c.offer.slash, c.offer.items = true, c.commands().matching(word[1:])
		return nil
	}
	name, files := strings.CutPrefix(word, "@")
	if !files {
		return nil
	}
	for _, name := range fuzzy(c.files.names, name, 50) {
		c.offer.items = append(c.offer.items, choice{text: "@" + name})
	}
	return c.readFiles()
}

// accept takes the marked completion, and reports whether there is more to write.
func (c *composer) accept() (more bool) {
	o := c.offer
	c.offer = offer{}
	text := o.items[o.at].text
	c.prompt.cut(o.from, c.prompt.at)
	c.prompt.insert(atomsOf(text + " ")...)
	if !o.slash {
		return true
	}
	command, _ := c.commands().find(strings.TrimPrefix(text, "/"))
	return strings.HasPrefix(command.Args, "<") // without arguments the command means nothing
}

// readFiles lists the files of the workspace, unless that was done recently.
func (c *composer) readFiles() tea.Cmd {
	a := c.talk.tui.here()
	if a == nil || c.files.reading || !c.files.read.IsZero() && c.clock().Sub(c.files.read) < 10*time.Second {
		return nil
	}
	c.files.reading = true
	ctx, root := c.talk.ctx, c.talk.root()
	return func() tea.Msg {
		names := a.Knowledge.Files(ctx, root)
		return later(func() tea.Cmd {
			c.files = fileList{names: names, read: c.clock()}
			return c.offerCompletions()
		})
	}
}

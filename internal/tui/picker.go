package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/words"
)

// picker is a list to choose from, with a search.
type picker struct {
	title string
	items []choice
	take  func(m *model, i int) tea.Cmd // i counts in items
	find  editor
	at    int // among those found
}

// found are the items that hold all words of the search.
func (p *picker) found() []int {
	words := strings.Fields(strings.ToLower(p.find.text()))
	var out []int
next:
	for i, c := range p.items {
		text := strings.ToLower(c.text + " " + c.doc)
		for _, w := range words {
			if !strings.Contains(text, w) {
				continue next
			}
		}
		out = append(out, i)
	}
	return out
}

// lines implements box.
func (p *picker) lines(m *model, rows int) (out []string, x, y int) {
	l, found := m.look, p.found()
	p.at = max(0, min(p.at, len(found)-1))
	room := max(1, rows-2)
	from := max(0, min(p.at-room/2, len(found)-room))
	out = append(out, l.paint(yellow, words.OneLine(fmt.Sprintf("%s (%d of %d)", p.title, len(found), len(p.items)), l.width)))
	for i := from; i < min(from+room, len(found)); i++ {
		out = append(out, choiceLine(l, p.items[found[i]], i == p.at))
	}
	prompt, x, y := promptLines(l, &p.find, 1, "search; enter takes, esc closes")
	return append(out, prompt...), x, y + len(out)
}

// choiceLine is one line of a list.
func choiceLine(l look, c choice, marked bool) string {
	text := words.OneLine(c.text, max(l.width-4, 1))
	room := l.width - 4 - len([]rune(text))
	doc := ""
	if c.doc != "" && room > 8 {
		doc = "  " + words.OneLine(c.doc, room-2)
	}
	if marked {
		return l.paint(reverse, "› "+text) + l.paint(dim, doc)
	}
	return "  " + text + l.paint(dim, doc)
}

// key implements box.
func (p *picker) key(m *model, k tea.KeyPressMsg, action string) tea.Cmd {
	switch action {
	case "send":
		found := p.found()
		if len(found) == 0 {
			return nil
		}
		m.over = nil
		return p.take(m, found[p.at])
	case "escape", "interrupt":
		m.over = nil
	case "quit":
		m.over = nil
	case "up":
		p.at = max(0, p.at-1)
	case "down", "queue":
		p.at++
	case "page-up":
		p.at = max(0, p.at-10)
	case "page-down":
		p.at += 10
	default:
		if p.find.key(k, action, m.look.width) {
			p.at = 0
		}
	}
	return nil
}

// paste implements box.
func (p *picker) paste(_ *model, text string) {
	p.find.insert(atomsOf(strings.ReplaceAll(text, "\n", " "))...)
}

// confirm asks something that is answered by yes or no.
type confirm struct {
	title string
	body  []string // plain text
	yes   func(m *model) tea.Cmd
	top   int
}

// lines implements box.
func (c *confirm) lines(m *model, rows int) (out []string, x, y int) {
	l := m.look
	var body []string
	for _, line := range c.body {
		body = append(body, broken(clean(line), l.width, "  ")...)
	}
	page := max(1, rows-2)
	c.top = max(0, min(c.top, len(body)-page))
	out = append(out, l.paint(yellow, "? "+words.OneLine(c.title, l.width-2)))
	out = append(out, body[c.top:min(len(body), c.top+page)]...)
	foot := "  y yes · n no"
	if len(body) > page {
		foot += fmt.Sprintf(" · lines %d-%d of %d", c.top+1, min(len(body), c.top+page), len(body))
	}
	return append(out, words.OneLine(foot, l.width)), -1, 0
}

// key implements box.
func (c *confirm) key(m *model, k tea.KeyPressMsg, action string) tea.Cmd {
	switch {
	case k.Text == "y" || k.Text == "Y":
		m.over = nil
		return c.yes(m)
	case k.Text == "n" || k.Text == "N", action == "escape", action == "interrupt", action == "quit":
		m.over = nil
		m.tell("nothing was changed")
	case action == "page-down" || action == "down":
		c.top += 5
	case action == "page-up" || action == "up":
		c.top = max(0, c.top-5)
	}
	return nil
}

// paste implements box.
func (c *confirm) paste(*model, string) {}

package tui

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/inspan/inspan/internal/view/words"
)

// box is something that takes the keys instead of the prompt.
type box interface {
	// lines shows the box in at most rows lines, and returns the cell of the cursor; x is negative if there is
	// none.
	lines(l look, rows int) (lines []string, x, y int)
	// key handles a key with its action, which is empty if the key has none.
	key(k tea.KeyPressMsg, action string) tea.Cmd
	// paste handles pasted text.
	paste(text string)
}

// overlay is the dialog above the prompt, if one is open.
type overlay struct{ box box }

func (o *overlay) close() { o.box = nil }

// pick opens a list; take gets the index of the chosen item.
func (o *overlay) pick(title string, items []choice, take func(i int) tea.Cmd) *picker {
	p := &picker{title: title, items: items, take: take, close: o.close}
	o.box = p
	return p
}

// markCurrent marks the current item, and begins with it.
func (p *picker) markCurrent(text string) {
	for i, c := range p.items {
		if c.text == text {
			p.items[i].doc, p.at = strings.TrimSuffix("now · "+c.doc, " · "), i
		}
	}
}

// confirm asks a yes-no question.
func (o *overlay) confirm(title string, body []string, yes func() tea.Cmd, no func()) {
	o.box = &confirm{title: title, body: body, yes: yes, no: no, close: o.close}
}

// openText opens our own text for reading, on a screen of its own: it leaves nothing in the scrollback, whatever the
// terminal does to lines when its size changes.
func (o *overlay) openText(text string) {
	o.box = &panel{text: strings.TrimRight(text, "\n"), close: o.close}
}

// isReading reports whether our own text is open.
func (o *overlay) isReading() bool {
	_, reads := o.box.(*panel)
	return reads
}

// panel is a text to read.
type panel struct {
	text  string
	close func()
	top   int // first shown line
	page  int // number of shown lines
	all   int // number of lines
}

// lines implements box.
func (p *panel) lines(l look, rows int) (out []string, x, y int) {
	all := columns(l, p.text)
	p.page, p.all = max(1, rows-1), len(all)
	p.top = max(0, min(p.top, len(all)-p.page))
	end := min(len(all), p.top+p.page)
	foot := "Esc closes"
	if len(all) > p.page {
		foot += fmt.Sprintf(" · up, down and space scroll · lines %d-%d of %d", p.top+1, end, len(all))
	}
	return append(slices.Clone(all[p.top:end]), l.paint(dim, words.OneLine(foot, l.width))), -1, 0
}

// key implements box.
func (p *panel) key(k tea.KeyPressMsg, action string) tea.Cmd {
	switch {
	case k.Text == "?", k.Text == "q", slices.Contains([]string{"escape", "interrupt", "quit", "send"}, action):
		p.close()
	case action == "up":
		p.top--
	case action == "down":
		p.top++
	case action == "page-up":
		p.top -= p.page
	case action == "page-down", k.Text == " ":
		p.top += p.page
	case action == "home":
		p.top = 0
	case action == "end":
		p.top = p.all
	}
	return nil
}

// paste implements box.
func (p *panel) paste(string) {}

// picker is a list to choose from, with a search.
type picker struct {
	title string
	items []choice
	take  func(i int) tea.Cmd // i is an index of items
	// own takes a text that names no item, or a number. If nil, only items can be chosen.
	own   func(text string) tea.Cmd
	wide  int // cells of the texts, so that the documents form a column; 0 means they don't
	close func()
	find  editor
	at    int             // index among those found
	has   map[string]bool // texts of the items
	lower []string        // texts of the items in lower case
	width int             // when it was last shown
}

// add adds items that the list lacks. The marked item stays marked, since the person may be about to choose it.
func (p *picker) add(texts ...string) {
	marked := -1
	if found := p.found(); len(found) > 0 {
		marked = found[min(p.at, len(found)-1)]
	}
	if p.has == nil {
		p.has = map[string]bool{}
	}
	for _, text := range texts {
		if !p.has[text] {
			p.has[text] = true
			p.items = append(p.items, choice{text: text})
		}
	}
	p.at = max(0, slices.Index(p.found(), marked))
}

// found returns the items with all words of the search: first those that contain it as written, then those
// whose text has the words.
func (p *picker) found() []int {
	const kinds = 3
	var ranks [kinds][]int
	typed := strings.TrimSpace(strings.ToLower(p.find.text()))
	for i, c := range p.items {
		if i == len(p.lower) {
			p.lower = append(p.lower, strings.ToLower(c.text))
		}
		if rank := rankOf(p.lower[i], strings.ToLower(c.doc), typed); rank < kinds {
			ranks[rank] = append(ranks[rank], i)
		}
	}
	return slices.Concat(ranks[:]...)
}

// rankOf returns how near an item is to the typed text; 0 is nearest, and 3 means that words are missing.
func rankOf(text, doc, typed string) int {
	if strings.Contains(text, typed) {
		return 0
	}
	rank := 1
	for word := range strings.FieldsSeq(typed) {
		switch {
		case strings.Contains(text, word):
		case strings.Contains(doc, word):
			rank = 2
		default:
			return 3
		}
	}
	return rank
}

// lines implements box.
func (p *picker) lines(l look, rows int) (out []string, x, y int) {
	found := p.found()
	p.width = l.width
	p.at = max(0, min(p.at, len(found)-1))
	room := max(1, rows-2)
	from := max(0, min(p.at-room/2, len(found)-room))
	title, hint := fmt.Sprintf("%s (%d of %d)", p.title, len(found), len(p.items)), "type to search; Enter selects, Esc closes"
	if p.own != nil {
		title, hint = p.title, "arrows choose; or type a number or a name. Enter selects, Esc goes back"
	}
	out = append(out, l.paint(yellow, words.OneLine(title, l.width)))
	for i := from; i < min(from+room, len(found)); i++ {
		out = append(out, choiceLine(l, p.items[found[i]], i == p.at, p.wide))
	}
	if p.own != nil && len(found) == 0 {
		out = append(out, l.paint(dim, "  Enter takes what you typed"))
	}
	prompt, x, y := promptLines(l, &p.find, 1, hint)
	return append(out, prompt...), x, y + len(out)
}

// choiceLine shows one item of a list, whose texts take at least so many cells.
func choiceLine(l look, c choice, marked bool, wide int) string {
	text := pad(c.text, min(max(wide, cells(c.text)), max(l.width-4, 1)))
	room := l.width - 4 - cells(text)
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
func (p *picker) key(k tea.KeyPressMsg, action string) tea.Cmd {
	switch action {
	case "send":
		found, typed := p.found(), strings.TrimSpace(p.find.text())
		if _, err := strconv.Atoi(typed); p.own != nil && (err == nil || len(found) == 0) {
			return p.own(typed)
		}
		if len(found) == 0 {
			return nil
		}
		p.close()
		return p.take(found[min(p.at, len(found)-1)])
	case "escape", "interrupt", "quit":
		p.close()
	case "up":
		p.at = max(0, p.at-1)
	case "down", "queue":
		p.at++
	case "page-up":
		p.at = max(0, p.at-10)
	case "page-down":
		p.at += 10
	default:
		if p.find.key(k, action, p.width) {
			p.at = 0
		}
	}
	return nil
}

// paste implements box.
func (p *picker) paste(text string) {
	p.find.insert(atomsOf(strings.ReplaceAll(text, "\n", " "))...)
}

// confirm is a yes-no question.
type confirm struct {
	title string
	body  []string // plain text
	yes   func() tea.Cmd
	no    func()
	close func()
	top   int
}

// lines implements box.
func (c *confirm) lines(l look, rows int) (out []string, x, y int) {
	var body []string
	for _, line := range c.body {
		body = append(body, wrap(clean(line), l.width, "  ")...)
	}
	title := wrapHanging(l, "? ", c.title)
	page := max(1, rows-1-len(title))
	c.top = max(0, min(c.top, len(body)-page))
	out = append(out, paintAll(l, yellow, title)...)
	out = append(out, body[c.top:min(len(body), c.top+page)]...)
	foot := "y yes · n no"
	if len(body) > page {
		foot += fmt.Sprintf(" · lines %d-%d of %d", c.top+1, min(len(body), c.top+page), len(body))
	}
	return append(out, "  "+words.OneLine(foot, l.width-2)), -1, 0
}

// key implements box.
func (c *confirm) key(k tea.KeyPressMsg, action string) tea.Cmd {
	switch {
	case k.Text == "y" || k.Text == "Y":
		c.close()
		return c.yes()
	case k.Text == "n" || k.Text == "N", action == "escape", action == "interrupt", action == "quit":
		c.close()
		c.no()
	case action == "page-down" || action == "down":
		c.top += 5
	case action == "page-up" || action == "up":
		c.top = max(0, c.top-5)
	}
	return nil
}

// paste implements box.
func (c *confirm) paste(string) {}

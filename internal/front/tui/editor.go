package tui

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan/llm"
)

// editor is a text that a person is writing: a list of atoms and a position.
type editor struct {
	atoms []atom
	at    int // atoms before the cursor
	goal  int // cell that moving up and down aims for; -1 means that of the cursor
}

// atom is a unit for the cursor: a character, or something large that the text shows by name.
type atom struct {
	shown string    // "\n" ends a line
	whole string    // its content; empty if that is what is shown
	image llm.Image // has data if the atom is a picture
}

func (a atom) isLarge() bool { return a.whole != "" || a.image.Data != nil }

// atomsOf splits text into atoms. The text may come from anywhere, so everything that controls a terminal is
// removed.
func atomsOf(text string) []atom {
	text = clean(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"))
	atoms := make([]atom, 0, len(text))
	for len(text) > 0 {
		cluster, _ := ansi.FirstGraphemeCluster(text, ansi.GraphemeWidth)
		if strings.HasPrefix(text, "\n") {
			cluster = "\n"
		}
		atoms = append(atoms, atom{shown: cluster})
		text = text[len(cluster):]
	}
	return atoms
}

func (e *editor) empty() bool { return len(e.atoms) == 0 }

// set replaces the whole text.
func (e *editor) set(text string) {
	e.atoms = atomsOf(text)
	e.at, e.goal = len(e.atoms), -1
}

// insert inserts atoms at the cursor.
func (e *editor) insert(atoms ...atom) {
	e.atoms = append(e.atoms[:e.at:e.at], append(atoms, e.atoms[e.at:]...)...)
	e.at, e.goal = e.at+len(atoms), -1
}

// cut removes the atoms from i to j and puts the cursor there.
func (e *editor) cut(i, j int) {
	i, j = max(i, 0), min(j, len(e.atoms))
	if i < j {
		e.atoms = append(e.atoms[:i:i], e.atoms[j:]...)
	}
	e.at, e.goal = min(i, len(e.atoms)), -1
}

// text returns the text, with large things by name.
func (e *editor) text() string { return textOf(e.atoms) }

func textOf(atoms []atom) string {
	var b strings.Builder
	for _, a := range atoms {
		b.WriteString(a.shown)
	}
	return b.String()
}

// parts returns the whole content.
func (e *editor) parts() llm.Parts {
	var parts llm.Parts
	var b strings.Builder
	flush := func() {
		if b.Len() > 0 {
			parts = append(parts, llm.Text{Text: b.String()})
			b.Reset()
		}
	}
	for _, a := range e.atoms {
		switch {
		case a.image.Data != nil:
			b.WriteString(a.shown)
			flush()
			parts = append(parts, a.image)
		case a.whole != "":
			b.WriteString(a.whole)
		default:
			b.WriteString(a.shown)
		}
	}
	flush()
	return parts
}

// word returns where the word before the cursor begins.
func (e *editor) word() int {
	i := e.at
	for i > 0 && !isWordRune(e.atoms[i-1]) {
		i--
	}
	for i > 0 && isWordRune(e.atoms[i-1]) {
		i--
	}
	return i
}

// wordEnd returns where the word after the cursor ends.
func (e *editor) wordEnd() int {
	i := e.at
	for i < len(e.atoms) && !isWordRune(e.atoms[i]) {
		i++
	}
	for i < len(e.atoms) && isWordRune(e.atoms[i]) {
		i++
	}
	return i
}

func isWordRune(a atom) bool {
	return a.isLarge() || strings.IndexFunc(a.shown, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }) >= 0
}

// lineStart and lineEnd return the ends of the cursor's line.
func (e *editor) lineStart() int {
	i := e.at
	for i > 0 && e.atoms[i-1].shown != "\n" {
		i--
	}
	return i
}

func (e *editor) lineEnd() int {
	i := e.at
	for i < len(e.atoms) && e.atoms[i].shown != "\n" {
		i++
	}
	return i
}

// row is one line as shown: the atoms from one index to another.
type row struct{ from, to int }

// rows breaks the text at width cells.
func (e *editor) rows(width int) []row {
	rows, cells := []row{{}}, 0
	for i, a := range e.atoms {
		last := &rows[len(rows)-1]
		if a.shown == "\n" {
			last.to = i
			rows, cells = append(rows, row{i + 1, i + 1}), 0
			continue
		}
		w := ansi.StringWidth(a.shown)
		if cells+w > width && cells > 0 {
			rows, cells = append(rows, row{i, i}), 0
			last = &rows[len(rows)-1]
		}
		last.to, cells = i+1, cells+w
	}
	return rows
}

// cursorCell returns the row and the cell of the cursor.
func (e *editor) cursorCell(rows []row, width int) (y, x int) {
	for i, r := range rows {
		next := i+1 < len(rows) && rows[i+1].from == e.at && r.to == e.at // the start of the next row is the same position
		if e.at >= r.from && e.at <= r.to && !next {
			return i, min(e.cells(r.from, e.at), width)
		}
	}
	return len(rows) - 1, 0
}

func (e *editor) cells(i, j int) int {
	n := 0
	for _, a := range e.atoms[i:j] {
		n += ansi.StringWidth(a.shown)
	}
	return n
}

// up and down move by rows. They return false at the edge.
func (e *editor) up(width int) bool   { return e.vertical(width, -1) }
func (e *editor) down(width int) bool { return e.vertical(width, 1) }

func (e *editor) vertical(width, by int) bool {
	rows := e.rows(width)
	y, x := e.cursorCell(rows, width)
	if y+by < 0 || y+by >= len(rows) {
		return false
	}
	goal := max(x, e.goal)
	r := rows[y+by]
	i := r.from
	for i < r.to && e.cells(r.from, i+1) <= goal {
		i++
	}
	if i == r.to && y+by+1 < len(rows) && rows[y+by+1].from == i && i > r.from {
		i-- // a full row ends where the next begins
	}
	e.at, e.goal = i, goal
	return true
}

// key edits the text. It returns false if the key means nothing to an editor.
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
		e.cut(at, max(e.lineEnd(), min(at+1, len(e.atoms)))) // at the end of a line, it cuts the line break
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

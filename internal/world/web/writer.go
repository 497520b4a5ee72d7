package web

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

const (
	maxText   = 2 << 20 // bytes of the text of a page
	maxLevels = 8       // nesting of lists and quotes that is rendered
	maxMarks  = 6       // nesting of links and emphases
)

// A writer writes Markdown. It delays white space, line ends and the marks around words until the next word
// comes, so that none is left over.
type writer struct {
	out    strings.Builder
	limit  int
	cut    bool
	levels []level
	head   string // begins the next line: "## "
	gap    int    // pending line ends before the next word
	space  bool   // a pending space before it
	begun  bool   // the line has a word
	marks  []mark
}

// A level is a list or quote that prefixes each line; the first line of an item has its own prefix.
type level struct {
	first, rest string
	used        bool
}

// A mark surrounds words. It ends with its paragraph, and restarts in the next one unless it is a link.
type mark struct {
	open, shut string
	on         bool
	once, done bool
}

func (w *writer) full() bool { return w.out.Len() >= w.limit }

// put writes as long as there is room.
func (w *writer) put(s string) {
	if room := w.limit - w.out.Len(); len(s) > room {
		s, w.cut = text.Head(s, max(room, 0)), true
	}
	w.out.WriteString(s)
}

// words writes running text.
func (w *writer) words(text string) {
	if text == "" {
		return
	}
	if r, _ := utf8.DecodeRuneInString(text); unicode.IsSpace(r) {
		w.space = true
	}
	first := true
	for word := range strings.FieldsSeq(text) {
		w.space = w.space || !first
		first = false
		w.word(word)
	}
	if r, _ := utf8.DecodeLastRuneInString(text); unicode.IsSpace(r) {
		w.space = true
	}
}

// word writes text that must not be split.
func (w *writer) word(s string) {
	w.begin()
	if w.space && w.begun {
		w.put(" ")
	}
	w.space, w.begun = false, true
	for i := range w.marks {
		if m := &w.marks[i]; !m.on && !m.done {
			m.on = true
			w.put(m.open)
		}
	}
	w.put(s)
}

// begin begins a line, if none is begun.
func (w *writer) begin() {
	if w.begun {
		return
	}
	if w.out.Len() > 0 {
		for range w.gap - 1 {
			w.put("\n" + strings.TrimRight(w.prefix(false), " "))
		}
		w.put("\n")
	}
	w.gap, w.space, w.begun = 0, false, true
	w.put(w.prefix(true) + w.head)
	w.head = ""
}

// prefix returns the prefix of a line.
func (w *writer) prefix(use bool) string {
	var b strings.Builder
	for i := range w.levels {
		l := &w.levels[i]
		if use && !l.used {
			l.used = true
			b.WriteString(l.first)
			continue
		}
		if !use && !l.used {
			break // an empty line before an item is not yet in it
		}
		b.WriteString(l.rest)
	}
	return b.String()
}

// line ends the line.
func (w *writer) line() { w.end(1) }

// paragraph ends the paragraph. The marker of an item stays on its line.
func (w *writer) paragraph() {
	if n := len(w.levels); n > 0 && !w.levels[n-1].used {
		w.end(1)
		return
	}
	w.end(2)
}

func (w *writer) end(gap int) {
	for i := len(w.marks) - 1; i >= 0; i-- {
		w.shut(&w.marks[i])
	}
	w.gap = max(w.gap, gap)
	w.begun, w.space = false, false
}

func (w *writer) shut(m *mark) {
	if m.on {
		w.put(m.shut)
		m.on, m.done = false, m.once
	}
}

// within writes the output of f between marks.
func (w *writer) within(m mark, f func()) {
	if len(w.marks) >= maxMarks {
		f()
		return
	}
	w.marks = append(w.marks, m)
	f()
	n := len(w.marks) - 1
	w.shut(&w.marks[n])
	w.marks = w.marks[:n]
}

// nested writes the output of f in a list item or a quote.
func (w *writer) nested(first, rest string, f func()) {
	if len(w.levels) >= maxLevels {
		w.line()
		f()
		w.line()
		return
	}
	w.levels = append(w.levels, level{first: first, rest: rest})
	f()
	w.levels = w.levels[:len(w.levels)-1]
}

// verbatim writes lines unchanged.
func (w *writer) verbatim(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if w.full() {
			w.cut = true
			return
		}
		w.begin()
		w.put(line)
		w.line()
	}
}

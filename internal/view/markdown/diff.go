package markdown

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Diff shows a unified diff: its files as headings, then the lines with their numbers (those of the new file;
// of the old one for removed lines), their signs, and the code in the colours of its language. In changed lines,
// the different words have another background. Long lines are wrapped. Width is as for Render. Text that is not
// a diff is shown as text.
func Diff(unified string, width int, s Style) string {
	if width <= 0 {
		width = 80
	}
	digits := 0 // of the largest line number
	rows := diffRows(unified, s)
	for _, r := range rows {
		if n := max(r.old, r.fresh); n > 0 {
			digits = max(digits, len(strconv.Itoa(n)))
		}
	}
	var out []line
	for i, r := range rows {
		if r.heads && i > 0 {
			out = append(out, nil)
		}
		out = append(out, r.screen(width, digits)...)
	}
	return strings.TrimRight(strings.Join(s.paintAll(out), "\n"), "\n")
}

// row is one line of a diff.
type row struct {
	old, fresh int    // its numbers in the old and the new file; 0 means none
	sign       string // empty if it is not a line of a file
	how        look   // of the sign, and of text without a colour of its own
	heads      bool   // it is the heading of a file
	text       line
}

// DiffHTML converts a unified diff for a page, line by line: each is a span with the class row, with its numbers in the
// old and the new file and its sign; its second class is added, removed or hunk. Code has spans as in [HTML], and u around
// the words that differ. Nothing in it is active.
func DiffHTML(unified string, lexers *Lexers) (lines []string) {
	for _, r := range diffRows(unified, Style{Lexers: lexers, classes: true}) {
		lines = append(lines, r.page())
	}
	return lines
}

// page returns the row as HTML.
func (r row) page() string {
	w := &pageWriter{}
	class := map[string]string{"+": " added", "-": " removed", "": " hunk"}[r.sign]
	w.within("span", ` class="row`+class+`"`, func() {
		for _, n := range []int{r.old, r.fresh} {
			w.within("i", "", func() {
				if n > 0 {
					w.text(strconv.Itoa(n))
				}
			})
		}
		w.within("span", "", func() {
			w.text(r.sign)
			for _, s := range r.text {
				w.span(s)
			}
		})
	})
	return w.String()
}

// span writes a piece of a line of a diff.
func (w *pageWriter) span(s span) {
	inner := func() { w.text(s.text) }
	if s.look.back != "" {
		words := inner
		inner = func() { w.within("u", "", words) }
	}
	if s.look.color == "" {
		inner()
		return
	}
	w.within("span", ` class="t-`+s.look.color+`"`, inner)
}

// diffRows returns the lines of a unified diff. A file has one heading, without the lines of its head.
func diffRows(unified string, s Style) []row {
	if s.Lexers == nil {
		s.Lexers = &Lexers{}
	}
	lines := strings.Split(strings.TrimRight(unified, "\n"), "\n")
	d := differ{style: s}
	end := lineEnd(lines)
	for _, l := range lines {
		l = strings.TrimSuffix(l, end)
		head, _, _ := strings.Cut(l, "\t")
		d.path = Plain(head)
		if signed(l) { // its sign moves no tab
			l = l[:1] + Plain(l[1:])
		} else {
			l = Plain(l)
		}
		d.line(l)
	}
	d.change()
	d.tell()
	return d.rows
}

// screen returns the row as lines of a terminal, with its number in a column of so many digits, if there is room.
func (r row) screen(width, digits int) (out []line) {
	if r.sign == "" {
		return chop(r.text, width)
	}
	numbers := span{"", look{faint: true}}
	if digits > 0 && width-digits-3 >= least {
		numbers.text = strings.Repeat(" ", digits+1)
	}
	text := slices.Clone(r.text)
	for i, s := range text {
		text[i].look.color = cmp.Or(s.look.color, r.how.color)
	}
	sign := r.sign
	for i, part := range chop(text, max(1, width-len(numbers.text)-2)) {
		first := numbers
		if i > 0 {
			sign = " "
		} else if n := cmp.Or(r.fresh, r.old); n > 0 && numbers.text != "" {
			first.text = fmt.Sprintf("%*d ", digits, n)
		}
		out = append(out, append(line{first, {sign + " ", r.how}}, part...))
	}
	return out
}

// lineEnd returns "\r" if all lines of the files end with it. If only some do, it is part of the change, and is
// shown.
func lineEnd(lines []string) string {
	for _, l := range lines {
		if signed(l) && !strings.HasSuffix(l, "\r") && !strings.HasPrefix(l, "--- ") && !strings.HasPrefix(l, "+++ ") {
			return ""
		}
	}
	return "\r"
}

// signed reports whether a line begins like one of a file.
func signed(l string) bool { return l != "" && strings.IndexByte("+- ", l[0]) >= 0 }

// differ reads a diff line by line.
type differ struct {
	style Style
	rows  []row

	old, fresh         int    // numbers of the next lines; 0 means unknown
	oldLeft, freshLeft int    // remaining lines of the hunk
	path               string // the line, up to a tab
	from               string
	held               []string // of a file's head; dropped if the file gets a heading
	language           string
	before, after      code       // highlight the lines of the old and the new file in the current hunk
	minus, plus        []numbered // of the current change
}

type numbered struct {
	number int
	text   string
	code   line // text in the colours of its language
}

func (d *differ) line(l string) {
	from, isOld := strings.CutPrefix(d.path, "--- ")
	to, isNew := strings.CutPrefix(d.path, "+++ ")
	switch {
	case d.inHunk(l):
	case isOld, strings.HasPrefix(l, "diff --git "), strings.HasPrefix(l, "index "),
		l == "new file mode 100644", l == "deleted file mode 100644":
		d.change()
		if isOld {
			d.from = from
		}
		d.held = append(d.held, l)
	case isNew:
		d.change()
		d.file(to)
	case strings.HasPrefix(l, "-"):
		d.gone(0, l[1:])
	case strings.HasPrefix(l, "+"):
		d.come(0, l[1:])
	default:
		d.change()
		d.other(l)
	}
}

// other handles a line that is not of a file, such as the head of a hunk.
func (d *differ) other(l string) {
	d.tell()
	how := look{faint: true}
	if old, fresh, ok := text.Hunk(l); ok {
		d.old, d.oldLeft, d.fresh, d.freshLeft = old.First, old.Count, fresh.First, fresh.Count
		d.before, d.after = highlighter(d.style, d.language), highlighter(d.style, d.language)
		how = look{color: d.style.pick(comment)}
	} else {
		d.old, d.fresh = 0, 0 // part of the hunk may have been left out here
	}
	d.add(line{{l, how}})
}

// gone handles a removed line. After added lines, it begins another change.
func (d *differ) gone(number int, text string) {
	if len(d.plus) > 0 {
		d.change()
	}
	d.minus = append(d.minus, numbered{number, text, d.before.line(text)})
}

// come handles an added line.
func (d *differ) come(number int, text string) {
	d.plus = append(d.plus, numbered{number, text, d.after.line(text)})
}

// inHunk handles a line if the open hunk has lines left.
func (d *differ) inHunk(l string) bool {
	sign := " "
	if l != "" {
		sign = l[:1]
	}
	switch {
	case sign == `\`:
		d.change()
		d.add(line{{l, look{faint: true}}})
	case sign == "-" && d.oldLeft > 0:
		d.gone(d.old, l[1:])
		d.old, d.oldLeft = after(d.old), d.oldLeft-1
	case sign == "+" && d.freshLeft > 0:
		d.come(d.fresh, l[1:])
		d.fresh, d.freshLeft = after(d.fresh), d.freshLeft-1
	case sign == " " && d.oldLeft > 0 && d.freshLeft > 0:
		d.change()
		kept := strings.TrimPrefix(l, " ")
		d.before.line(kept)
		d.rows = append(d.rows, row{old: d.old, fresh: d.fresh, sign: " ", text: d.after.line(kept)})
		d.old, d.oldLeft, d.fresh, d.freshLeft = after(d.old), d.oldLeft-1, after(d.fresh), d.freshLeft-1
	default:
		return false
	}
	return true
}

// after returns the number of the next line; 0 stays unknown.
func after(n int) int {
	if n == 0 {
		return 0
	}
	return n + 1
}

// tell shows the held lines, because there is no heading for them.
func (d *differ) tell() {
	for _, l := range d.held {
		d.add(line{{l, look{faint: true}}})
	}
	d.from, d.held = "", nil
}

// file shows the name of the file of the next hunks.
func (d *differ) file(to string) {
	from := d.from
	name := func(p string) string { return strings.TrimPrefix(strings.TrimPrefix(p, "a/"), "b/") }
	title := name(to)
	switch {
	case from == "/dev/null":
		title += " (new)"
	case to == "/dev/null":
		title = name(from) + " (deleted)"
	case from != "" && name(from) != name(to):
		title = name(from) + " → " + name(to)
	}
	d.from, d.held = "", nil
	at := cmp.Or(strings.TrimSuffix(name(to), "/dev/null"), name(from))
	d.language = cmp.Or(strings.TrimPrefix(path.Ext(at), "."), path.Base(at)) // as lexerFile takes it
	d.rows = append(d.rows, row{heads: true, text: line{{title, look{bold: true, color: d.style.pick(heading)}}}})
}

// change shows removed lines and their replacements, compared one by one.
func (d *differ) change() {
	gone := look{color: d.style.pick(removed)}
	come := look{color: d.style.pick(added)}
	before, after := make([][][2]int, len(d.minus)), make([][][2]int, len(d.plus))
	for i := range min(len(d.minus), len(d.plus)) {
		before[i], after[i] = reworded(d.minus[i].text, d.plus[i].text)
	}
	for i, m := range d.minus {
		d.rows = append(d.rows, row{old: m.number, sign: "-", how: gone, text: marked(m.code, before[i], d.style.tint(removed))})
	}
	for i, p := range d.plus {
		d.rows = append(d.rows, row{fresh: p.number, sign: "+", how: come, text: marked(p.code, after[i], d.style.tint(added))})
	}
	d.minus, d.plus = nil, nil
}

// add shows a line that is not of a file.
func (d *differ) add(l line) { d.rows = append(d.rows, row{text: l}) }

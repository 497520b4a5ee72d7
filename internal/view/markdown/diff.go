package markdown

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Diff shows a unified diff: its files as headings, then the lines with their numbers (those of the new file;
// of the old one for removed lines), their signs, and the code in the colours of its language. In changed lines,
// the different words have another background. Long lines are wrapped. Width is as for Render. Text that is not
// a diff is shown as text.
func Diff(unified string, width int, s Style) string {
	if width <= 0 {
		width = 80
	}
	if s.Lexers == nil {
		s.Lexers = &Lexers{}
	}
	lines := strings.Split(strings.TrimRight(unified, "\n"), "\n")
	d := differ{style: s, width: width, digits: digits(lines)}
	end := lineEnd(lines)
	for _, l := range lines {
		l = strings.TrimSuffix(l, end)
		head, _, _ := strings.Cut(l, "\t")
		d.path = Plain(head)
		d.line(plainLine(l))
	}
	d.change()
	d.tell()
	return strings.TrimRight(strings.Join(s.paintAll(d.out), "\n"), "\n")
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

// plainLine is Plain for a line of a diff; its sign moves no tab.
func plainLine(l string) string {
	if signed(l) {
		return l[:1] + Plain(l[1:])
	}
	return Plain(l)
}

// signed reports whether a line begins like one of a file.
func signed(l string) bool { return l != "" && strings.IndexByte("+- ", l[0]) >= 0 }

// differ reads a diff line by line.
type differ struct {
	style  Style
	width  int
	digits int // of the largest line number; 0 means there is no room for numbers, or none is known
	out    []line

	old, fresh         int    // numbers of the next lines
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

// hunk parses "@@ -1,2 +3,4 @@"; ok reports whether it is one.
func hunk(l string) (old, oldCount, fresh, freshCount int, ok bool) {
	fields := strings.Fields(l)
	if len(fields) < 4 || fields[0] != "@@" || fields[3] != "@@" {
		return 0, 0, 0, 0, false
	}
	old, oldCount, okOld := lineRange(fields[1], "-")
	fresh, freshCount, okNew := lineRange(fields[2], "+")
	return old, oldCount, fresh, freshCount, okOld && okNew
}

func lineRange(field, sign string) (start, count int, ok bool) {
	rest, ok := strings.CutPrefix(field, sign)
	first, second, two := strings.Cut(rest, ",")
	start, err := strconv.Atoi(first)
	count = 1
	if two && err == nil {
		count, err = strconv.Atoi(second)
	}
	const most = 1 << 40 // larger ones are not line numbers
	return start, count, ok && err == nil && start >= 0 && count >= 0 && start < most && count < most
}

// digits returns the width of the column of numbers.
func digits(lines []string) int {
	most := 0
	for _, l := range lines {
		if !strings.HasPrefix(l, "@@") {
			continue
		}
		if old, n, fresh, m, ok := hunk(l); ok {
			most = max(most, len(strconv.Itoa(max(old+n, fresh+m))))
		}
	}
	return most
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
	if old, n, fresh, m, ok := hunk(l); ok {
		d.old, d.oldLeft, d.fresh, d.freshLeft = old, n, fresh, m
		d.before, d.after = highlighter(d.style, d.language), highlighter(d.style, d.language)
		how = look{color: d.style.pick(comment)}
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
		d.old, d.oldLeft = d.old+1, d.oldLeft-1
	case sign == "+" && d.freshLeft > 0:
		d.come(d.fresh, l[1:])
		d.fresh, d.freshLeft = d.fresh+1, d.freshLeft-1
	case sign == " " && d.oldLeft > 0 && d.freshLeft > 0:
		d.change()
		kept := strings.TrimPrefix(l, " ")
		d.before.line(kept)
		d.put(numbered{d.fresh, kept, d.after.line(kept)}, " ", look{})
		d.old, d.oldLeft, d.fresh, d.freshLeft = d.old+1, d.oldLeft-1, d.fresh+1, d.freshLeft-1
	default:
		return false
	}
	return true
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
	d.language = languageOf(cmp.Or(strings.TrimSuffix(name(to), "/dev/null"), name(from)))
	if len(d.out) > 0 {
		d.out = append(d.out, nil)
	}
	d.add(line{{title, look{bold: true, color: d.style.pick(heading)}}})
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
		m.code = marked(m.code, before[i], d.style.tint(removed))
		d.put(m, "-", gone)
	}
	for i, p := range d.plus {
		p.code = marked(p.code, after[i], d.style.tint(added))
		d.put(p, "+", come)
	}
	d.minus, d.plus = nil, nil
}

// put shows a line with its number and sign. Text without a colour of its own has that of the sign.
func (d *differ) put(n numbered, sign string, how look) {
	numbers := span{"", look{faint: true}}
	if d.digits > 0 && d.width-d.digits-3 >= least {
		numbers.text = strings.Repeat(" ", d.digits+1)
	}
	text := slices.Clone(n.code)
	for i, s := range text {
		text[i].look.color = cmp.Or(s.look.color, how.color)
	}
	for i, part := range chop(text, max(1, d.width-len(numbers.text)-2)) {
		first := numbers
		if i > 0 {
			sign = " "
		} else if n.number > 0 && numbers.text != "" {
			first.text = fmt.Sprintf("%*d ", d.digits, n.number)
		}
		d.out = append(d.out, append(line{first, {sign + " ", how}}, part...))
	}
}

// languageOf returns the language of a file by its name, as lexerFile takes it.
func languageOf(name string) string {
	if ext := path.Ext(name); ext != "" {
		return ext[1:]
	}
	return path.Base(name)
}

// add shows a line as it is.
func (d *differ) add(l line) { d.out = append(d.out, chop(l, d.width)...) }

package words

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Wrap breaks lines of more than width cells between words, so that words stay whole for copying; 0 breaks
// none. Continuation lines are indented like the line's beginning.
func Wrap(text string, width int) string {
	return wrap(text, width, func(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) })
}

// WrapRows is Wrap for rows whose columns are at least two spaces apart: continuation lines start below the
// last column, unless there is little room.
func WrapRows(text string, width int) string {
	return wrap(text, width, func(line string) int {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		gap := strings.LastIndex(line, "  ")
		if cells := ansi.StringWidth(line[:gap+1]) + 1; gap >= indent && cells <= width/2 {
			return cells
		}
		return indent
	})
}

func wrap(text string, width int, column func(line string) int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	for i, line := range strings.Split(text, "\n") {
		if i > 0 {
			b.WriteByte('\n')
		}
		used, margin, begun := 0, column(line), false
		for i, word := range strings.Split(line, " ") {
			n := ansi.StringWidth(word)
			switch {
			case i == 0:
			case begun && word != "" && used+1+n > width && used > margin:
				b.WriteString("\n" + strings.Repeat(" ", margin))
				used = margin
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += n
			begun = begun || word != ""
		}
	}
	return b.String()
}

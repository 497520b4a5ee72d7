package tools

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// window collects lines of a text that is written to it, and counts the rest. For a model they have numbers, up
// to maxRead bytes; for a program they are unchanged, up to maxPlain.
type window struct {
	plain       bool
	first, last int // requested lines, from 1
	line        int // number of the line being read, from 1
	fresh       bool
	cur         []byte // start of the line being read
	long        int    // bytes of it that are not in cur
	out         strings.Builder
	shown       int // last line in out
	full        bool
}

func newWindow(c *tool.Call, in readArgs) *window {
	plain := c.Parent != ""

	first := min(max(in.Offset, 1), 1<<40)
	limit := min(in.Limit, 1<<30)
	switch {
	case limit == 0 && plain:
		limit = 1 << 30
	case limit == 0:
		limit = defaultLines
	}
	return &window{plain: plain, first: first, last: first + limit - 1, line: 1, fresh: true, shown: first - 1}
}

// Write handles the next piece of the text. It never fails.
func (w *window) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.add(p)
			break
		}
		w.add(p[:i])
		w.endLine()
		p = p[i+1:]
	}
	return n, nil
}

func (w *window) add(p []byte) {
	w.fresh = w.fresh && len(p) == 0
	if w.line < w.first || w.line > w.last || w.full {
		return
	}
	most := maxLine
	if w.plain {
		most = maxPlain + 1
	}
	room := min(most-len(w.cur), len(p))
	w.cur = append(w.cur, p[:room]...)
	w.long += len(p) - room
}

func (w *window) endLine() {
	if w.line >= w.first && w.line <= w.last && !w.full {
		w.put()
	}
	w.line++
	w.fresh = true
	w.cur, w.long = w.cur[:0], 0
}

func (w *window) put() {
	if w.plain {
		w.full = w.out.Len()+len(w.cur) >= maxPlain
		if !w.full {
			w.out.Write(append(w.cur, '\n'))
			w.shown = w.line
		}
		return
	}
	line := bytes.TrimSuffix(w.cur, []byte("\r"))
	mark := ""
	if w.long > 0 {
		cut := text.TrimEnd(line)
		mark = fmt.Sprintf("… [%d more bytes]", w.long+len(line)-len(cut))
		line = cut
	}
	row := fmt.Sprintf("%6d\t%s%s\n", w.line, line, mark)
	if w.out.Len()+len(row) > maxRead {
		w.full = true
		return
	}
	w.out.WriteString(row)
	w.shown = w.line
}

// result returns the lines and, if they are not all, which they are.
func (w *window) result() (string, error) {
	total, ended := w.line-1, w.fresh
	if !w.fresh {
		w.endLine()
		total++
	}
	switch {
	case total == 0 && w.plain:
		return "", nil
	case total == 0:
		return "[the file is empty]", nil
	case w.first > total:
		return "", fmt.Errorf("offset %d is behind the end; there are %s", w.first, text.Count(total, "line"))
	}
	text := w.out.String()
	switch {
	case w.full && w.plain:
		return "", fmt.Errorf("more than %s; read it in parts with offset and limit", size(maxPlain))
	case w.plain && w.shown == total && !ended:
		text = strings.TrimSuffix(text, "\n")
	case w.plain:
	case w.shown < total:
		text += fmt.Sprintf("[lines %d-%d of %d; read on with offset %d]", w.first, w.shown, total, w.shown+1)
	case w.first > 1:
		text += fmt.Sprintf("[lines %d-%d of %d, up to the end]", w.first, w.shown, total)
	default:
		text = strings.TrimSuffix(text, "\n")
	}
	return text, nil
}

package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

//go:embed edit_lines.md
var editLinesDoc string

type linesArgs struct {
	Path   string `json:"path" jsonschema:"file to change, absolute or relative to the current directory"`
	First  int    `json:"first_line" jsonschema:"number of the first line to replace, from 1; with insert: of the line to insert after"`
	Expect string `json:"expect" jsonschema:"present text of line first_line, to check its number"`
	Text   string `json:"text" jsonschema:"new lines; empty to delete"`
	Last   int    `json:"last_line,omitempty" jsonschema:"number of the last line to replace; first_line if not given"`
	Insert bool   `json:"insert,omitempty" jsonschema:"insert the text after first_line and replace nothing"`
}

func editLines() tool.Tool {
	t := tool.New("edit_lines", editLinesDoc, runLines)
	t.Effects = pathEffect(tool.Write, func(in linesArgs) string { return in.Path })
	t.Preview = withArgs(func(ctx context.Context, c *tool.Call, in linesArgs) (string, error) {
		d, _, err := draftLines(ctx, c, in)
		return d.preview(c, err)
	})
	return t
}

func runLines(ctx context.Context, c *tool.Call, in linesArgs) (tool.Result, error) {
	d, s, err := draftLines(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	return d.made(ctx, c, Shown(c, d.path)+": "+s.report(d.new))
}

// draftLines works out the change.
func draftLines(ctx context.Context, c *tool.Call, in linesArgs) (draft, splice, error) {
	d, err := load(ctx, c, in.Path)
	if err != nil {
		return draft{}, splice{}, err
	}
	text, enc, ok := decode(d.before)
	if !ok {
		return draft{}, splice{}, errBinary(Shown(c, d.path), d.before)
	}
	s, err := newSplice(text, in)
	if err != nil {
		return draft{}, splice{}, fmt.Errorf("nothing was written to %s: %w", Shown(c, d.path), err)
	}
	d.old, d.new = text, s.apply(text)
	if d.new == d.old {
		return draft{}, splice{}, errors.New("the new lines are the same as the old ones; nothing was written")
	}
	d.after, err = enc.encode(d.new)
	return d, s, err
}

// splice replaces lines by others.
type splice struct {
	at   int // lines before it
	gone int // lines it removes
	text string
	came int // lines it adds
}

// newSplice checks the request against the existing lines.
func newSplice(raw string, in linesArgs) (splice, error) {
	str := unix(raw)
	have := strings.Split(strings.TrimSuffix(str, "\n"), "\n")
	total := lines(str)
	s := splice{at: in.First - 1, gone: max(in.Last, in.First) - in.First + 1, text: unix(in.Text), came: lines(unix(in.Text))}
	if in.Insert {
		s.at, s.gone = in.First, 0
	}
	switch {
	case in.First < 0, in.First == 0 && !in.Insert:
		return splice{}, errors.New("lines count from 1; to insert before the first line set insert and first_line 0")
	case in.Last != 0 && in.Last < in.First:
		return splice{}, fmt.Errorf("last_line %d is before first_line %d", in.Last, in.First)
	case in.Insert && in.Last > in.First:
		return splice{}, errors.New("insert replaces no lines; leave out last_line, or leave out insert")
	case in.Insert && in.Text == "":
		return splice{}, errors.New("there is no text to insert")
	case max(in.First, in.Last) > total:
		return splice{}, fmt.Errorf("line %d is after the end; there are %s", max(in.First, in.Last), text.Count(total, "line"))
	case in.First == 0:
		return s, nil
	}
	if err := expected(have, in.First, in.Expect); err != nil {
		return splice{}, err
	}
	if everyLine(s.text, numbered.MatchString) && !numbered.MatchString(have[in.First-1]) {
		return splice{}, errors.New("text begins with line numbers; leave them out")
	}
	return s, nil
}

// expected checks that the lines from first on are those that the model has seen. White space and line numbers
// before the lines are ignored.
func expected(have []string, first int, expect string) error {
	expect = strings.TrimSuffix(unix(expect), "\n")
	wanted := strings.Split(expect, "\n")
	if startAt(have, wanted, first) {
		return nil
	}
	if everyLine(expect, numbered.MatchString) {
		for i, line := range wanted {
			wanted[i] = numbered.ReplaceAllString(line, "")
		}
		if startAt(have, wanted, first) {
			return nil
		}
	}
	from := max(first-4, 0)
	msg := fmt.Sprintf("line %d is not what expect says; these lines are there now:\n%s", first, excerpt(have, from, 7))
	if at := nearest(have, wanted, first); at > 0 {
		return fmt.Errorf("%s\nEdits change the numbers of the lines below them: the expected text is in line %d", msg, at)
	}
	for _, at := range alike(have, wanted) {
		msg += "\nsimilar, but not the same:\n" + excerpt(have, at, 1)
	}
	return errors.New(msg + "\nIf that does not help, read the file again")
}

func startAt(have, wanted []string, line int) bool {
	if line-1+len(wanted) > len(have) {
		return false
	}
	for i, w := range wanted {
		if spaceless(have[line-1+i]) != spaceless(w) {
			return false
		}
	}
	return true
}

func spaceless(s string) string { return strings.Join(strings.Fields(s), "") }

// nearest returns the number of the line closest to a given one where the wanted lines begin, 0 if there is none.
// Empty lines are everywhere, so they are not searched for.
func nearest(have, wanted []string, line int) int {
	best := 0
	for n := 1; n <= len(have) && spaceless(strings.Join(wanted, "")) != ""; n++ {
		if (best == 0 || abs(n-line) < abs(best-line)) && startAt(have, wanted, n) {
			best = n
		}
	}
	return best
}

func abs(n int) int { return max(n, -n) }

// apply makes the change. New lines end as most lines do, and the last one is
// ended if it was.
func (s splice) apply(raw string) string {
	v := newView(raw)
	from, to := lineStart(v.text, s.at), lineStart(v.text, s.at+s.gone)
	with := s.text
	if with != "" && !strings.HasSuffix(with, "\n") {
		with += "\n"
	}
	if open := v.text != "" && !strings.HasSuffix(v.text, "\n"); open && to == len(v.text) && with != "" {
		with = strings.TrimSuffix(with, "\n")
		if s.gone == 0 {
			with = "\n" + with
		}
	}
	if endsInCRLF(raw) {
		with = dos(with)
	}
	return raw[:v.rawOffset(from)] + with + raw[v.rawOffset(to):]
}

// lineStart returns the offset after the first n lines.
func lineStart(text string, n int) int {
	at := 0
	for range n {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text)
		}
		at += i + 1
	}
	return at
}

// report describes the change and shows the new lines among their neighbours.
func (s splice) report(now string) string {
	var what string
	switch {
	case s.came == 0:
		what = text.Count(s.gone, "line") + " deleted"
	case s.gone == 0:
		what = text.Count(s.came, "line") + " inserted"
	default:
		what = fmt.Sprintf("%s replaced by %d", text.Count(s.gone, "line"), s.came)
	}
	if moved := s.came - s.gone; moved != 0 {
		what += fmt.Sprintf("; the numbers of all lines below changed by %+d", moved)
	}
	const around, shown = 2, maxAlikeLen / 2
	have := strings.Split(strings.TrimSuffix(unix(now), "\n"), "\n")
	from, to := max(s.at-around, 0), min(s.at+s.came+around, len(have))
	if to-from <= 2*shown {
		return what + "\n" + excerpt(have, from, to-from)
	}
	return what + "\n" + excerpt(have, from, shown) + "\n     …\n" + excerpt(have, to-shown, shown)
}

package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/eval"
	"github.com/inspan/inspan/internal/view/words"
)

// watchBeat is the time between looks at a run.
const watchBeat = time.Second

// watch shows the progress of a run until it has stopped: each change is a line, which on a terminal (live)
// replaces the previous one. The trials follow at the end.
func (e *evaluation) watch(ctx context.Context, id string, live bool) error {
	f, last, end, gap := eval.FolderIn(e.Table.StateDir), "", "\n", ""
	if live {
		end, gap = "\x1b[K\r", "\n"
	}
	for {
		s, err := f.Standing(ctx, id)
		if err == nil && e.JSON && !s.Working {
			return printJSON(e.Out, s)
		}
		if err != nil {
			return err
		}
		if line := standing(&s); !e.JSON && line != last {
			fmt.Fprint(e.Out, line+end)
			last = line
		}
		if !s.Working {
			_, err := fmt.Fprint(e.Out, gap+standingTable(&s))
			return err
		}
		if err := keep.Sleep(ctx, watchBeat); err != nil {
			return err
		}
	}
}

// standing returns the state of a run in a line.
func standing(s *eval.Standing) string {
	var counts []string
	for _, state := range strings.Fields("passed failed broken done running open") {
		if n := s.Counts[state]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, state))
		}
	}
	line := fmt.Sprintf("%s of %s: %s of %s, $%.2f", s.Run, text.Line(s.Suite), strings.Join(counts, ", "), text.Count(s.All, "trial"), s.Cost)
	if s.Budget > 0 {
		line += fmt.Sprintf(" of $%.2f", s.Budget)
	}
	switch {
	case !s.Working && s.Counts["open"] > 0:
		line += "; interrupted; continue with: inspan eval resume " + s.Run
	case s.Until != nil:
		line += ", until " + s.Until.Local().Format(time.TimeOnly)
	}
	if s.Left >= 1 {
		line += fmt.Sprintf(", about %s left", time.Duration(s.Left*float64(time.Second)).Round(time.Second))
	}
	return line
}

// standingTable returns a table with a row for each task, and a column for each try.
func standingTable(s *eval.Standing) string {
	var b strings.Builder
	w := text.NewTable(&b)
	for _, t := range s.Tasks {
		cells := []any{t.Task}
		for _, one := range t.Tries {
			cell := one.State
			if one.Reason != "" {
				cell += ": " + text.Visible(words.OneLine(one.Reason, 40))
			}
			cells = append(cells, cell)
		}
		w.Row(cells...)
	}
	_ = w.Flush() // into memory
	return b.String()
}

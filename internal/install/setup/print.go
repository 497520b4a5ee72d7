package setup

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// Print prints findings in lines of at most cells cells; 0 means no limit. Problems are an error.
func Print(out io.Writer, cells int, findings []Finding) error {
	bad, width := 0, 0
	for _, f := range findings {
		width = max(width, len(f.Check))
	}
	for _, f := range findings {
		if f.State == Bad {
			bad++
		}
		line := fmt.Sprintf("%-8s %-*s %s", f.State, width, f.Check, words.OneLine(f.Found, 2000))
		if f.Elapsed > 0 {
			line += fmt.Sprintf(" (%v)", f.Elapsed.Round(time.Millisecond))
		}
		fmt.Fprintln(out, words.WrapRows(line, cells))
		if f.Remedy != "" {
			fmt.Fprintln(out, words.WrapRows(fmt.Sprintf("%-*s → %s", width+9, "", words.OneLine(f.Remedy, 300)), cells))
		}
	}
	if bad > 0 {
		return errors.New(text.Count(bad, "problem") + " found")
	}
	return nil
}

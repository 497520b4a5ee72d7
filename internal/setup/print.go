package setup

import (
	"fmt"
	"io"
	"time"

	"github.com/inspan/inspan/internal/words"
)

// Print prints findings. Problems are an error.
func Print(out io.Writer, findings []Finding) error {
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
		fmt.Fprintln(out, line)
		if f.Remedy != "" {
			fmt.Fprintf(out, "%-*s → %s\n", width+9, "", words.OneLine(f.Remedy, 300))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d problems found", bad)
	}
	return nil
}

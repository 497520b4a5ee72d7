package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/lab/bench"
)

func (c *command) bench() *cobra.Command {
	var b benchmark
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure inspan from outside, with other installed agents",
		Long: "inspan starts itself, and claude, codex, gemini, opencode and pi where they are in PATH, against a scripted model\n" +
			"on this machine. It measures start, turns, memory, kill -9 and resume, and long sessions. All take turns, so that\n" +
			"other load affects all alike. inspan prints each command.\n" +
			"No agent asks before it runs a command, and only inspan-auto, which is inspan in mode auto, uses a sandbox.\n" +
			"The commands of the model only write into new folders. Nothing of yours is read or changed, and no real model is asked.\n" +
			"docs/BENCHMARKS.md explains the figures.",
		Example: "  inspan bench\n  inspan bench --runs 20 --only inspan --only codex --json",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			b.Program = c.program()
			return b.report(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	const mostRuns = 1000
	countFlag(cmd.Flags(), &b.Runs, "runs", 5, mostRuns, "`number` of runs of each agent that count")
	cmd.Flags().StringArrayVar(&b.Only, "only", nil, "`name` of an agent to measure; repeatable (default: all)")
	cmd.Flags().BoolVar(&b.JSON, "json", false, "print JSON")
	return cmd
}

// benchmark is a person's choice of measurements of harnesses.
type benchmark struct {
	bench.Bench
	JSON bool
}

// report measures, and prints the figures. Its progress goes to errs.
func (b *benchmark) report(ctx context.Context, out, errs io.Writer) error {
	b.OnProgress = func(line string) { fmt.Fprintln(errs, text.Line(line)) }
	b.OnProgress("Each harness gets a new home and new folders below " + os.TempDir() +
		", which are removed afterwards, and a scripted model at a loopback address. Nothing of yours is read or changed.")
	raw, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(raw), " ") // the average of the last minute; empty if unknown
	list, err := b.Run(ctx)
	if list == nil {
		return err
	}
	if b.JSON {
		return errors.Join(printJSON(out, struct {
			CPUs       int            `json:"cpus"`
			Load       string         `json:"load_before,omitempty"`
			Harnesses  []bench.Result `json:"harnesses"`
			Explaining [][2]string    `json:"figures"`
		}{runtime.NumCPU(), load, list, bench.Figures()}), err)
	}
	return errors.Join(benchTable(out, list, load), err)
}

func benchTable(out io.Writer, list []bench.Result, load string) error {
	fmt.Fprintf(out, "%s", text.Count(runtime.NumCPU(), "CPU"))
	if load != "" {
		fmt.Fprintf(out, ", load %s before", load)
	}
	fmt.Fprint(out, ". Medians, with the least and the most.\n")
	w := text.NewTable(out)
	for _, f := range bench.Figures() {
		titled := false
		for i := range list {
			for _, figure := range list[i].Figures {
				if figure.Name == f[0] {
					if !titled {
						titled = true
						w.Row()
						w.Row(f[0] + ": " + f[1])
					}
					w.Row("  "+list[i].Name, figured(figure.Median, figure.Unit),
						figured(figure.Least, "")+" to "+figured(figure.Most, figure.Unit), fmt.Sprintf("n=%d", len(figure.Values)))
				}
			}
		}
	}
	err := w.Flush()
	fmt.Fprintln(out)
	for i := range list {
		one := &list[i]
		says := text.Line(one.Version)
		if one.Command == "" {
			says = "not installed"
		}
		fmt.Fprintf(out, "%s: %s\n", one.Name, says)
		for _, why := range one.Failed {
			fmt.Fprintf(out, "  failed: %s\n", text.Line(why))
		}
	}
	return err
}

// figured returns a value with its unit, with one decimal where that is meaningful.
func figured(value float64, unit string) string {
	form := "%.0f"
	if value < 100 && value != float64(int(value)) {
		form = "%.1f"
	}
	return strings.TrimSpace(fmt.Sprintf(form+" %s", value, unit))
}

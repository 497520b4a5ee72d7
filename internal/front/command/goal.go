package command

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (c *command) goal() *cobra.Command {
	var f runFlags
	var check, rubric, until string
	var seal []string
	var rounds, patience int
	cmd := &cobra.Command{
		Use:   `goal "GOAL" --check COMMAND`,
		Short: "Work in rounds until a command confirms that the goal is reached",
		Long: "inspan works in rounds. Each has a fresh context that knows earlier rounds from a file progress-*.md, git and the log.\n" +
			"After it the command of --check runs. Exit code 0 ends the run; an agent's words never do.\n" +
			"The run also ends if nothing measurable improves, and at its limits. Then it names what is missing.\n\n" + exitPointer,
		Example: "  inspan goal \"all tests pass on Go 1.27\" --check \"make test\"\n" +
			"  inspan goal \"port the parser\" --check \"go test ./parser\" --max-time 6h --max-cost 20 --detach",
		Args: exactly(1, 1, "the GOAL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check == "" {
				return misused("inspan goal needs --check: the command that says whether the goal is reached")
			}
			if until != "" {
				left, err := timeUntil(until, time.Now())
				if err != nil {
					return misused("--until: %w", err)
				}
				if f.maxTime == 0 || left < f.maxTime {
					_ = cmd.Flags().Set("max-time", left.String()) // as if typed, for a background process too
				}
			}
			return c.flow(cmd, &f, []string{
				"goal", "goal=" + args[0], "check=" + check, "rubric=" + rubric, "sealed=" + cmp.Or(strings.Join(seal, "\n"), "auto"),
				fmt.Sprint("rounds=", rounds), fmt.Sprint("patience=", patience),
			})
		},
	}
	f.add(cmd)
	f.addNew(cmd)
	f.addOwn(cmd)
	f.addDetach(cmd)
	fl := cmd.Flags()
	fl.StringVar(&check, "check", "", "`command` whose exit code 0 means that the goal is reached")
	fl.StringVar(&until, "until", "", "`time` at which it ends at the latest, such as 18:00, 6h or 2026-12-24T08:00:00Z")
	fl.StringArrayVar(&seal, "seal", nil,
		"`file` that the check depends on: if it changes, the check does not count; repeatable, or none (default: files that the command names)")
	fl.StringVar(&rubric, "rubric", "", "`text` by which a fresh agent judges the result, in addition to the command")
	fl.IntVar(&rounds, "rounds", 30, "most `rounds`")
	fl.IntVar(&patience, "patience", 4, "end after this many `rounds` without improvement")
	return cmd
}

// timeUntil returns the duration until a time as people write it: the next one of a clock, a date with a time,
// or a duration.
func timeUntil(text string, now time.Time) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.After(now) {
		return at.Sub(now), nil
	}
	at, err := time.ParseInLocation("15:04", text, now.Location())
	if err != nil {
		return 0, fmt.Errorf("%q is not a future time; write it as 18:00, 6h or 2026-12-24T08:00:00Z", text)
	}
	at = time.Date(now.Year(), now.Month(), now.Day(), at.Hour(), at.Minute(), 0, 0, now.Location())
	if !at.After(now) {
		at = at.AddDate(0, 0, 1)
	}
	return at.Sub(now), nil
}

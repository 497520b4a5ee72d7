package command

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) sessionsPrune() *cobra.Command {
	var days, megabytes int64
	var yes bool
	var where string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Show which old sessions are no longer kept, and delete them with --yes",
		Long: "inspan lists the sessions that [retention] in your settings no longer keeps, and deletes them with --yes, subagents and\n" +
			"blobs included. With them go the worktrees of their subagents, and checkpoints and caches of workspaces in which no\n" +
			"other session has worked. It also deletes what crashes have left half written, and specs of tools that no log names.\n\n" +
			"Of a store that machines share (--store) it deletes sessions only.\n\n" +
			"It keeps sessions that are open, that wait for an answer, that are pinned ('inspan sessions pin') or damaged.",
		Example: "  inspan sessions prune --days 90         # show what is older than 90 days\n" +
			"  inspan sessions prune --days 90 --yes   # delete it",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			if where != "" {
				other, _, err := c.shared.Open(cmd.Context(), where)
				if err != nil {
					return err
				}
				defer other.Close()
				app.Use(a, other)
			}
			r := a.Config.Retention
			if cmd.Flags().Changed("days") {
				r.Days = days
			}
			if cmd.Flags().Changed("size-mb") {
				r.Size = megabytes
			}
			if err := r.Check(); err != nil {
				return usageError{err}
			}
			return prune(cmd, a, time.Duration(r.Days)*24*time.Hour, r.Size<<20, yes)
		},
	}
	cmd.Flags().Int64Var(&days, "days", 0, "sessions not used for so many `days` are old; 0 means none (default: retention.days)")
	cmd.Flags().Int64Var(&megabytes, "size-mb", 0, "most `megabytes` of all sessions together; 0 means no limit (default: retention.size_mb)")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete them")
	cmd.Flags().StringVar(&where, "store", "", "`store` in place of this machine's: a URL, or a folder of sessions")
	return cmd
}

func prune(cmd *cobra.Command, a *app.App, age time.Duration, size int64, yes bool) error {
	out := cmd.OutOrStdout()
	p, err := app.NewPruning(cmd.Context(), a, age, size)
	if err != nil {
		return err
	}
	if err := console.Pruning(out, p, yes); err != nil || !yes {
		return err
	}
	return p.Prune(cmd.Context(), func(name string) { fmt.Fprintln(out, "removed", name) })
}

func (c *command) sessionsPin() *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "pin [ID]",
		Short: "Keep a session when old ones are pruned",
		Args:  exactly(0, 1, "[ID]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.one(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			if err := a.Running.Pin(cmd.Context(), id, !off); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), map[bool]string{false: "pinned", true: "unpinned"}[off], id)
			return nil
		},
	}
	cmd.Flags().BoolVar(&off, "off", false, "no longer keep it")
	return cmd
}

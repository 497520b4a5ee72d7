package command

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) sessionsPrune() *cobra.Command {
	var days, megabytes int64
	var yes bool
	var where string
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "List old sessions, and delete them with --yes",
		Long: "inspan lists the sessions that [retention] in your settings no longer keeps, and deletes them with --yes, subagents and\n" +
			"blobs included. With them go the worktrees of their subagents, and checkpoints and caches of workspaces in which no\n" +
			"other session has worked. It also deletes half-written files left by crashes, and specs of tools that no log names.\n\n" +
			"Of a store that machines share (--store) it deletes sessions only.\n\n" +
			"It keeps sessions that are open, that wait for an answer, that are pinned ('inspan sessions pin') or damaged.",
		Example: "  inspan sessions prune --days 90         # list those older than 90 days\n" +
			"  inspan sessions prune --days 90 --yes   # delete them",
		Args: exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
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
				return words.Misuse{Err: err}
			}
			p, err := app.NewPruning(cmd.Context(), a, time.Duration(r.Days)*24*time.Hour, r.Size<<20)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if err := printPruning(out, p, yes); err != nil || !yes {
				return err
			}
			return p.Prune(cmd.Context(), func(name string) { fmt.Fprintln(out, "removed", name) })
		}),
	}
	cmd.Flags().Int64Var(&days, "days", 0, "sessions not used for so many `days` are old; 0 means none (default: retention.days)")
	cmd.Flags().Int64Var(&megabytes, "size-mb", 0, "most `megabytes` of all sessions together; 0 means no limit (default: retention.size_mb)")
	cmd.Flags().BoolVar(&yes, "yes", false, "delete them")
	cmd.Flags().StringVar(&where, "store", "", "`store` in place of this machine's: a URL, or a folder of sessions")
	return cmd
}

// printPruning prints the sessions that are no longer kept, the sizes of those that stay, and data that no
// session needs. TheyGo: all of that is deleted next.
func printPruning(out io.Writer, p app.Pruning, theyGo bool) error {
	if len(p.Stale) == 0 {
		fmt.Fprintf(out, "All sessions are kept. They take %s.\n", megabytes(p.Left))
	} else {
		w := text.NewTable(out, "ID", "USED", "SESSIONS", "SIZE", "WHY", "WHAT")
		size := int64(0)
		for _, s := range p.Stale {
			size += s.Size
			w.Row(s.ID, s.Modified.Local().Format("2006-01-02 15:04"), s.Family, megabytes(s.Size), s.Why, words.OneLine(cmp.Or(s.Title, s.Preview), 60))
		}
		err := w.Flush()
		fmt.Fprintf(out, "%s, %s. The others take %s.\n", text.Count(len(p.Stale), "session"), megabytes(size), megabytes(p.Left))
		if err != nil {
			return err
		}
	}
	if err := printUnused(out, p); err != nil {
		return err
	}
	n := len(p.Stale) + len(p.Leftovers) + len(p.Unused)
	if n > 0 && !theyGo {
		fmt.Fprintf(out, "Nothing was deleted. To delete %s, add --yes.\n", text.Plural(n, "it", "them"))
	}
	return nil
}

// printUnused prints stored data that no session needs.
func printUnused(out io.Writer, p app.Pruning) error {
	if len(p.Leftovers)+len(p.Unused) == 0 {
		return nil
	}
	var specs, broken int64
	for _, l := range p.Leftovers {
		if l.Spec {
			specs += l.Size
		} else {
			broken += l.Size
		}
	}
	w := text.NewTable(out, "SIZE", "NO SESSION NEEDS", "PATH")
	if len(p.Leftovers) > 0 {
		w.Row(megabytes(specs), "specs of tools")
		w.Row(megabytes(broken), "files that crashes left half written")
	}
	for _, u := range p.Unused {
		w.Row(megabytes(u.Size), u.What, text.Line(u.Path))
	}
	return w.Flush()
}

// megabytes formats a number of bytes for people.
func megabytes(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%d kB", (n+999)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/store"
)

func (c *command) sessions() *cobra.Command {
	push := c.moving("push", "Move a session to another store, such as a database", "to", true,
		"  inspan sessions push last --store postgres://host/inspan\n  inspan sessions push 20260102 --store /mnt/share/sessions --keep")
	pull := c.moving("pull", "Move a session from another store to this machine", "from", false,
		"  inspan sessions pull 20260102 --store postgres://host/inspan")
	return group("sessions", "List, show, search, fork, export, move, remove, prune and check sessions",
		c.sessionsList(), c.sessionsShow(), c.sessionsSearch(), c.sessionsFork(), c.sessionsExport(), c.sessionsRm(), c.sessionsPrune(),
		c.sessionsPin(), c.sessionsFsck(), c.sessionsMove(), push, pull)
}

func (c *command) sessionsList() *cobra.Command {
	all, typed := false, []string(nil)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List sessions, the latest first",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			labels, err := pairs("--label", typed)
			if err != nil {
				return err
			}
			a, err := c.installation()
			if err != nil {
				return err
			}
			list, err := a.Store().List(cmd.Context())
			if err != nil {
				return err
			}
			if !all {
				list = leads(list)
			}
			if len(labels) > 0 {
				return printSessions(cmd.OutOrStdout(), slices.DeleteFunc(list, func(s store.Info) bool { return !s.Labelled(labels) }))
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no sessions yet; start one with: inspan run \"...\"")
				return nil
			}
			return printSessions(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "include subagents")
	cmd.Flags().StringArrayVar(&typed, "label", nil, "only sessions with this label, as `NAME=VALUE`; repeatable")
	return cmd
}

func (c *command) sessionsShow() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Print the transcript of a session",
		Long:  "Messages, calls and results all go to standard output.",
		Args:  exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			return c.console.Show(a.Store().Events(cmd.Context(), id), raw)
		},
	}
	cmd.Flags().BoolVar(&raw, "events", false, "print the events as JSON lines")
	return cmd
}

func (c *command) sessionsSearch() *cobra.Command {
	var ignoreCase bool
	cmd := &cobra.Command{
		Use:   "search REGEXP",
		Short: "Search the text of all sessions with a regular expression",
		Args:  exactly(1, 1, "a REGEXP"),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := args[0]
			if ignoreCase {
				text = "(?i)" + text
			}
			match, err := regexp.Compile(text)
			if err != nil {
				return words.Misuse{Err: err}
			}
			a, err := c.installation()
			if err != nil {
				return err
			}
			for hit, err := range a.Store().Search(cmd.Context(), match) {
				if err != nil {
					fmt.Fprintln(cmd.ErrOrStderr(), "inspan:", err)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %d %s: %s\n", hit.Session, hit.Seq, hit.Kind, words.OneLine(hit.Text, 200))
			}
			return cmd.Context().Err()
		},
	}
	cmd.Flags().BoolVarP(&ignoreCase, "ignore-case", "i", false, "ignore upper and lower case")
	return cmd
}

func (c *command) sessionsFork() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork [ID]",
		Short: "Copy a session into a new one",
		Args:  exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.one(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			log, err := a.Store().Fork(cmd.Context(), id, at)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), log.ID())
			return log.Close()
		},
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "copy up to the event with this `number` (see 'sessions show --events'); 0 means all")
	return cmd
}

func (c *command) sessionsExport() *cobra.Command {
	var format, output string
	cmd := &cobra.Command{
		Use:   "export [ID]",
		Short: "Export a session as markdown, JSON lines or an ATIF trajectory",
		Args:  exactly(0, 1, "at most one ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, id, err := c.seen(cmd.Context(), named(args))
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if output != "" {
				f, err := os.OpenFile(output, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return err
				}
				defer f.Close()
				out = f
			}
			events := a.Store().Events(cmd.Context(), id)
			switch format {
			case "markdown", "md":
				return transcript.Markdown(out, events)
			case "json":
				return (&console.Console{Out: out, Err: cmd.ErrOrStderr()}).Show(events, true)
			case "atif":
				return transcript.ATIF(out, events, func(digest string) string { return filepath.Join(a.Store().Dir, id, "blobs", digest) })
			}
			formats := []string{"markdown", "json", "atif"}
			return misused("--format: unknown format %q; use %s%s", format, strings.Join(formats, ", "), words.DidYouMean(format, formats))
		},
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "`format`: markdown, json (one event a line) or atif (version 1.7)")
	cmd.Flags().StringVarP(&output, "output", "o", "", "`file` to write; it must not exist")
	return cmd
}

func (c *command) sessionsRm() *cobra.Command {
	var yes, discard bool
	cmd := &cobra.Command{
		Use:   "rm ID...",
		Short: "Delete sessions permanently, with the copies of their subagents",
		Long: "inspan asks before it deletes a session that you named only as last. Without a terminal, that needs --yes.\n" +
			"inspan keeps a session while a copy of its subagents has unmerged changes ('inspan copies'); --discard deletes them too.",
		Example: "  inspan sessions rm 20261121-1403\n  inspan sessions rm --yes last",
		Args:    exactly(1, 1000, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				a, id, err := c.one(cmd.Context(), arg)
				if err == nil && arg == "last" && !yes {
					if !isTerminal(c.in) {
						return misused("last is the session %s; delete it by that ID, or with --yes", id)
					}
					if !c.confirms(cmd.OutOrStdout(), "Delete the session "+id+"?") {
						continue
					}
				}
				if err == nil {
					err = a.Running.Remove(cmd.Context(), id, discard)
				}
				if err != nil {
					return c.driven(cmd.Context(), a, id, err)
				}
				fmt.Fprintln(cmd.OutOrStdout(), "removed", id)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "delete the last session without asking")
	cmd.Flags().BoolVar(&discard, "discard", false, "also delete unmerged changes in copies")
	return cmd
}

// driven adds advice to an error about a session that a process drives.
func (c *command) driven(ctx context.Context, a *app.App, id string, err error) error {
	if id == "" {
		return err
	}
	if h, look := a.Running.Driver(ctx, id); look != nil || h == nil {
		return err
	}
	return fmt.Errorf("%w; join it: inspan attach %s, or end it: inspan stop %s", err, id, id)
}

func (c *command) sessionsFsck() *cobra.Command {
	var repair bool
	cmd := &cobra.Command{
		Use:   "fsck [ID]",
		Short: "Check the files of one session, or of all",
		Long: "inspan checks every log line against its checksum and every blob against its name, and changes nothing.\n" +
			"With --repair it sets aside a last line that a crash left half written.",
		Args: exactly(0, 1, "at most one ID"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			var ids []string
			if len(args) == 1 {
				id, err := a.Running.Here(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				ids = []string{id}
			} else {
				list, err := a.Store().List(cmd.Context())
				if err != nil {
					return err
				}
				for _, s := range list {
					ids = append(ids, s.ID)
				}
			}
			bad := 0
			for _, id := range ids {
				r, err := a.Store().Fsck(cmd.Context(), id, repair)
				if err != nil && len(ids) > 1 && cmd.Context().Err() == nil { // the others are still checked
					fmt.Fprintln(cmd.ErrOrStderr(), "inspan:", err)
					bad++
					continue
				}
				if err != nil {
					return err
				}
				printReport(cmd.OutOrStdout(), r)
				if !r.OK() {
					bad++
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d of %d are damaged", bad, len(ids))
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&repair, "repair", false, "set aside a half-written last line")
	return cmd
}

// printSessions prints sessions, one a line.
func printSessions(out io.Writer, list []store.Info) error {
	w := text.NewTable(out, "ID", "USED", "EVENTS", "ENDED", "WHAT")
	for _, s := range list {
		w.Row(s.ID, s.Modified.Local().Format("2006-01-02 15:04"), s.Events, endedOf(s), words.OneLine(cmp.Or(s.Title, s.Preview), 60))
	}
	return w.Flush()
}

// leads returns the sessions of a list that work for no other.
func leads(list []store.Info) []store.Info {
	return slices.DeleteFunc(list, func(s store.Info) bool { return s.Parent != "" })
}

func endedOf(s store.Info) string {
	switch {
	case s.Damage != nil:
		return "DAMAGED"
	case s.Empty:
		return "empty"
	case s.Stop == "":
		return "open"
	}
	return string(s.Stop)
}

// printReport prints the state of a log.
func printReport(w io.Writer, r session.Report) {
	state := "ok"
	switch {
	case !r.OK():
		state = "DAMAGED"
	case r.Repaired:
		state = "repaired"
	case r.Torn > 0:
		state = "torn"
	}
	fmt.Fprintf(w, "%s: %s, %d events, %d bytes, index %s\n", r.ID, state, r.Events, r.Size, r.Index)
	if r.Torn > 0 {
		fmt.Fprintf(w, "  the last %d bytes are half written, as after a loss of power; nothing that was acknowledged is in them\n", r.Torn)
		if !r.Repaired {
			fmt.Fprintf(w, "  set them aside: inspan sessions fsck --repair %s\n", r.ID)
		}
	}
	for _, d := range r.Damage {
		fmt.Fprintf(w, "  %v\n", d)
	}
	for _, b := range r.Missing {
		fmt.Fprintf(w, "  blob %s is missing\n", b)
	}
	for _, b := range r.Bad {
		fmt.Fprintf(w, "  blob %s does not match its name\n", b)
	}
	if len(r.Damage) > 0 {
		fmt.Fprintf(w, "  the events before it are usable: inspan sessions fork --at %d %s\n", r.Events, r.ID)
	}
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

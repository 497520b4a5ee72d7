package command

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/memory"
	"github.com/inspan/inspan/internal/extend/recall"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) memory() *cobra.Command {
	return group("memory", "Show and edit the memory, and search past sessions",
		c.memoryList(), c.memoryAdd(), c.memoryForget(), c.memoryRead(), c.memorySearch(), c.memoryPath())
}

func (c *command) memoryList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the memory that new sessions in this folder get",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			return printMemory(cmd.OutOrStdout(), cmd.ErrOrStderr(), a.Knowledge.Memory(root))
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory to use")
	return cmd
}

func (c *command) memoryAdd() *cobra.Command {
	var cwd, scope, kind, topic, text, expires string
	var supersedes []string
	cmd := &cobra.Command{
		Use:   "add TEXT",
		Short: "Add an entry",
		Args:  exactly(1, 1, "a TEXT"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			e := a.Knowledge.Entry(kind, args[0])
			e.Topic, e.Supersedes = topic, supersedes
			if err := a.Knowledge.Memory(root).Find(supersedes...); err != nil {
				return misused("--supersedes: %w", err)
			}
			if expires != "" {
				var err error
				if e.Expires, err = time.Parse(time.DateOnly, expires); err != nil {
					return misused("--expires: %q is not a day such as 2026-12-31", expires)
				}
			}
			id, err := a.Knowledge.Remember(cmd.Context(), root, scope, e, text)
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), savedAs(scope, id))
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&cwd, "cwd", ".", "`folder` whose memory to use")
	fl.StringVar(&scope, "scope", "project", "`user` (you, everywhere), project (you, here) or team (in the repository)")
	fl.StringVar(&kind, "kind", "fact", "`fact`, preference, decision, procedure or reference")
	fl.StringVar(&topic, "topic", "", "`name` of a topic file with details, such as build")
	fl.StringVar(&text, "topic-text", "", "`markdown` to add to the topic file")
	fl.StringVar(&expires, "expires", "", "last valid `day`, such as 2026-12-31")
	fl.StringSliceVar(&supersedes, "supersedes", nil, "`id` of an entry that this one replaces; repeatable")
	return cmd
}

func savedAs(scope, id string) string {
	return fmt.Sprintf("saved in %s memory as %s; new sessions know it", scope, id)
}

func (c *command) memoryForget() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "forget ID",
		Short: "Remove an entry",
		Args:  exactly(1, 1, "an ID"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			e, err := a.Knowledge.Memory(root).Forget(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "forgotten: [%s] %s\n", e.Kind, text.Visible(e.Text))
			return err
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory to use")
	return cmd
}

func (c *command) memoryRead() *cobra.Command {
	var cwd, scope string
	cmd := &cobra.Command{
		Use:   "read [TOPIC]",
		Short: "Print a topic, or list all topics",
		Args:  exactly(0, 1, "at most one TOPIC"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			if len(args) == 0 {
				return printTopics(cmd.OutOrStdout(), a.Knowledge.Memory(root))
			}
			t, err := a.Knowledge.Memory(root).Topic(memory.Scope(scope), args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text.VisibleLines(t.Text))
			return err
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory to use")
	cmd.Flags().StringVar(&scope, "scope", "project", "`user`, project or team")
	return cmd
}

func (c *command) memorySearch() *cobra.Command {
	var cwd string
	var here bool
	var most int
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Search all past sessions",
		Long: "A query holds words, \"exact phrases\" and prefixes*. inspan updates the index first.\n" +
			"You can delete the index at any time.",
		Args: exactly(1, 100, "WORDS"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			if !here {
				root = "" // everywhere
			}
			hits, behind, err := a.Knowledge.Search(cmd.Context(), strings.Join(args, " "), root, most)
			if err != nil {
				return err
			}
			printPast(cmd.OutOrStdout(), cmd.ErrOrStderr(), hits, behind)
			return nil
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` for --here")
	cmd.Flags().BoolVar(&here, "here", false, "only sessions of this folder")
	cmd.Flags().IntVarP(&most, "max", "n", 10, "`number` of results to show")
	return cmd
}

func (c *command) memoryPath() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print the paths of the memory files, which are markdown that you can edit",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			memories, w := a.Knowledge.Memory(root), text.NewTable(cmd.OutOrStdout())
			for _, scope := range memory.Scopes() {
				w.Row(scope, memories.Path(scope, ""))
			}
			return w.Flush()
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory to use")
	return cmd
}

// printMemory prints the entries of a memory; its problems go to complain.
func printMemory(out, complain io.Writer, s *memory.Store) error {
	index, err := s.Index()
	w := text.NewTable(out)
	for _, e := range index.Entries {
		line := fmt.Sprintf("%s [%s] %s", e.ID, e.Kind, e.Text)
		if e.Topic != "" {
			line += " → topic " + e.Topic
		}
		if e.Untrusted {
			line += " (unverified)"
		}
		w.Row(e.Scope, text.Visible(line))
		if from := originOf(e.Entry); from != "" {
			w.Row("", text.Visible(from))
		}
	}
	err = errors.Join(err, w.Flush())
	if len(index.Entries) == 0 && err == nil {
		fmt.Fprintln(complain, "The memory is empty. The model adds entries, and so can you: inspan memory add \"...\"")
	}
	if index.Unvouched > 0 {
		fmt.Fprintln(complain, "The team's entries count as unverified until you trust the file as it is: inspan trust")
	}
	for _, p := range index.Problems {
		fmt.Fprintln(complain, text.Visible(p.String()))
	}
	return err
}

// originOf returns the origin of an entry and how long it is valid.
func originOf(e memory.Entry) string {
	var parts []string
	if e.Source != "" {
		parts = append(parts, e.Source)
	}
	if !e.Date.IsZero() {
		parts = append(parts, e.Date.Format(time.DateOnly))
	}
	if !e.Expires.IsZero() {
		parts = append(parts, "until "+e.Expires.Format(time.DateOnly))
	}
	if len(e.Supersedes) > 0 {
		parts = append(parts, "supersedes "+strings.Join(e.Supersedes, ", "))
	}
	return strings.Join(parts, " · ")
}

// printTopics prints the topics of a memory.
func printTopics(out io.Writer, s *memory.Store) error {
	w := text.NewTable(out)
	for _, scope := range memory.Scopes() {
		names, err := s.Topics(scope)
		if err != nil && !errors.Is(err, memory.ErrNoScope) {
			return err
		}
		for _, name := range names {
			w.Row(scope, name)
		}
	}
	return w.Flush()
}

// printPast prints hits in past sessions.
func printPast(out, complain io.Writer, hits []recall.Hit, behind int) {
	for _, h := range hits {
		fmt.Fprintf(out, "%s#%d  %s  %s\n    %s\n", h.Session, h.Seq,
			h.Time.Local().Format("2006-01-02 15:04"), h.Kind, words.OneLine(h.Snippet, 300))
	}
	if len(hits) == 0 {
		fmt.Fprintln(complain, "Nothing was found.")
	}
	if behind > 0 {
		fmt.Fprintf(complain, "%s not in the index yet; search again to continue.\n", text.Count(behind, "session"))
	}
}

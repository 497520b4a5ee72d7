package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/memory"
	"github.com/inspan/inspan/internal/recall"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) memory() *cobra.Command {
	return group("memory", "See and change what is remembered between sessions, and search past ones",
		c.memoryList(), c.memoryAdd(), c.memoryForget(), c.memoryRead(), c.memorySearch(), c.memoryPath())
}

func (c *command) memoryList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List what is remembered for this folder, as new sessions get it",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			return listMemory(cmd.OutOrStdout(), cmd.ErrOrStderr(), a.Knowledge.Memory(root))
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory is meant")
	return cmd
}

func listMemory(out, complain io.Writer, s *memory.Store) error {
	index, err := s.Index()
	for _, e := range index.Entries {
		line := fmt.Sprintf("%-8s %s [%s] %s", e.Scope, e.ID, e.Kind, e.Text)
		if e.Topic != "" {
			line += " → topic " + e.Topic
		}
		if e.Untrusted {
			line += " (unverified)"
		}
		fmt.Fprintln(out, text.Visible(line))
		if from := origin(e.Entry); from != "" {
			fmt.Fprintln(out, text.Visible("         "+from))
		}
	}
	if len(index.Entries) == 0 && err == nil {
		fmt.Fprintln(complain, "Nothing is remembered yet. The model remembers by itself, and you can: inspan memory add \"...\"")
	}
	if index.Unvouched > 0 {
		fmt.Fprintln(complain, "The team's entries count as unverified until you trust the file as it is: inspan trust")
	}
	for _, p := range index.Problems {
		fmt.Fprintln(complain, text.Visible(p.String()))
	}
	return err
}

// origin says where an entry is from and how long it holds.
func origin(e memory.Entry) string {
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

func (c *command) memoryAdd() *cobra.Command {
	var cwd, scope, kind, topic, text, expires string
	var supersedes []string
	cmd := &cobra.Command{
		Use:   "add TEXT",
		Short: "Remember something",
		Args:  exactly(1, 1, "TEXT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			e := memory.Entry{Kind: memory.Kind(kind), Text: args[0], Topic: topic, Supersedes: supersedes}
			if expires != "" {
				if e.Expires, err = time.Parse(time.DateOnly, expires); err != nil {
					return usageError{fmt.Errorf("--expires: %q is no day such as 2026-12-31", expires)}
				}
			}
			added, err := a.Knowledge.Memory(root).Add(cmd.Context(), memory.Scope(scope), e, text)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "remembered in %s memory as %s; sessions that are opened from now on know it\n", scope, added.ID)
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&cwd, "cwd", ".", "`folder` whose memory is meant")
	fl.StringVar(&scope, "scope", "project", "`user` (you, everywhere), project (you, here) or team (in the repository)")
	fl.StringVar(&kind, "kind", "fact", "`fact`, preference, decision, procedure or reference")
	fl.StringVar(&topic, "topic", "", "`name` of the file with more, such as build")
	fl.StringVar(&text, "topic-text", "", "`markdown` to add to that file")
	fl.StringVar(&expires, "expires", "", "last `day` on which it holds, as 2026-12-31")
	fl.StringSliceVar(&supersedes, "supersedes", nil, "`id` of an entry that it replaces; again for more")
	return cmd
}

func (c *command) memoryForget() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "forget ID",
		Short: "Forget an entry",
		Args:  exactly(1, 1, "ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			for _, scope := range memory.Scopes() {
				e, err := a.Knowledge.Memory(root).Remove(cmd.Context(), scope, args[0])
				if errors.Is(err, memory.ErrUnknown) || errors.Is(err, memory.ErrNoScope) {
					continue
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "forgotten: [%s] %s\n", e.Kind, text.Visible(e.Text))
				return nil
			}
			return fmt.Errorf("nothing is remembered as %q; see 'inspan memory list'", args[0])
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory is meant")
	return cmd
}

func (c *command) memoryRead() *cobra.Command {
	var cwd, scope string
	cmd := &cobra.Command{
		Use:   "read [TOPIC]",
		Short: "Print a topic, or list them",
		Args:  exactly(0, 1, "[TOPIC]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listTopics(cmd.OutOrStdout(), a.Knowledge.Memory(root))
			}
			t, err := a.Knowledge.Memory(root).Topic(memory.Scope(scope), args[0])
			if err != nil {
				return err
			}
			fmt.Fprint(cmd.OutOrStdout(), text.VisibleLines(t.Text))
			return nil
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory is meant")
	cmd.Flags().StringVar(&scope, "scope", "project", "`user`, project or team")
	return cmd
}

func listTopics(out io.Writer, s *memory.Store) error {
	for _, scope := range memory.Scopes() {
		names, err := s.Topics(scope)
		if err != nil && !errors.Is(err, memory.ErrNoScope) {
			return err
		}
		for _, name := range names {
			fmt.Fprintf(out, "%-8s %s\n", scope, name)
		}
	}
	return nil
}

func (c *command) memorySearch() *cobra.Command {
	var cwd string
	var here bool
	var most int
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Search what was said and done in all past sessions",
		Long: "Search what was said and done in all past sessions: words, \"words in a row\", and beginnings* of words.\n" +
			"What is new in the logs is taken into the index first; that index can be deleted at any time.",
		Args: exactly(1, 100, "WORDS..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			q := recall.Query{Text: strings.Join(args, " "), Limit: most}
			if here {
				q.Root = root
			}
			return searchPast(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), a.Knowledge.Recall, q)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` that --here means")
	cmd.Flags().BoolVar(&here, "here", false, "only sessions of this folder")
	cmd.Flags().IntVarP(&most, "max", "n", 10, "how `many` places to show")
	return cmd
}

func searchPast(ctx context.Context, out, complain io.Writer, find func(context.Context, recall.Query) ([]recall.Hit, int, error), q recall.Query) error {
	hits, behind, err := find(ctx, q)
	if err != nil {
		return err
	}
	for _, h := range hits {
		fmt.Fprintf(out, "%s#%d  %s  %s\n    %s\n", h.Session, h.Seq, h.Time.Local().Format("2006-01-02 15:04"), h.Kind, words.OneLine(h.Snippet, 300))
	}
	if len(hits) == 0 {
		fmt.Fprintln(complain, "Nothing was found.")
	}
	if behind > 0 {
		fmt.Fprintf(complain, "%s not in the index yet; search again to go on.\n", text.Count(behind, "session"))
	}
	return nil
}

func (c *command) memoryPath() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "path",
		Short: "Print where the files of the memory are; they are markdown, to be read and edited",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			for _, scope := range memory.Scopes() {
				fmt.Fprintf(cmd.OutOrStdout(), "%-8s %s\n", scope, a.Knowledge.Memory(root).Path(scope, ""))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose memory is meant")
	return cmd
}

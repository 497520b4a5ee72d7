package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/internal/world/worktree"
)

func (c *command) copies() *cobra.Command {
	return group("copies", "List, show, merge and discard the copies in which subagents work",
		c.copiesList(), c.copiesDiff(), c.copiesMerge(), c.copiesDiscard())
}

func (c *command) copiesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list [ID]",
		Short: "List the copies of a session's subagents, or of all",
		Args:  exactly(0, 1, "at most one ID"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			of := ""
			if len(args) > 0 {
				var err error
				if of, err = a.Running.Seen(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			list, err := a.Running.Copies(cmd.Context(), of)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			w := text.NewTable(cmd.OutOrStdout(), "AGENT", "NOT MERGED", "OF", "TASK")
			for _, c := range list {
				unmerged := text.Count(len(c.Changed), "file")
				if c.Problem != "" {
					unmerged = "unknown: " + words.OneLine(c.Problem, 100)
				}
				w.Row(c.Agent, unmerged, text.Line(c.Of), words.OneLine(c.Task, 60))
			}
			return w.Flush()
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *command) copiesDiff() *cobra.Command {
	return &cobra.Command{
		Use:     "diff AGENT",
		Short:   "Show unmerged changes in a copy",
		Example: "  inspan copies diff k3f9a2",
		Args:    exactly(1, 1, "an AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, _, tree, err := c.copyOf(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			diff, err := subagent.Diff(cmd.Context(), a.Running.Trees, tree)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), text.VisibleLines(diff))
			return err
		},
	}
}

func (c *command) copiesMerge() *cobra.Command {
	return &cobra.Command{
		Use:     "merge AGENT [PATH]...",
		Short:   "Bring the changes in a copy, or some files of them, to its workspace",
		Long:    "inspan merges all of it, or nothing if a file is in conflict. The copy stays; 'inspan copies discard' removes it.",
		Example: "  inspan copies merge k3f9a2\n  inspan copies merge k3f9a2 src/parse.go",
		Args:    exactly(1, 1000, "an AGENT and perhaps PATHs"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, one, tree, err := c.copyOf(cmd.Context(), args[0])
			if err == nil {
				err = idle(cmd.Context(), a, one.Agent)
			}
			if err != nil {
				return err
			}
			env, err := a.Permission.Env(one.Of)
			if err != nil {
				return err
			}
			defer func() { _ = env.Close() }()
			report, err := subagent.Merge(cmd.Context(), a.Running.Trees, tree, env, one.Agent, args[1:])
			if report != "" {
				fmt.Fprintln(cmd.OutOrStdout(), text.VisibleLines(report))
			}
			return err
		},
	}
}

func (c *command) copiesDiscard() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "discard AGENT...",
		Short: "Remove copies, with the changes in them",
		Long:  "inspan asks before it removes a copy with unmerged changes. Without a terminal, that needs --yes.",
		Args:  exactly(1, 1000, "an AGENT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, arg := range args {
				a, one, _, err := c.copyOf(cmd.Context(), arg)
				if err == nil {
					err = idle(cmd.Context(), a, one.Agent)
				}
				if err != nil {
					return err
				}
				if n := len(one.Changed); n > 0 && !yes {
					if !isTerminal(c.in) {
						return misused("the copy of agent %s has unmerged changes; --yes removes them", one.Agent)
					}
					if !c.confirms(cmd.OutOrStdout(), fmt.Sprintf("Remove the copy of agent %s, with %d changed files?", one.Agent, n)) {
						continue
					}
				}
				if err := a.Running.Trees.Discard(cmd.Context(), one.Of, one.Root); err != nil {
					return err
				}
				fmt.Fprintln(cmd.OutOrStdout(), "removed", one.Root)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// copyOf finds the copy of an agent, by a part of the agent's session.
func (c *command) copyOf(ctx context.Context, agent string) (*app.App, running.Copy, worktree.Tree, error) {
	a, err := c.installation()
	if err != nil {
		return nil, running.Copy{}, worktree.Tree{}, err
	}
	id, err := a.Running.Seen(ctx, agent)
	if err != nil {
		return nil, running.Copy{}, worktree.Tree{}, err
	}
	list, err := a.Running.Copies(ctx, id)
	if err != nil {
		return nil, running.Copy{}, worktree.Tree{}, err
	}
	for _, one := range list {
		if one.Agent == id {
			tree, _, err := a.Running.Trees.Open(ctx, one.Of, one.Root)
			return a, one, tree, err
		}
	}
	return nil, running.Copy{}, worktree.Tree{}, misused("agent %s has no copy; 'inspan copies list' lists the copies", id)
}

// idle returns an error while an agent works.
func idle(ctx context.Context, a *app.App, agent string) error {
	h, err := a.Running.Driver(ctx, agent)
	if err == nil && h != nil {
		err = fmt.Errorf("agent %s still works; stop it first: inspan stop %s", agent, agent)
	}
	return err
}

package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) skills() *cobra.Command {
	return group("skills", "List and check skills, count their tokens, and learn new ones",
		append([]*cobra.Command{c.skillsList(), c.skillsShow(), c.skillsValidate(), c.skillsCost()}, c.skillDrafts()...)...)
}

// skillDrafts are the commands about skills that a model drafts.
func (c *command) skillDrafts() []*cobra.Command {
	var user bool
	draft := c.ownTool("draft SESSION", "Draft a skill from a session that has ended well", exactly(1, 1, "a SESSION"),
		func(ctx context.Context, o console.OwnTools, id string) error { return o.DraftSkill(ctx, id) })
	draft.Long = "A model reads the session and writes a SKILL.md: when to use it, the steps, the commands, the pitfalls.\n" +
		"It is the model for small tasks, agents.small, if one is set. The draft lies where no session reads it, until you promote it."
	drafts := c.ownTool("drafts", "List the drafts of skills", exactly(0, 0, "no arguments"),
		func(ctx context.Context, o console.OwnTools, _ string) error { return o.SkillDrafts(ctx) })
	promote := c.ownTool("promote NAME", "Keep a draft as a skill, after showing it", exactly(1, 1, "a NAME"),
		func(ctx context.Context, o console.OwnTools, name string) error {
			return o.PromoteSkill(ctx, name, user)
		})
	promote.Flags().BoolVar(&user, "user", false, "as a skill of your own, for all projects")
	drop := c.ownTool("drop NAME", "Remove a draft", exactly(1, 1, "a NAME"),
		func(ctx context.Context, o console.OwnTools, name string) error { return o.DropSkill(ctx, name) })
	return []*cobra.Command{draft, drafts, promote, drop}
}

func (c *command) skillsList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the skills of sessions in this folder",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			l := a.Extensions.Skills(root)
			return console.Skills(cmd.OutOrStdout(), cmd.ErrOrStderr(), l)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills to use")
	return cmd
}

func (c *command) skillsShow() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "show NAME [ARGUMENTS]",
		Short: "Print a skill as the model gets it",
		Args:  exactly(1, 2, "a NAME and optional ARGUMENTS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			l := a.Extensions.Skills(root)
			return console.Skill(cmd.OutOrStdout(), l, args[0], strings.Join(args[1:], " "))
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills to use")
	return cmd
}

func (c *command) skillsValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FOLDER...",
		Short: "Check skills against the agentskills.io specification",
		Long: "The keys of Claude Code that inspan uses are valid too: argument-hint, disable-model-invocation,\n" +
			"user-invocable and when_to_use. A session is lenient and uses skills with problems as far as possible.",
		Args: exactly(1, 1000, "a FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return console.Valid(cmd.OutOrStdout(), args)
		},
	}
}

func (c *command) skillsCost() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "cost [NAME...]",
		Short: "Count the tokens of each level of a skill",
		Long: "Counts are estimates for three levels: the skill's line in every prompt, its instructions once loaded,\n" +
			"and all its other files.",
		Args: exactly(0, 1000, "NAMES"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			l := a.Extensions.Skills(root)
			return console.SkillCosts(cmd.OutOrStdout(), l, args)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills to use")
	return cmd
}

// skillSlashes are the skills as slash commands, but for those whose name one of
// ours has.
func skillSlashes(a *app.App, root string) []tui.Command {
	l := a.Extensions.Skills(root)
	list, _ := l.List()
	var out []tui.Command
	for _, s := range list {
		if s.Hidden || slices.ContainsFunc(tui.Commands(), func(c tui.Command) bool { return c.Name == s.Name }) {
			continue
		}
		out = append(out, tui.Command{
			Name: s.Name, Args: s.Hint, Doc: s.Description,
			Prompt: func(_ context.Context, args string) (string, error) {
				text, _, err := l.Invoke(s.Name, args)
				return text, err
			},
		})
	}
	return out
}

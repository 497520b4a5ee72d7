package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/tui"
)

func (c *command) skills() *cobra.Command {
	return group("skills", "List and check skills, and count their tokens", c.skillsList(), c.skillsShow(), c.skillsValidate(), c.skillsCost())
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

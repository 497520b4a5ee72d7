package command

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) skills() *cobra.Command {
	return group("skills", "List and check skills, count their tokens, and learn new ones",
		append([]*cobra.Command{c.skillsList(), c.skillsShow(), c.skillsValidate(), c.skillsCost()}, c.skillDrafts()...)...)
}

func (c *command) skillsList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the skills of sessions in this folder",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			l := a.Extensions.Skills(root)
			return printSkills(cmd.OutOrStdout(), cmd.ErrOrStderr(), l)
		}),
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
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			l := a.Extensions.Skills(root)
			s, _, err := l.Invoke(args[0], strings.Join(args[1:], " "))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), text.VisibleLines(s))
			return err
		}),
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
			return printValid(cmd.OutOrStdout(), args)
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
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			l := a.Extensions.Skills(root)
			return printSkillCosts(cmd.OutOrStdout(), l, args)
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills to use")
	return cmd
}

// skillSlashes returns the skills as slash commands, except those with the name of one of ours.
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

// printSkills prints the skills of a library.
func printSkills(out, complain io.Writer, l *skill.Library) error {
	list, warnings := l.List()
	w := text.NewTable(out)
	for _, s := range list {
		who := s.Source
		switch {
		case s.Manual:
			who += ", only by you"
		case s.Hidden:
			who += ", only by the model"
		}
		w.Row(s.Name, who, words.OneLine(s.Description, 70))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if len(s.Problems) > 0 {
			fmt.Fprintf(complain, "%s: %s\n", s.Name, text.Visible(strings.Join(s.Problems, "; ")))
		}
	}
	for _, str := range warnings {
		fmt.Fprintln(complain, text.Visible(str))
	}
	return nil
}

// printSkillCosts prints the tokens of each level of skills; without names, of all.
func printSkillCosts(out io.Writer, l *skill.Library, names []string) error {
	if len(names) == 0 {
		list, _ := l.List()
		for _, s := range list {
			names = append(names, s.Name)
		}
	}
	w := text.NewTable(out, "SKILL", "IN THE PROMPT", "INSTRUCTIONS", "FILES")
	row := func(name string, c skill.Levels) {
		w.Row(name, text.Thousands(c.Index.Tokens), text.Thousands(c.Text.Tokens),
			text.Thousands(c.Files.Tokens)+" in "+text.Count(c.Count, "file"))
	}
	var sum skill.Levels
	for _, name := range names {
		cost, err := l.Cost(name)
		if err != nil {
			return err
		}
		sum.Index.Tokens += cost.Index.Tokens
		sum.Text.Tokens += cost.Text.Tokens
		sum.Files.Tokens += cost.Files.Tokens
		sum.Count += cost.Count
		row(name, cost)
	}
	row("all", sum)
	return w.Flush()
}

// printValid prints the problems of the skills in folders, by the rules of agentskills.io; an error: there are
// some.
func printValid(out io.Writer, dirs []string) error {
	bad := 0
	for _, dir := range dirs {
		problems := skill.Validate(dir)
		if len(problems) == 0 {
			fmt.Fprintf(out, "%s: valid\n", dir)
			continue
		}
		bad++
		for _, p := range problems {
			fmt.Fprintf(out, "%s: %s\n", dir, text.Visible(p))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %d are not valid", bad, len(dirs))
	}
	return nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/skill"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/tui"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) skills() *cobra.Command {
	return group("skills", "List skills, check them, and see what they cost", c.skillsList(), c.skillsShow(), c.skillsValidate(), c.skillsCost())
}

// library opens the skills of the folder that a command is about.
func (c *command) library(cwd string) (*skill.Library, error) {
	a, root, err := c.at(cwd)
	if err != nil {
		return nil, err
	}
	return a.Extensions.Skills(root), nil
}

func (c *command) skillsList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the skills that a session in this folder has",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := c.library(cwd)
			if err != nil {
				return err
			}
			return listSkills(cmd.OutOrStdout(), cmd.ErrOrStderr(), l)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills are meant")
	return cmd
}

func listSkills(out, complain io.Writer, l *skill.Library) error {
	list, warnings := l.List()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		who := s.Source
		switch {
		case s.Manual:
			who += ", only by you"
		case s.Hidden:
			who += ", only by the model"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Name, who, words.OneLine(s.Description, 70))
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

func (c *command) skillsShow() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "show NAME [ARGUMENTS]",
		Short: "Print what a skill tells the model",
		Args:  exactly(1, 2, "NAME [ARGUMENTS]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.library(cwd)
			if err != nil {
				return err
			}
			s, _, err := l.Invoke(args[0], strings.Join(args[1:], " "))
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), text.VisibleLines(s))
			return nil
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills are meant")
	return cmd
}

func (c *command) skillsValidate() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FOLDER...",
		Short: "Hold skills to all that agentskills.io demands",
		Long:  "Hold skills to all that agentskills.io demands. inspan itself is lenient: it also uses skills with problems, as far as that is possible.",
		Args:  exactly(1, 1000, "FOLDER..."),
		RunE: func(cmd *cobra.Command, args []string) error {
			bad := 0
			for _, dir := range args {
				problems := skill.Validate(dir)
				if len(problems) == 0 {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: valid\n", dir)
					continue
				}
				bad++
				for _, p := range problems {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", dir, text.Visible(p))
				}
			}
			if bad > 0 {
				return fmt.Errorf("%d of %d are not valid", bad, len(args))
			}
			return nil
		},
	}
}

func (c *command) skillsCost() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "cost [NAME...]",
		Short: "Count the tokens of each level of a skill",
		Long: "Count the tokens of each level of a skill, about: its line in the prompt, which every request has; its instructions, once it is\n" +
			"loaded; and all its other files, if all were read.",
		Args: exactly(0, 1000, "[NAME...]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := c.library(cwd)
			if err != nil {
				return err
			}
			return skillCosts(cmd.OutOrStdout(), l, args)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose skills are meant")
	return cmd
}

func skillCosts(out io.Writer, l *skill.Library, names []string) error {
	if len(names) == 0 {
		list, _ := l.List()
		for _, s := range list {
			names = append(names, s.Name)
		}
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SKILL\tIN THE PROMPT\tINSTRUCTIONS\tFILES")
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
		skillCost(w, name, cost)
	}
	skillCost(w, "all", sum)
	return w.Flush()
}

func skillCost(w io.Writer, name string, c skill.Levels) {
	fmt.Fprintf(w, "%s\t%s\t%s\t%s in %s\n", name, text.Thousands(c.Index.Tokens), text.Thousands(c.Text.Tokens), text.Thousands(c.Files.Tokens), text.Count(c.Count, "file"))
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

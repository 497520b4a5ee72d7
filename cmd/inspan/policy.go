package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/permission"
	"github.com/inspan/inspan/internal/policy"
	"github.com/inspan/inspan/internal/words"
	"github.com/inspan/inspan/tool"
)

func (c *command) policy() *cobra.Command {
	return group("policy", "Look at permissions", c.policyExplain(), c.policyRules(), c.policyForget())
}

func (c *command) policyExplain() *cobra.Command {
	var cwd, mode string
	cmd := &cobra.Command{
		Use:   `explain "COMMAND"`,
		Short: "Show what a command line would do, and whether it would run unasked",
		Long: "Show the simple commands that a command line for bash comes to, and what each would do: \"read\" only reads and prints,\n" +
			"\"workspace\" also writes to known paths inside the workspace, \"full\" may do anything. What can't be proven is full.\n" +
			"Then show what the permission mode and your rules say of it, what asks, and the narrowest rule that would allow it.\n\n" +
			"Nothing is run.",
		Example: "  inspan policy explain 'git log --oneline | head -5'\n  inspan policy explain --mode edit 'find . -name \"*.tmp\" -delete'",
		Args:    exactly(1, 1, "one COMMAND, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := policy.CheckMode(mode); err != nil {
				return usageError{fmt.Errorf("--mode: %w", err)}
			}
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			e, err := a.Permission.Explain(cmd.Context(), cwd, mode, args[0])
			if err != nil {
				return err
			}
			return printExplained(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` the command would run in, the workspace")
	cmd.Flags().StringVar(&mode, "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default: that of new sessions)")
	return cmd
}

func printExplained(out io.Writer, e permission.Explained) error {
	fmt.Fprintf(out, "%s\n", e.Plan.Class)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range e.Plan.Segments {
		fmt.Fprintf(w, "  %s%s\t%s\t%s\n", strings.Repeat("  ", s.Depth), s.Class, words.OneLine(s.Text, 100), words.OneLine(s.Why, 200))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range e.Plan.Effects {
		fmt.Fprintf(out, "%s %s\n", e.Kind, words.OneLine(e.Path+e.Text, 200))
	}
	if e.Plan.Git {
		fmt.Fprintln(out, "This holds if the repository's configuration names no program and hooks are off.")
	}
	fmt.Fprintf(out, "In mode %s: %s, by %s\n", e.Mode, e.Verdict.Action, e.Verdict.By)
	for _, f := range e.Findings {
		if f.Verdict.Action != tool.Allow {
			fmt.Fprintf(out, "  %s: %s\n", f.Verdict.Action, words.OneLine(f.Verdict.Reason, 300))
		}
	}
	switch {
	case e.Verdict.Action == tool.Deny:
	case len(e.Rules) > 0:
		fmt.Fprintf(out, "Narrowest rules that would allow it: allow = [%s]\n", words.OneLine(quoteAll(e.Rules), 300))
	case e.Verdict.Action == tool.Ask:
		fmt.Fprintln(out, "No rule could safely allow it; it can be allowed once.")
	}
	return nil
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = strconv.Quote(t)
	}
	return strings.Join(quoted, ", ")
}

func (c *command) policyRules() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules that hold in a folder, and where they come from",
		Long:  "List the rules of the organisation, of your settings, of the project, and those you allowed for the project or always. Deny beats ask beats allow.",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			rules, err := a.Permission.Rules(root)
			if err != nil {
				return err
			}
			if len(rules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no rules; the permission mode alone decides")
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, r := range rules {
				fmt.Fprintf(w, "%s\t%s\t%s\n", r.Action, words.OneLine(r.Text, 200), r.Scope)
			}
			return w.Flush()
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder`, the workspace")
	return cmd
}

func (c *command) policyForget() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:     `forget "RULE"`,
		Short:   "Forget a rule that you allowed for a project or always",
		Example: "  inspan policy forget 'bash(npm install *)'",
		Args:    exactly(1, 1, "one RULE, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			n, err := a.Consent.Revoke(cmd.Context(), args[0], root)
			if err == nil && n == 0 {
				return usageError{fmt.Errorf("%q was not allowed here; see 'inspan policy rules'", args[0])}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder`, the workspace")
	return cmd
}

// at reads the settings and finds a workspace.
func (c *command) at(folder string) (*app.App, string, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, "", err
	}
	root, err := filepath.Abs(folder)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, "", usageError{fmt.Errorf("--cwd: %w", err)}
	}
	return a, root, nil
}

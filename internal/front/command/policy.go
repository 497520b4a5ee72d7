package command

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

func (c *command) policy() *cobra.Command {
	return group("policy", "Explain permissions and list the rules", c.policyExplain(), c.policyRules(), c.policyForget())
}

func (c *command) policyExplain() *cobra.Command {
	var cwd string
	var o app.Options
	cmd := &cobra.Command{
		Use:   `explain "COMMAND"`,
		Short: "Explain the effects of a command line, and whether it asks",
		Long: "inspan splits a bash command line into simple commands and classifies each. \"read\" only reads and prints.\n" +
			"\"workspace\" also writes to known paths in the workspace. \"full\" can do anything, or can't be proven harmless.\n" +
			"Then it shows the verdict of the mode and your rules, which rules it tried, and the narrowest rule that would allow the command.\n\n" +
			"It runs nothing.",
		Example: "  inspan policy explain 'git log --oneline | head -5'\n  inspan policy explain --mode edit 'find . -name \"*.tmp\" -delete'" +
			"\n  inspan policy explain --deny 'bash(git push *)' 'make release'",
		Args: exactly(1, 1, "a COMMAND in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			e, err := a.Permission.Explain(cmd.Context(), root, o.Mode, permission.Line{Allow: o.Allow, Ask: o.Ask, Deny: o.Deny}, args[0])
			if err != nil {
				return err
			}
			return printExplained(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` the command would run in (the workspace)")
	cmd.Flags().StringVar((*string)(&o.Mode), "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default: that of new sessions)")
	addRules(cmd.Flags(), &o)
	return cmd
}

func (c *command) policyRules() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules in force and their sources",
		Long: "Rules come from the organisation, your settings, the project, and your approvals \"for this project\" or \"always\".\n" +
			"Deny beats ask, and ask beats allow. Rules in the form of another agent are shown translated.\n" +
			"inspan says which rules match nothing here, and which change nothing because another one decides first.",
		Args: exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			rules, err := a.Rules(cmd.Context(), root)
			if err != nil {
				return err
			}
			if len(rules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no rules; the permission mode alone decides")
			}
			return printRules(cmd.OutOrStdout(), rules)
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to use (the workspace)")
	return cmd
}

func (c *command) policyForget() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:     `forget "RULE"`,
		Short:   "Remove a rule that you approved for a project or always",
		Example: "  inspan policy forget 'bash(npm install *)'",
		Args:    exactly(1, 1, "a RULE in quotes"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			n, err := a.Consent.Revoke(cmd.Context(), args[0], root)
			if err == nil && n == 0 {
				return misused("%q was not allowed here; see 'inspan policy rules'", args[0])
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to use (the workspace)")
	return cmd
}

// printExplained prints the verdict on a command line.
func printExplained(out io.Writer, e permission.Explained) error {
	fmt.Fprintf(out, "%s\n", e.Plan.Class)
	w := text.NewTable(out)
	for _, s := range e.Plan.Segments {
		w.Row(fmt.Sprintf("  %s%s", strings.Repeat("  ", s.Depth), s.Class), words.OneLine(s.Text, 100), words.OneLine(s.Why, 200))
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
	for i, t := range e.Tried {
		if i == 0 {
			fmt.Fprintln(out, "Rules tried:")
		}
		matches := "no match"
		if t.Matches {
			matches = "matches"
		}
		fmt.Fprintf(out, "  %s %s (%s): %s\n", t.Rule.Action, words.OneLine(t.Rule.Text, 200), t.Rule.Scope, matches)
	}
	switch {
	case e.Verdict.Action == tool.Deny:
	case len(e.Rules) > 0:
		var quoted []string
		for _, rule := range e.Rules {
			quoted = append(quoted, strconv.Quote(rule))
		}
		fmt.Fprintf(out, "Narrowest rules that would allow it: allow = [%s]\n", words.OneLine(strings.Join(quoted, ", "), 300))
	case e.Verdict.Action == tool.Ask:
		fmt.Fprintln(out, "No rule is safe for it; you can only approve it once.")
	}
	return nil
}

// printRules prints rules with their origins.
func printRules(out io.Writer, rules []app.RuleNote) error {
	w := text.NewTable(out)
	for _, r := range rules {
		var notes []string
		if r.Original != "" {
			notes = append(notes, "written as "+words.OneLine(r.Original, 200))
		}
		switch {
		case r.Unmatched != nil:
			notes = append(notes, "matches nothing here: "+words.OneLine(r.Unmatched.Error(), 300))
		case r.By != nil:
			notes = append(notes, fmt.Sprintf("has no effect because of %s %s (%s)", r.By.Action, words.OneLine(r.By.Text, 200), r.By.Scope))
		}
		w.Row(r.Action, words.OneLine(r.Text, 200), r.Scope, strings.Join(notes, "; "))
	}
	return w.Flush()
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/console"
	"github.com/inspan/inspan/internal/shell"
)

func (c *command) policy() *cobra.Command {
	return group("policy", "Look at permissions", c.policyExplain())
}

func (c *command) policyExplain() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   `explain "COMMAND"`,
		Short: "Show what a command line would do, as far as that can be proven",
		Long: "Show the simple commands that a command line for bash comes to, and what each would do: \"read\" only reads and prints,\n" +
			"\"workspace\" also writes to known paths inside the workspace, \"full\" may do anything. What can't be proven is full.\n\n" +
			"Nothing is run, and no file is looked at. The permission modes do not go by this yet: they treat every command as full.",
		Example: "  inspan policy explain 'git log --oneline | head -5'\n  inspan policy explain 'find . -name \"*.tmp\" -delete'",
		Args:    exactly(1, 1, "one COMMAND, in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := filepath.Abs(cwd)
			if err != nil {
				return fmt.Errorf("find the workspace: %w", err)
			}
			home, err := os.UserHomeDir()
			if err != nil {
				home = "" // no path is inside of it then
			}
			return printPlan(cmd.OutOrStdout(), shell.Explain(args[0], shell.Place{Root: root, Cwd: root, Home: home}))
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` the command would run in, the workspace")
	return cmd
}

func printPlan(out io.Writer, p shell.Plan) error {
	fmt.Fprintf(out, "%s\n", p.Class)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range p.Segments {
		why := s.Why
		if s.Prefix != nil && s.Class != shell.Read {
			why += "; a rule could allow: " + strings.Join(s.Prefix, " ")
		}
		fmt.Fprintf(w, "  %s%s\t%s\t%s\n", strings.Repeat("  ", s.Depth), s.Class, console.OneLine(s.Text, 100), console.OneLine(why, 200))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range p.Effects {
		fmt.Fprintf(out, "%s %s\n", e.Kind, console.OneLine(e.Path+e.Text, 200))
	}
	if p.Git {
		fmt.Fprintln(out, "This holds if the repository's configuration names no program and hooks are off.")
	}
	return nil
}

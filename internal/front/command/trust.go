package command

import (
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/consent"
)

func (c *command) trust() *cobra.Command {
	var yes, forget, sum bool
	cmd := &cobra.Command{
		Use:   "trust [FOLDER]",
		Short: "Review and trust the content of a folder that could run programs",
		Long: "inspan shows everything that could start a program or change its behaviour: settings, hooks, tools, skills with scripts,\n" +
			"MCP servers. All of it is inert until you trust its exact content. After any change, inspan asks again.\n" +
			"Scripts of skills can still run, as commands that you approve or in the sandbox.\n" +
			"Trust in a folder does not extend to the folders in it.\n\n" +
			"Agents get the team's memory (.inspan/memory) as unverified until you trust it, file by file. New sessions use the new state.\n" +
			"The memory is not part of the checksum, because it runs nothing and changes as agents work. The same holds for files of\n" +
			"instructions (AGENTS.md and others) that a session wrote and no person confirmed.\n\n" +
			"Without a terminal, inspan trusts nothing unless 'inspan run --trust SUM' names the content.",
		Example: "  inspan trust\n  inspan trust --sum       # for --trust in CI\n  inspan trust --forget",
		Args:    exactly(0, 1, "at most one FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(append(args, ".")[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if forget {
				return a.Consent.Distrust(cmd.Context(), root)
			}
			if sum {
				r, err := a.Consent.ReviewRunning(root, "")
				if err == nil {
					fmt.Fprintln(out, r.Sum())
				}
				return err
			}
			r, err := a.Consent.ReviewAll(root)
			if err != nil {
				return err
			}
			printContent(out, "trusted", r.Trusted)
			printContent(out, "changed since you trusted it", r.Changed)
			printContent(out, "new", r.New)
			for _, line := range a.Permission.Heeded(root) {
				fmt.Fprintln(out, line)
			}
			open := slices.Concat(r.Changed, r.New)
			switch {
			case len(r.Trusted)+len(open) == 0:
				fmt.Fprintln(out, "Nothing in this folder needs trust: no programs, no settings of inspan and no team memory.")
				return nil
			case len(open) == 0:
				return nil
			case !yes && !isTerminal(c.in):
				fmt.Fprintln(cmd.ErrOrStderr(), "Not trusted, because there is no terminal to ask on. --yes trusts this content.")
				return nil
			case !yes && !c.confirms(out, fmt.Sprintf("Trust exactly this content (%d new or changed)?", len(open))):
				fmt.Fprintln(out, "Not trusted.")
				return nil
			}
			return a.Consent.Trust(cmd.Context(), root, open)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "trust without asking")
	cmd.Flags().BoolVar(&forget, "forget", false, "withdraw trust from the folder")
	cmd.Flags().BoolVar(&sum, "sum", false, "print the checksum of the content, for 'inspan run --trust'")
	oneOf(cmd, "yes", "forget", "sum")
	return cmd
}

// printContent prints items with the commands that each would run.
func printContent(out io.Writer, title string, items []consent.Item) {
	for _, it := range items {
		fmt.Fprintf(out, "%s: %s %s\n", title, it.Kind, it.Path)
		for _, line := range it.Runs {
			fmt.Fprintln(out, "    "+text.Visible(line))
		}
	}
}

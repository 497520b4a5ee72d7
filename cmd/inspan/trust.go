package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/listing"
)

func (c *command) trust() *cobra.Command {
	var yes, forget, sum bool
	cmd := &cobra.Command{
		Use:   "trust [FOLDER]",
		Short: "Show what in a folder would run programs or speak for the team, and trust exactly that content",
		Long: "Show what in a folder could start a program or change what inspan does: settings, hooks, tools, skills with scripts, MCP servers. All of it is\n" +
			"inert until you trust its exact content; one changed byte, and you are asked again. Trusting a folder says nothing of the folders in it.\n\n" +
			"The team's memory (.inspan/memory) is told to agents as unverified until you trust it. Each file counts for itself, and new sessions go by it.\n" +
			"It is no part of the sum: it runs nothing, and changes as agents work.\n\n" +
			"Without a terminal nothing is trusted, unless 'inspan run --trust SUM' names the content.",
		Example: "  inspan trust\n  inspan trust --sum       # for --trust in CI\n  inspan trust --forget",
		Args:    exactly(0, 1, "one FOLDER at most"),
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
			listing.Content(out, "trusted", r.Trusted)
			listing.Content(out, "changed since you trusted it", r.Changed)
			listing.Content(out, "new", r.New)
			open := slices.Concat(r.Changed, r.New)
			switch {
			case len(r.Trusted)+len(open) == 0:
				fmt.Fprintln(out, "Nothing in this folder would run a program, change what inspan does, or tell agents what the team knows.")
				return nil
			case len(open) == 0:
				return nil
			case !yes && !isTerminal(c.in):
				fmt.Fprintln(cmd.ErrOrStderr(), "Not trusted: there is nobody to ask. --yes trusts what is shown.")
				return nil
			case !yes && !c.agrees(out, len(open)):
				fmt.Fprintln(out, "Not trusted.")
				return nil
			}
			return a.Consent.Trust(cmd.Context(), root, open)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "trust what is shown without asking")
	cmd.Flags().BoolVar(&forget, "forget", false, "trust nothing in the folder any more")
	cmd.Flags().BoolVar(&sum, "sum", false, "print the sum that names the content, for 'inspan run --trust'")
	cmd.MarkFlagsMutuallyExclusive("yes", "forget", "sum")
	return cmd
}

// agrees asks the person. Anything but yes is no.
func (c *command) agrees(out io.Writer, n int) bool {
	fmt.Fprintf(out, "Trust exactly this content, so that these %d count? [y/N] ", n)
	line, err := bufio.NewReader(c.in).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (word == "y" || word == "yes")
}

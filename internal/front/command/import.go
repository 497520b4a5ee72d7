package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) imports() *cobra.Command {
	var cwd string
	var write, asJSON bool
	cmd := &cobra.Command{
		Use:   "import [AGENT ...]",
		Short: "Take over what you have set in Claude Code, Codex, opencode or Gemini CLI",
		Long: "inspan shows what it finds in your home and in this folder, and what becomes of it: used where it is, translated, or\n" +
			"ignored, and why. It changes nothing unless you pass --write. Then it writes what is translated: settings and MCP\n" +
			"servers to your settings file, prompts to your commands. What your settings say already stays.\n\n" +
			"An AGENT is one of " + strings.Join(setup.Agents(), ", ") + "; without one, inspan looks at all.",
		Example: "  inspan import\n  inspan import claude --write",
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(setup.Agents(), name) {
					return misused("unknown agent %q; use %s%s", name, strings.Join(setup.Agents(), ", "), words.DidYouMean(name, setup.Agents()))
				}
			}
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			found, err := setup.Look(a, root, args)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				if err := printJSON(out, found.Items); err != nil {
					return err
				}
			} else {
				found.Print(out)
			}
			if write {
				if err := found.Write(); err != nil {
					return err
				}
			}
			fmt.Fprintln(cmd.ErrOrStderr(), found.Told(write))
			return nil
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose files to look at too")
	cmd.Flags().BoolVar(&write, "write", false, "write what is translated")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

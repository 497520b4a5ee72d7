package command

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/setup"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) imports() *cobra.Command {
	var cwd string
	var write, asJSON bool
	cmd := &cobra.Command{
		Use:   "import [AGENT ...]",
		Short: "Import settings of Claude Code, Codex, opencode, Gemini CLI, Cursor or Copilot",
		Long: "inspan shows files of other agents in your home and in this folder, and what happens to them: used in place, translated, or\n" +
			"ignored, and why. It changes nothing unless you pass --write. Then it writes the translations: settings and MCP\n" +
			"servers to your settings file, prompts to your commands. It never overwrites your settings. No secret is\n" +
			"written: a server names a variable instead. The servers of a folder stay its own.\n\n" +
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
	cmd.Flags().BoolVar(&write, "write", false, "write the translations")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// mcpImport imports only MCP servers, and shows the program of each.
func (c *command) mcpImport() *cobra.Command {
	var cwd string
	var yes bool
	cmd := &cobra.Command{
		Use:   "import [FILE ...]",
		Short: "Import the MCP servers of other programs",
		Long: "inspan reads your servers in Cursor, VS Code, Copilot CLI, Claude Code, Claude Desktop, Codex, Gemini CLI and\n" +
			"opencode. 'inspan import' also imports other settings. It shows the command of each new server and writes it to\n" +
			"your settings, without secrets. Without a terminal, pass --yes. Servers of this folder stay its own: with FILE,\n" +
			"inspan reads only those files, and writes their servers to your settings.",
		Example: "  inspan mcp import\n  inspan mcp import --yes .cursor/mcp.json",
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			found, err := setup.LookServers(a, root, args, c.warn)
			if err != nil {
				return err
			}
			out, list := cmd.OutOrStdout(), found.Servers()
			for _, s := range list {
				does := cmp.Or(text.Address(s.Server.URL), strings.Join(s.Server.Command, " "))
				fmt.Fprintf(out, "%s: %s\n    from %s\n", s.Name, text.Visible(words.OneLine(does, 1000)), s.Path)
			}
			switch {
			case len(list) == 0:
				fmt.Fprintln(out, "No new MCP servers found.")
				return nil
			case yes:
			case !isTerminal(c.in):
				return errors.New("nothing was added, because there is no terminal to ask on; --yes adds these servers")
			case !c.confirms(out, "Add them to your settings?"):
				fmt.Fprintln(out, "Nothing added.")
				return nil
			}
			if err := found.Write(); err != nil {
				return err
			}
			var names []string
			for _, s := range list {
				names = append(names, s.Name)
				if missing := s.Missing(); len(missing) > 0 {
					fmt.Fprintf(out, "%s needs %s, which is not set here\n", s.Name, strings.Join(missing, " and "))
				}
			}
			fmt.Fprintf(out, "Added %s to %s; 'inspan mcp list' tries them.\n", strings.Join(names, ", "), a.ConfigPath)
			return nil
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose files to read too")
	cmd.Flags().BoolVar(&yes, "yes", false, "import without asking")
	return cmd
}

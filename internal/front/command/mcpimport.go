package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func (c *command) mcpImport() *cobra.Command {
	var cwd string
	var yes bool
	cmd := &cobra.Command{
		Use:   "import [FILE ...]",
		Short: "Import the MCP servers of other programs",
		Long: "inspan reads the servers of Cursor, VS Code, Claude Code, Claude Desktop, Codex, Gemini CLI and opencode,\n" +
			"including those of this folder. 'inspan import' also takes over other settings.\n" +
			"It shows the command of each new server and writes it to your settings. Without a terminal, pass --yes.\n" +
			"With FILE, inspan reads only those files.",
		Example: "  inspan mcp import\n  inspan mcp import --yes .cursor/mcp.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			list, err := a.Hubs.Foreign(args, root, c.warn)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			printForeign(out, list)
			switch {
			case len(list) == 0:
				fmt.Fprintln(out, "No new MCP servers found.")
				return nil
			case yes:
			case !isTerminal(c.in):
				return errors.New("there is nobody to ask; --yes adds these servers")
			case !c.confirms(out, "Add them to your settings?"):
				fmt.Fprintln(out, "Nothing added.")
				return nil
			}
			var names []string
			for _, b := range list {
				if err := a.Hubs.Add(b.Name, b.Server); err != nil {
					return err
				}
				names = append(names, b.Name)
				if missing := b.Missing(); len(missing) > 0 {
					fmt.Fprintf(out, "%s needs %s, which is not set here\n", b.Name, strings.Join(missing, " and "))
				}
			}
			fmt.Fprintf(out, "Added %s to %s; 'inspan mcp list' tries them.\n", strings.Join(names, ", "), a.ConfigPath)
			return nil
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose files to read too")
	cmd.Flags().BoolVar(&yes, "yes", false, "import without asking")
	return cmd
}

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/connect"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) mcpImport() *cobra.Command {
	var cwd string
	var yes bool
	cmd := &cobra.Command{
		Use:   "import [FILE ...]",
		Short: "Import the MCP servers of other programs",
		Long: "inspan reads the servers of Cursor, VS Code, Claude Code, Claude Desktop and Codex, including those of this folder.\n" +
			"It shows the command of each new server and writes it to your settings. Without a terminal, pass --yes.\n" +
			"With FILE, inspan reads only those files.",
		Example: "  inspan mcp import\n  inspan mcp import --yes .cursor/mcp.json",
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			list, err := a.Hubs.Foreign(args, root, complainTo(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			return c.bring(cmd.OutOrStdout(), a, list, yes)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose files to read too")
	cmd.Flags().BoolVar(&yes, "yes", false, "import without asking")
	return cmd
}

// bring shows servers and, if the person agrees, adds them.
func (c *command) bring(out io.Writer, a *app.App, list []connect.Foreign, yes bool) error {
	if len(list) == 0 {
		fmt.Fprintln(out, "There is no MCP server that you don't have.")
		return nil
	}
	for _, b := range list {
		does := b.Server.URL
		if does == "" {
			does = strings.Join(b.Server.Command, " ")
		}
		fmt.Fprintf(out, "%s: %s\n    from %s\n", b.Name, text.Visible(words.OneLine(does, 1000)), b.Path)
	}
	switch {
	case yes:
	case !isTerminal(c.in):
		return errors.New("nobody is there to ask; --yes takes over what is shown")
	case !c.confirms(out, "Add them to your settings?"):
		fmt.Fprintln(out, "Nothing is added.")
		return nil
	}
	for _, b := range list {
		if err := config.AddServer(a.ConfigPath, b.Name, b.Server); err != nil {
			return err
		}
		var missing []string
		for _, name := range b.Server.Variables() {
			if os.Getenv(name) == "" {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			fmt.Fprintf(out, "%s needs %s, which is not set here\n", b.Name, strings.Join(missing, " and "))
		}
	}
	fmt.Fprintf(out, "Added %s to %s; 'inspan mcp list' tries them.\n", text.Count(len(list), "server"), a.ConfigPath)
	return nil
}

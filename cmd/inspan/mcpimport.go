package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/keep"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
)

// brought is a server from a file of another program.
type brought struct {
	name, path string
	server     config.MCPServer
}

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
			list, err := broughtFrom(args, root, a.Config.MCP.Servers, complainTo(cmd.ErrOrStderr()))
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

// broughtFrom reads the files that are named, or all that there are. Of two servers with
// one name the first counts.
func broughtFrom(paths []string, root string, have map[string]config.MCPServer, warn func(string)) ([]brought, error) {
	settings, _ := os.UserConfigDir() // without one there is nothing in it
	files := config.ForeignFiles(root, keep.Home(), settings)
	if len(paths) > 0 {
		files = nil
	}
	for _, path := range paths {
		at, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		files = append(files, config.ForeignFile(at, root))
	}
	var out []brought
	for _, f := range files {
		data, err := config.ReadFile(f.Path)
		if errors.Is(err, fs.ErrNotExist) && len(paths) == 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		servers, warnings, err := f.Read(f, data)
		if err != nil && len(paths) > 0 {
			return nil, err
		}
		if err != nil {
			warn(err.Error())
		}
		for _, text := range warnings {
			warn(text)
		}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			_, taken := have[name]
			if taken || slices.ContainsFunc(out, func(b brought) bool { return b.name == name }) {
				warn(fmt.Sprintf("%s: there is an MCP server %s already; this one is left out", f.Path, name))
				continue
			}
			out = append(out, brought{name, f.Path, servers[name]})
		}
	}
	return out, nil
}

// bring shows servers and, if the person agrees, adds them.
func (c *command) bring(out io.Writer, a *app.App, list []brought, yes bool) error {
	if len(list) == 0 {
		fmt.Fprintln(out, "There is no MCP server that you don't have.")
		return nil
	}
	for _, b := range list {
		does := b.server.URL
		if does == "" {
			does = strings.Join(b.server.Command, " ")
		}
		fmt.Fprintf(out, "%s: %s\n    from %s\n", b.name, text.Visible(words.OneLine(does, 1000)), b.path)
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
		if err := config.AddServer(a.ConfigPath, b.name, b.server); err != nil {
			return err
		}
		var missing []string
		for _, name := range b.server.Variables() {
			if os.Getenv(name) == "" {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			fmt.Fprintf(out, "%s needs %s, which is not set here\n", b.name, strings.Join(missing, " and "))
		}
	}
	fmt.Fprintf(out, "Added %s to %s; 'inspan mcp list' tries them.\n", text.Count(len(list), "server"), a.ConfigPath)
	return nil
}

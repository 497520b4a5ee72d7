package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) mcp() *cobra.Command {
	return group("mcp", "Use MCP servers, or serve as one",
		c.mcpList(), c.mcpAdd(), c.mcpImport(), c.mcpRemove(), c.mcpTools(), c.mcpAgree(), c.mcpLogin(), c.mcpLogout(), c.mcpServe())
}

func (c *command) mcpList() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Connect to the servers of this folder and show their state",
		Long: "inspan shows each server's state, tools, latency, the tokens of its descriptions, and why it is missing.\n" +
			"It starts servers of a .mcp.json only after you trust that file ('inspan trust').",
		Args: exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			if err := a.Permission.Inert(root, "", c.warn); err != nil {
				return err
			}
			hub, err := a.Hubs.Settled(cmd.Context(), root, c.warn)
			if err != nil {
				return err
			}
			if hub == nil {
				fmt.Fprintln(cmd.OutOrStdout(), "No MCP servers are set up here; 'inspan mcp add' adds one.")
				return nil
			}
			defer hub.Close()
			return printServers(cmd.OutOrStdout(), hub.Status())
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

func (c *command) mcpAdd() *cobra.Command {
	var s config.MCPServer
	var env, headers []string
	cmd := &cobra.Command{
		Use:   "add NAME (URL | -- PROGRAM [ARGUMENTS])",
		Short: "Add a server to your settings and try it",
		Long: "A program runs in the sandbox: it sees the workspace and reaches only the hosts that you name.\n" +
			"inspan replaces ${NAME} in values with the environment variable when it starts the server.",
		Example: "  inspan mcp add tracker https://mcp.example.com/mcp\n  inspan mcp add files --read /opt/servers -- mcp-server-filesystem .\n" +
			"  inspan mcp add db --host db.example.com --env 'TOKEN=${DB_TOKEN}' -- ./db-server",
		Args: exactly(2, 100, "a NAME, and a URL or a PROGRAM"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.Contains(args[1], "://") && len(args) == 2 {
				s.URL = args[1]
			} else {
				s.Command = args[1:]
			}
			var err error
			if s.Env, err = pairs("--env", env); err != nil {
				return err
			}
			if s.Headers, err = pairs("--header", headers); err != nil {
				return err
			}
			return c.addServer(cmd, args[0], s)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&env, "env", nil, "`NAME=VALUE` for the program's environment; repeatable")
	f.StringArrayVar(&headers, "header", nil, "`NAME=VALUE` for a header of each request; repeatable")
	f.StringArrayVar(&s.Hosts, "host", nil, "`host` that the program may reach; repeatable")
	f.StringArrayVar(&s.Read, "read", nil, "absolute `path` outside the workspace that the program may read; repeatable")
	f.StringArrayVar(&s.Write, "write", nil, "absolute `path` that the program may change; repeatable")
	f.StringVar(&s.Dir, "dir", "", "`folder` that the program starts in (default: the workspace)")
	f.StringVar(&s.Kind, "kind", "", "`transport`: stdio, http, sse or ws (default: follows from the other arguments)")
	f.BoolVar(&s.Bare, "no-sandbox", false, "run the program without the sandbox")
	f.SetInterspersed(true)
	return cmd
}

// pairs parses NAME=VALUE, each name once.
func pairs(flag string, list []string) (map[string]string, error) {
	var out map[string]string
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, misused("%s %q: want NAME=VALUE", flag, text)
		}
		if _, twice := out[name]; twice {
			return nil, misused("%s %q: %s is given twice", flag, text, name)
		}
		if out == nil {
			out = map[string]string{}
		}
		out[name] = value
	}
	return out, nil
}

func (c *command) addServer(cmd *cobra.Command, name string, s config.MCPServer) error {
	a, root, err := c.at(".")
	if err != nil {
		return err
	}
	if err := a.Hubs.Add(name, s); err != nil {
		return words.Misuse{Err: err}
	}
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "Added %s to %s.\n", name, a.ConfigPath)
	env, err := a.Permission.Env(root)
	if err != nil {
		return err
	}
	hub := a.Hubs.OpenOne(name, s, env, c.warn)
	defer hub.Close()
	hub.Await(cmd.Context())
	if err := printServers(out, hub.Status()); err != nil {
		return err
	}
	if why, failed := hub.Failed(); failed {
		return fmt.Errorf("%s is in your settings, but it did not start: %s; change it there, or remove it with 'inspan mcp remove %s'",
			name, why, name)
	}
	return nil
}

func (c *command) mcpRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from your settings",
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			if err := config.RemoveServer(a.ConfigPath, args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Removed %s from %s.\n", args[0], a.ConfigPath)
			return nil
		}),
	}
}

func (c *command) mcpTools() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "tools NAME",
		Short: "List the tools of a server, as the model sees them",
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			hub, err := a.Hubs.With(cmd.Context(), root, args[0], c.warn)
			if err != nil {
				return err
			}
			defer hub.Close()
			now, agreed, _ := hub.Definitions(args[0])
			if now == nil {
				now = agreed
			}
			return printDefinitions(cmd.OutOrStdout(), now)
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

func (c *command) mcpAgree() *cobra.Command {
	var cwd string
	var yes bool
	cmd := &cobra.Command{
		Use:   "agree NAME",
		Short: "Review the tools that a server offers now, and approve them",
		Long: "Adding or trusting a server approves the tools it offers at first. The model can't call a tool that the server changes\n" +
			"or adds later until you approve it. Its other tools keep working. Without a terminal, pass --yes.",
		Args: exactly(1, 1, "a NAME"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			hub, err := a.Hubs.With(cmd.Context(), root, args[0], c.warn)
			if err != nil {
				return err
			}
			defer hub.Close()
			out := cmd.OutOrStdout()
			now, agreed, digest := hub.Definitions(args[0])
			if digest == "" {
				return fmt.Errorf("the MCP server %s is not connected; see 'inspan mcp list'", args[0])
			}
			changes := differences(agreed, now)
			fmt.Fprint(out, changes)
			switch {
			case changes == "":
				fmt.Fprintf(out, "%s offers only tools that you approved.\n", args[0])
				return hub.Agree(args[0], digest)
			case yes:
			case !isTerminal(c.in):
				return errors.New("nothing was approved, because there is no terminal to ask on; --yes approves these tools")
			case !c.confirms(out, "Approve these tools?"):
				fmt.Fprintln(out, "Not approved.")
				return nil
			}
			if err := hub.Agree(args[0], digest); err != nil {
				return err
			}
			fmt.Fprintf(out, "Approved the current tools of %s.\n", args[0])
			return nil
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	cmd.Flags().BoolVar(&yes, "yes", false, "approve without asking")
	return cmd
}

// printServers prints the state of servers.
func printServers(out io.Writer, list []mcp.Status) error {
	w := text.NewTable(out, "SERVER", "STATE", "KIND", "FROM", "TOOLS", "TOKENS", "ANSWERS IN", "SPEAKS")
	for _, s := range list {
		took := "-"
		if t := cmp.Or(s.Typical, s.Latency); t > 0 {
			took = t.Round(100 * time.Microsecond).String()
		}
		w.Row(s.Name, s.State, s.Kind, words.OneLine(s.Source, 40), s.Tools, s.Tokens, took, cmp.Or(s.Revision, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, s := range list {
		if s.Why != "" {
			fmt.Fprintf(out, "%s: %s\n", s.Name, s.Why)
		}
		if s.State == mcp.Changed {
			fmt.Fprintf(out, "'inspan mcp agree %s' shows the changes, and asks\n", s.Name)
		}
	}
	return nil
}

// printServer prints the state of the server with that name.
func printServer(out io.Writer, list []mcp.Status, name string) error {
	return printServers(out, slices.DeleteFunc(list, func(s mcp.Status) bool { return s.Name != name }))
}

// printDefinitions prints tools of a server as the model sees them.
func printDefinitions(out io.Writer, list []mcp.Definition) error {
	for _, d := range list {
		if _, err := fmt.Fprintf(out, "%s\n    %s\n    %s\n", d.Tool, below(d.Doc), d.Schema); err != nil {
			return err
		}
	}
	return nil
}

// differences shows how definitions have changed, tool by tool.
func differences(before, now []mcp.Definition) string {
	was := map[string]mcp.Definition{}
	for _, d := range before {
		was[d.Name] = d
	}
	var b strings.Builder
	for _, d := range now {
		old, known := was[d.Name]
		delete(was, d.Name)
		switch {
		case !known:
			fmt.Fprintf(&b, "+ %s: %s\n    %s\n    %s\n", d.Name, below(d.Doc), d.Says, d.Schema)
		case old.Doc != d.Doc || string(old.Schema) != string(d.Schema) || old.Says != d.Says:
			fmt.Fprintf(&b, "~ %s\n  - %s\n    %s\n    %s\n  + %s\n    %s\n    %s\n",
				d.Name, below(old.Doc), old.Says, old.Schema, below(d.Doc), d.Says, d.Schema)
		}
	}
	for _, d := range before {
		if _, gone := was[d.Name]; gone {
			fmt.Fprintf(&b, "- %s\n", d.Name)
		}
	}
	return b.String()
}

// below returns text from others in a form that can't be mistaken for ours.
func below(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

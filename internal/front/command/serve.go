package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/a2a"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/mcpserver"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
)

// serveFlags are the flags of what others can reach.
type serveFlags struct {
	app.Options
	server.Door
	cwd string
}

func (f *serveFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.Model, "model", "", "model of agents, as `provider/model`; see 'inspan models'")
	fl.StringVar((*string)(&f.Mode), "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default ask)")
	fl.StringArrayVar(&f.Allow, "allow", nil, "`rule` for calls that run without asking; repeatable")
	fl.StringArrayVar(&f.Ask, "ask", nil, "`rule` for calls that ask in every mode; repeatable")
	fl.StringArrayVar(&f.Deny, "deny", nil, "`rule` for calls that are denied; repeatable")
	fl.Var((*dollars)(&f.MaxCost), "max-cost", "maximum cost of an agent's session in US `dollars`; 0 means no limit")
	fl.StringVar(&f.cwd, "cwd", ".", "`folder` to work in (the workspace)")
	fl.StringVar(&f.TokenFile, "token-file", "",
		"private `file` with the token that clients must send; created if missing (default: in the state folder)")
	fl.BoolVar(&f.Public, "public", false, "allow an address that other machines can reach")
	fl.StringArrayVar(&f.Hosts, "host", nil, "`name` of a proxy in front of the server; repeatable")
}

// served are the settings, and the options that every session of a server has. The mode
// is always said, so that old sessions can't be allowed more than new ones. Rules may name the tools
// of the workspace and of further folders.
func (c *command) served(ctx context.Context, f *serveFlags, folders ...string) (*app.App, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	if f.Model != "" {
		if err := a.Providers.Known(f.Model); err != nil {
			return nil, err
		}
	}
	f.Mode = cmp.Or(f.Mode, a.Config.Mode, "ask")
	f.TokenFile = cmp.Or(f.TokenFile, filepath.Join(a.StateDir, "server.token"))
	if err := a.Permission.Close(f.TokenFile); err != nil {
		return nil, err
	}
	if f.cwd, err = workspace(f.cwd); err != nil {
		return nil, err
	}
	if len(f.Allow)+len(f.Ask)+len(f.Deny) > 0 { // to list what is installed takes a while
		var installed []string
		for _, dir := range append(folders, f.cwd) {
			installed = append(installed, a.Extensions.ToolNames(ctx, dir)...)
		}
		if err := f.CheckNames(installed); err != nil {
			return nil, err
		}
	}
	f.Opened = func(address string) {
		fmt.Fprintf(c.console.Err, "inspan: serving %s at http://%s/; the token is in %s\n", f.cwd, address, f.TokenFile)
	}
	return a, nil
}

// warn tells a person what stops nothing.
func (c *command) warn(text string) {
	c.console.Warn("inspan: " + text)
}

// signals ends a context when the process is asked to end.
func signals(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// mcpServe is a subcommand of mcp.
func (c *command) mcpServe() *cobra.Command {
	var f serveFlags
	var names []string
	var noAgent bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Offer tools and agents to MCP clients",
		Long: "inspan offers its tools, and agents (run_agent), to MCP clients over standard input and output, or over HTTP.\n" +
			"Mode and rules judge every call. A call that asks is shown to the person at the client. If the client can't ask, it is denied.\n\n" +
			console.ModesHelp(),
		Example: "  inspan mcp serve --mode edit\n  inspan mcp serve --http 127.0.0.1:8765 --tools read_file,search_files --no-agent",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.served(cmd.Context(), &f)
			if err != nil {
				return err
			}
			ctx, stop := signals(cmd.Context())
			defer stop()
			called := f.Options
			called.Model, called.NoServers, called.AllTools = "script", true, true // the client is the model, and has servers of its own
			s := &mcpserver.Server{Tools: a.Host(called, c.warn), Names: names, Root: f.cwd}
			if !noAgent {
				s.Host = a.Host(f.Options, c.warn)
			}
			if f.Listen != "" {
				return f.Serve(ctx, nil, s.Handler(), s.Close)
			}
			err = s.ServeStdio(ctx, io.NopCloser(c.in), unclosed{c.console.Out})
			if ctx.Err() != nil {
				return nil
			}
			return err
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.Listen, "http", "", "serve HTTP at this `address`, such as 127.0.0.1:0, instead of standard input and output")
	cmd.Flags().StringSliceVar(&names, "tools", nil,
		"`names` of the tools to offer, separated by commas (default: those that work in the workspace and beyond)")
	cmd.Flags().BoolVar(&noAgent, "no-agent", false, "offer tools only")
	return cmd
}

// unclosed is a writer that others can't close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func (c *command) a2a() *cobra.Command {
	var f serveFlags
	var here bool
	cmd := &cobra.Command{
		Use:   "a2a",
		Short: "Take tasks from other agents over the Agent2Agent protocol",
		Long: "inspan speaks protocol version 1.0. Each task is a session, so tasks outlast the server.\n" +
			"A call that asks waits for an answer from the other agent, or for 'inspan send --allow'.\n\n" + console.ModesHelp(),
		Example: "  inspan a2a --mode auto --listen 127.0.0.1:8766",
		Args:    exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := c.served(cmd.Context(), &f)
			if err != nil {
				return err
			}
			ctx, stop := signals(cmd.Context())
			defer stop()
			s := &a2a.Server{Host: a.Host(f.Options, c.warn), Root: f.cwd, DecideHere: here}
			return f.Serve(ctx, a2a.Gate(), s.Handler(), s.Close)
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&here, "decide-here", false, "other agents can't approve calls; only 'inspan send --allow' can")
	cmd.Flags().StringVar(&f.Listen, "listen", "127.0.0.1:0", "`address` to listen on")
	return cmd
}

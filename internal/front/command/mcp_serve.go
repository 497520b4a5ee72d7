package command

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/mcpserver"
)

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
			ctx, stop := c.signals(cmd.Context())
			defer stop()
			called := f.Options
			called.Model, called.NoServers, called.AllTools = "script", true, true // the client is the model, and has its own servers
			s := &mcpserver.Server{Tools: a.Host(called, c.warn), Skills: a.Extensions.Skills(f.cwd), Names: names, Root: f.cwd}
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

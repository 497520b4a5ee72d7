package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) tools() *cobra.Command {
	var cwd string
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tools of the model, including your own and those of MCP servers",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			list, err := a.Tools(cmd.Context(), root, c.warn)
			console.Tools(cmd.OutOrStdout(), list)
			return err
		},
	}
	call := &cobra.Command{
		Use:   "call NAME ['{ARGUMENTS}']",
		Short: "Call a tool as the model would; - reads the arguments from standard input",
		Long: "The tool may be built in, your own, or of an MCP server. Modes, rules and trust apply as in 'inspan run'.\n" +
			"inspan does not ask again for the call that you typed.",
		Example: "  inspan tools call read_file '{\"path\":\"go.mod\"}'\n  inspan tools call search_files '{\"pattern\":\"TODO\"}'",
		Args:    exactly(1, 2, "a NAME and optional ARGUMENTS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := "{}"
			if len(args) == 2 {
				raw = args[1]
			}
			if raw == "-" {
				in, err := io.ReadAll(c.in)
				if err != nil {
					return fmt.Errorf("read standard input: %w", err)
				}
				raw = string(in)
			}
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			text, err := a.CallTool(cmd.Context(), app.Options{}, root, args[0], json.RawMessage(raw), c.warn)
			if text != "" {
				fmt.Fprintln(cmd.OutOrStdout(), text)
			}
			return err
		},
	}
	for _, sub := range []*cobra.Command{list, call} {
		sub.Flags().StringVar(&cwd, "cwd", ".", "`folder` to work in")
	}
	all := append([]*cobra.Command{list, call}, c.ownTools()...)
	tools := group("tools", "List the tools, call one, or decide on those that models wrote", all...)
	sub := tools.RunE
	tools.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return list.RunE(cmd, nil)
		}
		return sub(cmd, args)
	}
	return tools
}

// ownTools are the commands about tools that models have written.
func (c *command) ownTools() []*cobra.Command {
	var session string
	var user bool
	named := func(use, short, long string, do ownDoing) *cobra.Command {
		cmd := c.ownTool(use+" NAME", short, exactly(1, 1, "a NAME"), do)
		cmd.Long = long
		cmd.Flags().StringVar(&session, "session", "", "that of the `session` with this id (default: the newest)")
		return cmd
	}
	show := named("show", "Show the content of a tool that a model proposed", "",
		func(ctx context.Context, o console.OwnTools, name string) error { return o.Show(ctx, name, session) })
	promote := named("promote", "Keep a tool that a model proposed, after showing its exact content",
		"inspan runs the tests of the tool in a fresh sandbox and has the reviewer model read it, if one is set. Then it shows you all\n"+
			"files and asks. It writes exactly these into .inspan/tools, or with --user into your own folder of tools.\n"+
			"After any change of the files, the tool is inert until you approve it again with the same command. Input and output must be a terminal.",
		func(ctx context.Context, o console.OwnTools, name string) error {
			return o.Promote(ctx, name, session, user)
		})
	drop := named("drop", "Take a proposed tool back, or remove one that you kept", "",
		func(ctx context.Context, o console.OwnTools, name string) error {
			return o.Drop(ctx, name, session, user)
		})
	for _, cmd := range []*cobra.Command{promote, drop} {
		cmd.Flags().BoolVar(&user, "user", false, "in your own folder of tools, for all projects")
	}
	proposed := c.ownTool("proposed", "List the tools that models wrote in sessions of this folder", exactly(0, 0, "no arguments"),
		func(ctx context.Context, o console.OwnTools, _ string) error { return o.Proposed(ctx) })
	report := c.ownTool("report", "Show how kept tools were used, and which to remove", exactly(0, 0, "no arguments"),
		func(ctx context.Context, o console.OwnTools, _ string) error {
			return o.Report(ctx, time.Now(), c.warn)
		})
	return []*cobra.Command{proposed, show, promote, drop, report}
}

// ownDoing does something with what models have written, by its name if it has one.
type ownDoing func(ctx context.Context, o console.OwnTools, name string) error

// ownTool is a command that does it in a folder, and asks at a terminal only.
func (c *command) ownTool(use, short string, args cobra.PositionalArgs, do ownDoing) *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			ask := func(question string) (bool, error) {
				if !isTerminal(c.in) || !isTerminal(out) { // who can't read it can't approve it
					return false, console.ErrNobody
				}
				return c.confirms(out, question), nil
			}
			return do(cmd.Context(), console.OwnTools{App: a, Root: root, Out: out, Ask: ask}, strings.Join(args, ""))
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to work in")
	return cmd
}

package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) mcpLogin() *cobra.Command {
	var cwd string
	var way *string
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server",
		Long:  ways,
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			hub, err := a.Hubs.With(cmd.Context(), root, args[0], c.warn) // a server says what it needs when it is connected to
			if err != nil {
				return err
			}
			defer hub.Close()
			how, err := a.Logins.AtTerminal(cmd.Context(), *way, c.console.Say,
				func(ctx context.Context) (string, error) { return readLine(ctx, c.in) })
			if err != nil {
				return words.Misuse{Err: err}
			}
			if err := a.Logins.Server(cmd.Context(), hub.Manager, args[0], how); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", args[0])
			hub.Await(cmd.Context())
			return printServer(cmd.OutOrStdout(), hub.Status(), args[0])
		}),
	}
	way = wayFlag(cmd)
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

func (c *command) mcpLogout() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Log out of a server and revoke its tokens",
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			if err := a.Hubs.Leave(cmd.Context(), root, args[0], c.warn); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged out of %s.\n", args[0])
			return nil
		}),
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

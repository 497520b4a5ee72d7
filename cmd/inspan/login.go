package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/connect"
	"github.com/inspan/inspan/internal/listing"
	"github.com/inspan/inspan/internal/words"
)

const ways = "Ways to log in:\n" +
	"  browser  opens a browser, which returns to inspan on its own\n" +
	"  paste    for a browser on another machine: you paste the address it ended at\n" +
	"  device   shows a code that you enter on any device\n" +
	"inspan keeps tokens in the system's keychain, or else in a file that only you can read. All sessions share them."

func wayFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("way", "", "`way` to log in: browser, paste or device (default: chosen for this machine)")
}

func (c *command) mcpLogin() *cobra.Command {
	var cwd string
	var way *string
	cmd := &cobra.Command{
		Use:   "login NAME",
		Short: "Log in to an MCP server",
		Long:  ways,
		Args:  exactly(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			hub, err := a.Hubs.OpenAt(root, "", nil, complainTo(cmd.ErrOrStderr()))
			if err != nil {
				return err
			}
			if hub == nil {
				return noServer(args[0])
			}
			defer hub.Close()
			wait, cancel := context.WithTimeout(cmd.Context(), settleTime)
			defer cancel()
			hub.Settle(wait) // what it wants it says when it is connected to
			how, err := c.logIn(cmd, *way)
			if err != nil {
				return err
			}
			if err := a.Logins.Server(cmd.Context(), hub.Manager, args[0], how); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", args[0])
			hub.Settle(wait)
			return listing.Server(cmd.OutOrStdout(), hub.Status(), args[0])
		},
	}
	way = wayFlag(cmd)
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

func noServer(name string) error {
	return fmt.Errorf("there is no MCP server %q here; see 'inspan mcp list'", words.OneLine(name, 60))
}

// logIn is how the person at the terminal logs in.
func (c *command) logIn(cmd *cobra.Command, said string) (connect.Login, error) {
	tell := func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), text) }
	way, err := connect.AtTerminal(cmd.Context(), said, tell, func(ctx context.Context) (string, error) { return readLine(ctx, c.in) })
	if err != nil {
		return way, usageError{err}
	}
	return way, nil
}

// readLine reads a line that the person types, or nothing once ctx is done.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() { // ends with the process if nobody types
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		got <- result{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *command) mcpLogout() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "logout NAME",
		Short: "Log out of a server and revoke its tokens",
		Args:  exactly(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			for _, s := range a.Hubs.Servers(root, "", nil, complainTo(cmd.ErrOrStderr())) {
				if s.Name != args[0] {
					continue
				}
				if err := a.Logins.LeaveServer(cmd.Context(), s); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "Logged out of %s.\n", s.Name)
				return nil
			}
			return noServer(args[0])
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` whose servers to use")
	return cmd
}

func (c *command) modelsLogin() *cobra.Command {
	var way *string
	cmd := &cobra.Command{
		Use:   "login PROVIDER",
		Short: "Log in to a provider that uses logins instead of keys",
		Long:  "The provider needs an oauth table in the settings.\n\n" + ways,
		Args:  exactly(1, 1, "one PROVIDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			how, err := c.logIn(cmd, *way)
			if err != nil {
				return err
			}
			if err := a.Logins.Provider(cmd.Context(), args[0], how); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", args[0])
			return nil
		},
	}
	way = wayFlag(cmd)
	return cmd
}

func (c *command) modelsLogout() *cobra.Command {
	return &cobra.Command{
		Use:   "logout PROVIDER",
		Short: "Log out of a provider and revoke its tokens",
		Args:  exactly(1, 1, "one PROVIDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			if err := a.Logins.LeaveProvider(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged out of %s.\n", args[0])
			return nil
		},
	}
}

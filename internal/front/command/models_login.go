package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

const ways = "Ways to log in:\n" +
	"  browser  opens a browser, which returns to inspan on its own\n" +
	"  paste    for a browser on another machine: you paste the address it ended at\n" +
	"  device   shows a code that you enter on any device\n" +
	"inspan keeps tokens in the system's keychain, or else in a file that only you can read. All sessions share them."

func wayFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("way", "", "`way` to log in: browser, paste or device (default: chosen for this machine)")
}

// readLine reads a line that the person types, or nothing once ctx is done.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() { // ends with the process if nothing is typed
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

func (c *command) modelsLogin() *cobra.Command {
	var way *string
	cmd := &cobra.Command{
		Use:   "login PROVIDER",
		Short: "Log in to a provider that uses logins instead of keys",
		Long:  "The provider needs an oauth table in the settings.\n\n" + ways,
		Args:  exactly(1, 1, "a PROVIDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.installation()
			if err != nil {
				return err
			}
			if err := c.logIn(cmd.Context(), a, args[0], *way); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", args[0])
			return nil
		},
	}
	way = wayFlag(cmd)
	return cmd
}

// logIn logs the person in to a provider.
func (c *command) logIn(ctx context.Context, a *app.App, provider, way string) error {
	how, err := a.Logins.AtTerminal(ctx, way, c.console.Say,
		func(ctx context.Context) (string, error) { return readLine(ctx, c.in) })
	if err != nil {
		return words.Misuse{Err: err}
	}
	return a.Logins.Provider(ctx, provider, how)
}

func (c *command) modelsLogout() *cobra.Command {
	return &cobra.Command{
		Use:   "logout PROVIDER",
		Short: "Log out of a provider and revoke its tokens, or forget its key",
		Args:  exactly(1, 1, "a PROVIDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := c.installation()
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

package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

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

// readLine reads a line that the person types.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	return untilDone(ctx, func() (string, error) {
		line, err := bufio.NewReader(in).ReadString('\n')
		if errors.Is(err, io.EOF) && line != "" {
			err = nil
		}
		return strings.TrimSpace(line), err
	})
}

// readSecret reads a line without echo. An interrupt restores the terminal.
func readSecret(ctx context.Context, in io.Reader) (string, error) {
	f, ok := in.(*os.File)
	if !ok {
		return "", errors.New("it is not a terminal")
	}
	before, err := term.GetState(int(f.Fd()))
	if err != nil {
		return "", err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	line, err := untilDone(ctx, func() (string, error) {
		line, err := term.ReadPassword(int(f.Fd()))
		return string(line), err
	})
	if errors.Is(err, context.Canceled) {
		err = errors.Join(err, term.Restore(int(f.Fd()), before))
	}
	return line, err
}

// untilDone returns the line that read returns, or nothing once ctx is done. If nothing is typed, read ends with the
// process.
func untilDone(ctx context.Context, read func() (string, error)) (string, error) {
	type result struct {
		line string
		err  error
	}
	got := make(chan result, 1)
	go func() {
		line, err := read()
		got <- result{line, err}
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
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			if err := c.logIn(cmd.Context(), a, args[0], *way); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged in to %s.\n", args[0])
			return nil
		}),
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
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			if err := a.Logins.LeaveProvider(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Logged out of %s.\n", args[0])
			return nil
		}),
	}
}

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/setup"
)

func (c *command) setup() *cobra.Command {
	return &cobra.Command{
		Use:   "setup",
		Short: "Choose a model: store a key, log in, or use a local server",
		Long: "inspan lists the servers that answer on this machine, providers, and the offline script, which needs neither.\n" +
			"Choose with the arrows, or type a number, a provider, a model such as opus, or the address of a server such as\n" +
			"http://127.0.0.1:8080/v1: inspan finds out which server answers there, and lists its models.\n" +
			"It checks a key with one request, keeps it in the system's keychain, or else in a file that only you can read,\n" +
			"and writes the model to your settings. It keeps a key that it can't check if you say so.\n" +
			"A key in a variable such as ANTHROPIC_API_KEY comes before one that inspan keeps.\n" +
			"'inspan models logout PROVIDER' forgets a key.\n" +
			"At the end, inspan offers to import what Claude Code, Codex, opencode, Gemini CLI, Cursor and Copilot have here.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := c.setUpHere(cmd)
			return err
		},
	}
}

// setUpFlag declares the flag that editors use to start the set-up in a terminal: it starts the command that it has
// for the protocol, or the program alone, with this flag.
func setUpFlag(cmd *cobra.Command, given *bool) {
	cmd.Flags().BoolVar(given, "setup", false, "set up a model, as 'inspan setup' does")
	_ = cmd.Flags().MarkHidden("setup")
}

// setUpForEditor is the work of that flag. If the person gives up, the exit code tells the editor.
func (c *command) setUpForEditor(cmd *cobra.Command) error {
	done, err := c.setUpHere(cmd)
	if err == nil && !done {
		c.code = console.ExitCancelled
	}
	return err
}

// setUpHere lets the person at this terminal choose a model, see [command.setUp].
func (c *command) setUpHere(cmd *cobra.Command) (done bool, err error) {
	if !isTerminal(c.in) || !isTerminal(c.console.Out) {
		return false, config.Error{Err: errors.New("inspan setup needs a terminal; without one, set a key such as ANTHROPIC_API_KEY, " +
			"and choose a model with 'inspan config set model PROVIDER/MODEL'")}
	}
	a, root, err := c.at(".")
	if err != nil {
		return false, err
	}
	return c.setUp(cmd, a, root)
}

// talk sets inspan up with the person. Where the terminal can draw, they choose with arrows.
func (c *command) talk(cmd *cobra.Command, a *app.App, root string) *setup.Talk {
	out := wrapping{cmd.OutOrStdout()}
	t := &setup.Talk{
		App: a, Root: root, Out: out,
		Ask: func(ctx context.Context, question string) (string, error) {
			fmt.Fprint(out, question)
			return readLine(ctx, c.in)
		},
		Secret: func(ctx context.Context, question string) (string, error) {
			fmt.Fprint(out, question)
			defer fmt.Fprintln(out)
			return readSecret(ctx, c.in)
		},
		Login: func(ctx context.Context, provider string) error { return c.logIn(ctx, a, provider, "") },
	}
	if drawable(c.console.Out) && !a.Config.TUI.ScreenReader {
		screen := &tui.TUI{App: a, NoColor: !colored(os.Stdout), Keys: a.Config.Keys}
		t.Choose = screen.Choose
	}
	return t
}

// setUp lets the person choose a model. Done is false if they gave up.
func (c *command) setUp(cmd *cobra.Command, a *app.App, root string) (done bool, err error) {
	t := c.talk(cmd, a, root)
	done, err = t.Model(cmd.Context())
	if err = c.stopped(err); err == nil && !done {
		fmt.Fprintln(t.Out, "\nNothing was changed. 'inspan setup' asks again; 'inspan demo' works without a model.")
	}
	return done, err
}

// stopped makes it no error that the person stopped.
func (c *command) stopped(err error) error {
	switch {
	case errors.Is(err, io.EOF): // Ctrl-D is a way to stop
		return nil
	case errors.Is(err, context.Canceled):
		c.code = console.ExitCancelled
		return nil
	}
	return err
}

// wrapping breaks each write between words, where the terminal would break it anywhere.
type wrapping struct{ to io.Writer }

// Write implements [io.Writer]. Continuation lines of a list are indented like its words.
func (w wrapping) Write(p []byte) (int, error) {
	const column = 6 // of the words in a list
	cells := width(w.to)
	lines := strings.Split(string(p), "\n")
	for i, line := range lines {
		switch {
		case cells <= 2*column || ansi.StringWidth(line) < cells:
		case strings.HasPrefix(line, "  "):
			at := strings.Repeat(" ", column)
			lines[i] = line[:column] + strings.ReplaceAll(ansi.Wrap(line[column:], cells-column-1, ""), "\n", "\n"+at)
		default:
			lines[i] = ansi.Wrap(line, cells-1, "")
		}
	}
	if _, err := io.WriteString(w.to, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(p), nil
}

package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

// typed returns the message for the model from a task. If the task in the arguments is a slash command, it is
// the text of the command; a command that only prints something is run. Standard input may not be typed by a
// person, so it is not a command.
func (c *command) typed(cmd *cobra.Command, f *runFlags, args []string, text string) (said string, done bool, err error) {
	name, rest, ok := words.Slash(text)
	if !ok || piped(args) {
		return text, false, nil
	}
	a, root, err := c.at(f.cwd)
	if err != nil {
		return "", false, err
	}
	list := c.slashes(a, root, f, func(taken, why string) {
		if taken == name {
			c.warn(why)
		}
	})
	at := slices.IndexFunc(list, func(s tui.Command) bool { return s.Name == name })
	switch {
	case at >= 0 && list[at].Prompt != nil:
		c.inline(a, root, name)
		said, err = list[at].Prompt(cmd.Context(), rest)
		return said, false, err
	case at >= 0 && list[at].Begin != nil:
		return "", true, c.told(f, func() (string, error) { return list[at].Begin(cmd.Context(), inspan.Status{}, rest) })
	case at >= 0:
		return "", true, c.told(f, func() (string, error) { return list[at].Print(cmd.Context(), rest) })
	case name == "compact":
		return "", true, c.compactHere(cmd, a, f, rest)
	}
	if sub := subcommand(name, rest); sub != nil {
		return "", true, c.told(f, func() (string, error) { return c.printedBy(cmd.Context(), sub) })
	}
	ours := slices.Concat(list, tui.Commands())
	if name == "help" {
		return "", true, c.told(f, func() (string, error) { return slashHelp(ours), nil })
	}
	if _, err := os.Lstat("/" + name); err == nil { // it is about that file
		return text, false, nil
	}
	return "", false, words.Misuse{Err: notHere(ours, name)}
}

// inline warns about shell commands in a command file, which do not run as they do in other agents.
func (c *command) inline(a *app.App, root, name string) {
	for _, m := range a.Extensions.Commands(root, func(string) {}) {
		if list := m.Inline(); m.Name == name && len(list) > 0 {
			c.warn(fmt.Sprintf("/%s has !`%s`, which did not run; inspan asks the model to run it as a call",
				name, strings.Join(list, "`, !`")))
		}
	}
}

// subcommand returns the subcommand for a slash command; nil means the command needs an open session.
func subcommand(name, args string) []string {
	switch name {
	case "sessions":
		return []string{"sessions", "list"}
	case "cost", "spend", "context":
		return []string{name}
	case "tools":
		return []string{"tools", "list"}
	case "config":
		return []string{"config", "path"}
	case "permissions":
		return []string{"policy", "rules"}
	case "rewind":
		return []string{"rewind"}
	case "fork":
		return []string{"sessions", "fork"}
	case "export":
		if args != "" {
			return []string{"sessions", "export", "--output", args}
		}
		return []string{"sessions", "export"}
	}
	return nil
}

// printedBy returns the output of another command of ours.
func (c *command) printedBy(ctx context.Context, args []string) (string, error) {
	var out bytes.Buffer
	root := c.root()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(c.console.Err)
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// compactHere compacts the session used last in this folder.
func (c *command) compactHere(cmd *cobra.Command, a *app.App, f *runFlags, focus string) error {
	id, err := a.Running.LastHere(cmd.Context())
	if err != nil {
		return err
	}
	root := c.root()
	args := []string{"compact", id, focus, "--output", f.output}
	if f.Model != "" {
		args = append(args, "--model", f.Model)
	}
	root.SetArgs(args)
	return root.ExecuteContext(cmd.Context())
}

// told prints the output of a command, in the requested form.
func (c *command) told(f *runFlags, tell func() (string, error)) error {
	text, err := tell()
	if err != nil {
		return err
	}
	if f.output == console.Text {
		_, err = fmt.Fprintln(c.console.Out, strings.TrimRight(text, "\n"))
		return err
	}
	c.code = c.console.Told(text)
	return nil
}

func slashHelp(list []tui.Command) string {
	var b strings.Builder
	w := text.NewTable(&b)
	for _, s := range list {
		w.Row(strings.TrimSpace("/"+s.Name+" "+words.OneLine(s.Args, 40)), words.OneLine(s.Doc, 200))
	}
	_ = w.Flush() // into memory
	return b.String()
}

// notHere gives the reason why a slash command can't be run, and which can.
func notHere(list []tui.Command, name string) error {
	var names []string
	for _, s := range list {
		if s.Name == name {
			return fmt.Errorf("/%s works only in an open session%s", name, instead(name))
		}
		names = append(names, s.Name)
	}
	hint := "."
	if near := words.Near(name, names); near != nil {
		hint = "; did you mean /" + strings.Join(near, ", /") + "?"
	}
	return fmt.Errorf("unknown command /%s%s 'inspan run /help' lists all. To send this to the model, put a space before it",
		words.OneLine(name, 40), hint)
}

// instead names the equivalent without a screen.
func instead(name string) string {
	switch name {
	case "model", "mode":
		return "; use the flag: inspan run --" + name
	case "plan":
		return "; use the flag: inspan run --mode plan"
	case "resume", "continue":
		return "; use: inspan resume"
	case "undo":
		return "; use: inspan rewind --to last --files"
	case "jobs":
		return "; use: inspan ps"
	case "theme", "vim":
		return "; use: inspan config set tui." + name
	}
	return "; use it in a terminal: inspan"
}

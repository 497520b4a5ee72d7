package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) context() *cobra.Command {
	var asJSON, fresh bool
	cmd := &cobra.Command{
		Use:   "context [ID]",
		Short: "Show the next prompt: its sources, their tokens and shares of the window",
		Long: "Without an ID, inspan uses the last session of this folder, or a new one if there is none.\n" +
			"Text that was sent before has the vendor's token count. New text has an estimate, corrected by the vendor's counts.",
		Args: exactly(0, 1, "at most one ID"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			id, err := "", error(nil)
			switch {
			case fresh:
			case len(args) == 1:
				id, err = a.Running.Seen(cmd.Context(), args[0])
			default:
				id, _ = a.Running.LastHere(cmd.Context()) // none: a new one
			}
			if err != nil {
				return err
			}
			shown, err := a.Context(cmd.Context(), root, id, c.warn)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(cmd.OutOrStdout(), shown)
			}
			return printContext(cmd.OutOrStdout(), id, shown)
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&fresh, "new", false, "show the first prompt of a new session in this folder")
	return cmd
}

// printContext prints the parts of the next prompt of a session; an empty id means a new one.
func printContext(out io.Writer, id string, c inspan.Context) error {
	what := "a new session"
	if id != "" {
		what = "session " + id
	}
	window := words.Window(c.Window, c.Assumed)
	if c.Window > 0 {
		window = fmt.Sprintf("%.1f%% of %s, %s reserved for the reply", share(c.Tokens, c.Window), window, text.Thousands(c.Reserve))
	}
	fmt.Fprintf(out, "%s: about %s tokens, %s\n", what, text.Thousands(c.Tokens), window)
	w := text.NewTable(out)
	for _, s := range c.Sources {
		part := share(s.Tokens, c.Window)
		if c.Window == 0 {
			part = share(s.Tokens, c.Tokens)
		}
		w.Row(fmt.Sprintf("%9s", text.Thousands(s.Tokens)), fmt.Sprintf("%5.1f%%", part), words.OneLine(s.Name, 60), s.Why)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if c.NotRepeated > 0 {
		fmt.Fprintf(out, "%d of %d calls repeated an earlier result, which the prompt holds only once.\n", c.NotRepeated, c.Calls)
	}
	if c.Compactions > 0 {
		fmt.Fprintf(out, "inspan compacted the conversation %s; the history tool finds the removed text.\n", text.Count(c.Compactions, "time"))
	}
	if c.Untrusted && c.Private {
		fmt.Fprintln(out, "The conversation holds outside text and private data, so every call that could send data out asks.")
	}
	return nil
}

package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
)

// moving returns a command that moves a session away from here, or to here.
func (c *command) moving(name, short, way string, away bool, examples string) *cobra.Command {
	var where string
	var stays bool
	cmd := &cobra.Command{
		Use: name + " ID", Short: short, Example: examples,
		Long: "The session moves byte for byte, with its subagents and blobs, and can't be driven meanwhile. inspan reads it again on the other\n" +
			"side and compares. Only then does it remove the session from its old place. A move that was cut off can be repeated.\n\n" +
			"A store is a folder of sessions or, in the build with drivers, a database: see docs/SERVER.md.",
		Args: exactly(1, 1, "an ID"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			a, err := c.installation()
			if err != nil {
				return err
			}
			other, named, err := c.shared.Open(cmd.Context(), app.StoreOf(where))
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, other.Close()) }()
			var moved []string
			if away {
				moved, err = app.Move(cmd.Context(), a.Store(), other, args[0], stays, server.Free)
			} else if moved, err = app.Move(cmd.Context(), other, a.Store(), args[0], stays, server.Free); err != nil {
				err = fmt.Errorf("%s: %w", named, err)
			}
			if len(moved) > 0 {
				agents := ""
				if n := len(moved) - 1; n > 0 {
					agents = fmt.Sprintf(", with %d %s", n, text.Plural(n, "subagent", "subagents"))
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s%s\n", moved[len(moved)-1], way, named, agents)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&where, "store", "",
		"`store`: a URL, or a folder of sessions (default: $"+app.StoreVariable+", which suits a URL with a password)")
	cmd.Flags().BoolVar(&stays, "keep", false, "copy it: the session stays where it was too")
	return cmd
}

func (c *command) sessionsMove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move OLD [NEW]",
		Short: "Move the sessions of a renamed folder to its new path",
		Long: "All sessions of the folder OLD continue in NEW, by default the current folder.\n" +
			"'inspan resume' does it by itself in a folder that was only renamed. Checkpoints come along; trust stays with the old path.",
		Example: "  cd ~/src/api && inspan sessions move ~/api\n  inspan sessions move ~/api ~/src/api",
		Args:    exactly(1, 2, "an OLD folder and at most a NEW one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if _, err := os.Stat(from); err == nil {
				from = keep.Real(from)
			}
			a, to, err := c.at(append(args, ".")[1])
			if err != nil {
				return err
			}
			n, err := a.Running.Rehome(cmd.Context(), from, to)
			if err == nil && n == 0 {
				err = errors.New("no session works in " + from + "; 'inspan sessions list' shows their folders")
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d %s in %s from now on\n", n, text.Plural(n, "session works", "sessions work"), to)
			return nil
		},
	}
	return cmd
}

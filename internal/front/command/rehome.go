package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/keep"
)

func (c *command) sessionsMove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "move OLD [NEW]",
		Short: "Have the sessions of a folder that was moved work in its new place",
		Long: "All sessions of the folder OLD continue in NEW, by default the current folder.\n" +
			"'inspan resume' does it by itself in a folder that was only renamed. Trust and checkpoints stay with the old path.",
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
			fmt.Fprintf(cmd.OutOrStdout(), "%d %s in %s from now on\n", n, map[bool]string{true: "session works", false: "sessions work"}[n == 1], to)
			return nil
		},
	}
	return cmd
}

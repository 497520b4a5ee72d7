package command

import (
	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
)

func (c *command) agents() *cobra.Command {
	var cwd string
	list := &cobra.Command{
		Use:   "list",
		Short: "List the kinds of subagents that a session in this folder can start",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			return console.Roles(cmd.OutOrStdout(), cmd.ErrOrStderr(), a.Extensions.Roles(root, c.warn))
		},
	}
	list.Flags().StringVar(&cwd, "cwd", ".", "`folder` to list them for")
	return group("agents", "List the kinds of subagents", list)
}

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) agents() *cobra.Command {
	var cwd string
	list := &cobra.Command{
		Use:   "list",
		Short: "List the kinds of subagents that a session in this folder can start",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			return printRoles(cmd.OutOrStdout(), cmd.ErrOrStderr(), a.Extensions.Roles(root, c.warn))
		}),
	}
	list.Flags().StringVar(&cwd, "cwd", ".", "`folder` to list them for")
	return group("agents", "List the kinds of subagents, and show teams", list, c.team())
}

// printRoles prints kinds of agents.
func printRoles(out, complain io.Writer, list []skill.Role) error {
	w := text.NewTable(out, "KIND", "MODEL", "MODE", "FROM", "FOR")
	for _, r := range list {
		w.Row(r.Name, orSame(r.Model), orSame(string(r.Mode)), r.Source, words.OneLine(r.Description, 60))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, r := range list {
		if len(r.Problems) > 0 {
			fmt.Fprintf(complain, "%s: %s\n", r.Name, text.Visible(strings.Join(r.Problems, "; ")))
		}
	}
	return nil
}

func orSame(text string) string {
	if text == "" || text == "inherit" {
		return "inherited"
	}
	return text
}

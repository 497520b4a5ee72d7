package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/tool"
)

func (c *command) tools() *cobra.Command {
	var cwd string
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tools of the model, including your own and those of MCP servers",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.inFolder(&cwd, func(cmd *cobra.Command, a *app.App, root string, _ []string) error {
			list, err := a.Tools(cmd.Context(), root, c.warn)
			return errors.Join(printTools(cmd.OutOrStdout(), list), err)
		}),
	}
	call := &cobra.Command{
		Use:   "call NAME ['{ARGUMENTS}']",
		Short: "Call a tool as the model would; - reads the arguments from standard input",
		Long: "The tool may be built in, your own, or of an MCP server. Modes, rules and trust apply as in 'inspan run'.\n" +
			"inspan does not ask again for the call that you typed.",
		Example: "  inspan tools call read_file '{\"path\":\"go.mod\"}'\n  inspan tools call search_files '{\"pattern\":\"TODO\"}'",
		Args:    exactly(1, 2, "a NAME and optional ARGUMENTS"),
		RunE: func(cmd *cobra.Command, args []string) error {
			raw := "{}"
			if len(args) == 2 {
				raw = args[1]
			}
			if raw == "-" {
				in, err := io.ReadAll(c.in)
				if err != nil {
					return fmt.Errorf("read standard input: %w", err)
				}
				raw = string(in)
			}
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			text, err := a.CallTool(cmd.Context(), app.Options{}, root, args[0], json.RawMessage(raw), c.warn)
			if text != "" {
				fmt.Fprintln(cmd.OutOrStdout(), text)
			}
			return err
		},
	}
	for _, sub := range []*cobra.Command{list, call} {
		sub.Flags().StringVar(&cwd, "cwd", ".", "`folder` to work in")
	}
	all := append([]*cobra.Command{list, call}, c.ownTools()...)
	tools := group("tools", "List the tools, call one, or decide on those that models wrote", all...)
	sub := tools.RunE
	tools.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return list.RunE(cmd, nil)
		}
		return sub(cmd, args)
	}
	return tools
}

// printTools prints tools in one line each.
func printTools(out io.Writer, list []tool.Tool) error {
	w := text.NewTable(out)
	for _, t := range list {
		first, _, _ := strings.Cut(strings.TrimSpace(t.Doc), "\n")
		w.Row(words.OneLine(t.Name, 80), words.OneLine(first, 400))
	}
	return w.Flush()
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
)

func (c *command) tools() *cobra.Command {
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tools the model can call",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, t := range app.Tools() {
				first, _, _ := strings.Cut(strings.TrimSpace(t.Doc), "\n")
				fmt.Fprintf(cmd.OutOrStdout(), "%-14s %s\n", t.Name, first)
			}
			return nil
		},
	}
	var cwd string
	call := &cobra.Command{
		Use:     "call NAME ['{ARGUMENTS}']",
		Short:   "Call a tool yourself, as the model would; - reads the arguments from standard input",
		Example: "  inspan tools call read_file '{\"path\":\"go.mod\"}'\n  inspan tools call search_files '{\"pattern\":\"TODO\"}'",
		Args:    exactly(1, 2, "NAME ['{ARGUMENTS}']"),
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
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			text, err := a.CallTool(cmd.Context(), cwd, args[0], json.RawMessage(raw))
			if text != "" {
				fmt.Fprintln(cmd.OutOrStdout(), text)
			}
			return err
		},
	}
	call.Flags().StringVar(&cwd, "cwd", ".", "`folder` to work in")
	tools := group("tools", "List the tools, or call one yourself", list, call)
	sub := tools.RunE
	tools.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return list.RunE(cmd, nil)
		}
		return sub(cmd, args)
	}
	return tools
}

package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/config"
)

func (c *command) config() *cobra.Command {
	return group("config", "Show the settings, and where they come from",
		c.configShow(),
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema of the settings, for editors",
			Args:  exactly(0, 0, "no arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				_, err := cmd.OutOrStdout().Write(config.Schema())
				return err
			},
		},
		&cobra.Command{
			Use:   "path",
			Short: "Print where the settings file is, whether it exists or not",
			Args:  exactly(0, 0, "no arguments"),
			RunE: func(cmd *cobra.Command, _ []string) error {
				path, err := config.Path()
				if err == nil {
					fmt.Fprintln(cmd.OutOrStdout(), path)
				}
				return err
			},
		},
	)
}

func (c *command) configShow() *cobra.Command {
	var origin, asJSON bool
	cmd := &cobra.Command{
		Use:   "show [FOLDER]",
		Short: "Show what is set: by the organisation, by you and by the folder that is worked in",
		Long: "Show what is set, in this order: by the organisation, by you in the settings file, by the preset, by the environment,\n" +
			"and by the folder that is worked in, which can only make things stricter. The one that comes last counts.\n" +
			"The levers are shown in any case. What else is not set has its default; docs/config.sample.toml, and 'inspan config schema', list all there is.",
		Args: exactly(0, 1, "one FOLDER at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(append(args, ".")[0])
			if err != nil {
				return err
			}
			list, err := a.Settings(root)
			if err != nil {
				return err
			}
			none := len(list) == 0
			list = append(list, config.Levers(a.Config.Levers, list)...)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			if none {
				fmt.Fprintf(cmd.ErrOrStderr(), "Nothing is set; all has its default. Your settings would be in %s.\n", a.ConfigPath)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			for _, s := range list {
				fmt.Fprintf(w, "%s = %s", s.Key, s.Value)
				switch {
				case origin && s.Line > 0:
					fmt.Fprintf(w, "\t# %s:%d", s.File, s.Line)
				case origin:
					fmt.Fprintf(w, "\t# %s", s.File)
				}
				fmt.Fprintln(w)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, "show the file and the line of each, or the variable")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

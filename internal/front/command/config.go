package command

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/install/config"
)

func (c *command) config() *cobra.Command {
	return group("config", "Show and change the settings",
		c.configShow(), c.configGet(), c.configSet(), c.configUnset(), c.configEdit(),
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
			Short: "Print the path of the settings file, even if it does not exist",
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
		Short: "Show the settings in force and their sources",
		Long: "Sources are applied in this order, and the last one wins: organisation, your settings file, preset, environment, folder.\n" +
			"A folder can only make things stricter; settings of it that are not in force are marked.\n" +
			"Settings with their default value are left out, except for levers.\n" +
			"docs/config.sample.toml and 'inspan config schema' list every setting.",
		Args: exactly(0, 1, "at most one FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(append(args, ".")[0])
			if err != nil {
				return err
			}
			list, err := a.Permission.Settings(root)
			if err != nil {
				return err
			}
			none := len(list) == 0
			list = append(list, config.Levers(a.Config.Levers, list)...)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			if none {
				fmt.Fprintf(cmd.ErrOrStderr(), "Nothing is set. Your settings file would be %s.\n", a.ConfigPath)
			}
			return settings(cmd.OutOrStdout(), list, origin)
		},
	}
	cmd.Flags().BoolVar(&origin, "origin", false, originUsage)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

const originUsage = "show the file and line, or the variable, of each setting"

// settings prints settings, one a line.
func settings(out io.Writer, list []config.Setting, origin bool) error {
	w := text.NewTable(out)
	for _, s := range list {
		cells := []any{s.Key + " = " + s.Value}
		if origin {
			cells = append(cells, "# "+s.Origin())
		}
		if s.Ignored != "" {
			cells = append(cells, "# not in force: "+s.Ignored)
		}
		if s.Evidence != "" {
			cells = append(cells, "# "+s.Evidence)
		}
		w.Row(cells...)
	}
	return w.Flush()
}

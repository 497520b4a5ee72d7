package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/config"
	"github.com/inspan/inspan/internal/listing"
)

const keyForm = "A KEY is written as in the file, with a dot for each table: model, sandbox.memory_mb, providers.home.base_url."

func (c *command) configSet() *cobra.Command {
	var project, add bool
	var cwd string
	cmd := &cobra.Command{
		Use:   "set KEY VALUE ...",
		Short: "Change a setting in your settings file",
		Long: keyForm + "\nOf a list, name all values, or use --add. Comments and order of the file stay as they are.\n" +
			"inspan checks the result before it replaces the file.",
		Example: "  inspan config set model anthropic/claude-sonnet-5-5\n  inspan config set sandbox.memory_mb 4096\n" +
			"  inspan config set --add allow \"bash(go test *)\"\n  inspan config set --project --add deny \"read(secrets/**)\"",
		Args: exactly(2, 1000, "a KEY and a VALUE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.change(cmd, cwd, project, config.Change{Key: args[0], Values: args[1:], Add: add})
		},
	}
	cmd.Flags().BoolVar(&add, "add", false, "add the values to the list")
	projectFlags(cmd, &project, &cwd)
	return cmd
}

func (c *command) configUnset() *cobra.Command {
	var project bool
	var cwd string
	cmd := &cobra.Command{
		Use:   "unset KEY",
		Short: "Remove a setting from your settings file, so that its default applies",
		Long:  keyForm,
		Args:  exactly(1, 1, "a KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.change(cmd, cwd, project, config.Change{Key: args[0]})
		},
	}
	projectFlags(cmd, &project, &cwd)
	return cmd
}

func projectFlags(cmd *cobra.Command, project *bool, cwd *string) {
	cmd.Flags().BoolVar(project, "project", false, "change "+config.ProjectFile+" of the folder, which can only make things stricter")
	cmd.Flags().StringVar(cwd, "cwd", ".", "`folder` of --project")
}

// change writes one setting, and says where.
func (c *command) change(cmd *cobra.Command, cwd string, project bool, change config.Change) error {
	a, root, err := c.at(cwd)
	if err != nil {
		return err
	}
	file := app.SettingsFile(a.Installation, root, project)
	if err := file.Set(change); err != nil {
		return usageError{err}
	}
	does := "Set "
	if len(change.Values) == 0 {
		does = "Removed "
	}
	fmt.Fprintln(cmd.OutOrStdout(), does+change.Key+" in "+file.Path+".")
	if variable := "INSPAN_" + strings.ToUpper(strings.ReplaceAll(change.Key, ".", "__")); !project && a.Sets(variable) {
		fmt.Fprintf(cmd.ErrOrStderr(), "The variable %s is set and comes before the file.\n", variable)
	}
	return nil
}

func (c *command) configGet() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a setting in force, or all values of a table",
		Long:  keyForm + "\nThe exit code is 1 if the setting has its default value.",
		Args:  exactly(1, 1, "a KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(".")
			if err != nil {
				return err
			}
			if err := config.CheckKey(args[0]); err != nil {
				return usageError{err}
			}
			list, err := a.Settings(root)
			if err != nil {
				return err
			}
			var found []config.Setting
			for _, s := range list {
				if s.Key == args[0] {
					found = []config.Setting{s} // the last one wins
				} else if strings.HasPrefix(s.Key, args[0]+".") || strings.HasPrefix(s.Key, args[0]+"[") {
					found = append(found, s)
				}
			}
			switch out := cmd.OutOrStdout(); {
			case len(found) == 0:
				return errors.New(args[0] + " is not set; its default applies")
			case asJSON:
				return listing.JSON(out, found)
			case found[0].Key == args[0]:
				fmt.Fprintln(out, found[0].Plain())
			default:
				for _, s := range found {
					fmt.Fprintf(out, "%s = %s\n", s.Key, s.Value)
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

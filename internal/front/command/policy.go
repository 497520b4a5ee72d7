package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) policy() *cobra.Command {
	return group("policy", "Explain permissions and list the rules", c.policyExplain(), c.policyRules(), c.policyForget())
}

func (c *command) policyExplain() *cobra.Command {
	var cwd string
	var o app.Options
	cmd := &cobra.Command{
		Use:   `explain "COMMAND"`,
		Short: "Explain what a command line does, and whether it asks",
		Long: "inspan splits a bash command line into simple commands and classifies each. \"read\" only reads and prints.\n" +
			"\"workspace\" also writes to known paths in the workspace. \"full\" can do anything, or can't be proven harmless.\n" +
			"Then it shows the verdict of the mode and your rules, which rules it tried, and the narrowest rule that would allow the command.\n\n" +
			"It runs nothing.",
		Example: "  inspan policy explain 'git log --oneline | head -5'\n  inspan policy explain --mode edit 'find . -name \"*.tmp\" -delete'",
		Args:    exactly(1, 1, "a COMMAND in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Check(); err != nil {
				return err
			}
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			e, err := a.Permission.Explain(cmd.Context(), root, o.Mode, args[0])
			if err != nil {
				return err
			}
			return console.Explained(cmd.OutOrStdout(), e)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` the command would run in (the workspace)")
	cmd.Flags().StringVar((*string)(&o.Mode), "mode", "", "permission `mode`: plan, ask, edit, auto or yolo (default: that of new sessions)")
	return cmd
}

func (c *command) policyRules() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules in force and their sources",
		Long: "Rules come from the organisation, your settings, the project, and your approvals \"for this project\" or \"always\".\n" +
			"Deny beats ask, and ask beats allow. Rules in the form of another agent are shown as what they became.\n" +
			"inspan says which rules match nothing here, and which change nothing because another one decides first.",
		Args: exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			rules, err := a.Rules(cmd.Context(), root)
			if err != nil {
				return err
			}
			if len(rules) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "no rules; the permission mode alone decides")
			}
			return console.Rules(cmd.OutOrStdout(), rules)
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to use (the workspace)")
	return cmd
}

func (c *command) policyForget() *cobra.Command {
	var cwd string
	cmd := &cobra.Command{
		Use:     `forget "RULE"`,
		Short:   "Remove a rule that you approved for a project or always",
		Example: "  inspan policy forget 'bash(npm install *)'",
		Args:    exactly(1, 1, "a RULE in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, root, err := c.at(cwd)
			if err != nil {
				return err
			}
			n, err := a.Consent.Revoke(cmd.Context(), args[0], root)
			if err == nil && n == 0 {
				return misused("%q was not allowed here; see 'inspan policy rules'", args[0])
			}
			return err
		},
	}
	cmd.Flags().StringVar(&cwd, "cwd", ".", "`folder` to use (the workspace)")
	return cmd
}

// at reads the settings and finds a workspace.
func (c *command) at(folder string) (*app.App, string, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, "", err
	}
	root, err := workspace(folder)
	return a, root, err
}

// workspace is a folder, absolute and without links.
func workspace(folder string) (string, error) {
	root, err := filepath.Abs(folder)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	var info fs.FileInfo
	if err == nil {
		info, err = os.Stat(root)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", misused("%s does not exist", folder)
	case err != nil:
		return "", usageError{err}
	case !info.IsDir():
		return "", misused("%s is not a folder", folder)
	}
	return root, nil
}

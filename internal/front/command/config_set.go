package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/view/words"
)

const keyForm = "A KEY is written as in the file, with a dot for each table: model, sandbox.memory_mb, providers.home.base_url."

func (c *command) configSet() *cobra.Command {
	var project, add bool
	var cwd string
	cmd := &cobra.Command{
		Use:   "set KEY VALUE ... | KEY=VALUE ...",
		Short: "Change settings in your settings file",
		Long: keyForm + "\nTo set a list, give all its values, write it as in the file, or use --add. Several KEY=VALUE pairs are set together.\n" +
			"Comments and order of the file stay as they are. inspan checks the result and\n" +
			"refuses a change that adds a fault.\n" +
			"A provider needs a base_url. Its kind is openai (Chat Completions) unless you set another, or inspan knows the name.",
		Example: "  inspan config set model anthropic/claude-sonnet-5-5\n  inspan config set sandbox.memory_mb 4096\n" +
			"  inspan config set providers.home.base_url=http://localhost:8000/v1 model=home/my-model\n" +
			"  inspan config set --add allow \"bash(go test *)\"\n  inspan config set --project --add deny \"read(secrets/**)\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := parseAssignments(args, add)
			if err != nil {
				return misused("%s %w; see '%[1]s --help'", cmd.CommandPath(), err)
			}
			return c.change(cmd, cwd, project, changes...)
		},
	}
	cmd.Flags().BoolVar(&add, "add", false, "add the values to the list")
	projectFlags(cmd, &project, &cwd)
	return cmd
}

// parseAssignments returns the changes in arguments: a key and its values, or pairs of a key and a value.
func parseAssignments(args []string, add bool) (changes []config.Change, err error) {
	if len(args) > 0 && !strings.Contains(args[0], "=") {
		if len(args) == 1 {
			return nil, errors.New("needs a KEY and a VALUE")
		}
		return []config.Change{{Key: args[0], Values: args[1:], Add: add}}, nil
	}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("takes either a KEY and its values or KEY=VALUE pairs; %q has no =", arg)
		}
		if i := slices.IndexFunc(changes, func(c config.Change) bool { return c.Key == key }); i >= 0 {
			changes[i].Values = append(changes[i].Values, value)
			continue
		}
		changes = append(changes, config.Change{Key: key, Values: []string{value}, Add: add})
	}
	if len(changes) == 0 {
		return nil, errors.New("needs a KEY and a VALUE")
	}
	return changes, nil
}

func (c *command) configUnset() *cobra.Command {
	var project bool
	var cwd string
	cmd := &cobra.Command{
		Use:   "unset KEY ...",
		Short: "Remove settings or whole tables from your settings file, so that the defaults apply",
		Long:  keyForm,
		Args:  exactly(1, 1000, "a KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var changes []config.Change
			for _, key := range args {
				changes = append(changes, config.Change{Key: key})
			}
			return c.change(cmd, cwd, project, changes...)
		},
	}
	projectFlags(cmd, &project, &cwd)
	return cmd
}

func (c *command) configEdit() *cobra.Command {
	var project bool
	var cwd string
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Open your settings file in an editor, and check it afterwards",
		Long:  "The editor is that of VISUAL or EDITOR, else vi. This works even if the file has faults.",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := settingsFile(cwd, project)
			if err == nil {
				err = os.MkdirAll(filepath.Dir(file.Path), 0o700)
			}
			if err != nil {
				return err
			}
			run := editor(cmd.Context())(file.Path)
			run.SetStdin(c.in)
			run.SetStdout(c.console.Out)
			run.SetStderr(c.console.Err)
			if err := run.Run(); err != nil {
				return fmt.Errorf("the editor failed: %w", err)
			}
			if err := file.Faulty(); err != nil {
				return config.Error{Err: err}
			}
			return nil
		},
	}
	projectFlags(cmd, &project, &cwd)
	return cmd
}

func projectFlags(cmd *cobra.Command, project *bool, cwd *string) {
	cmd.Flags().BoolVar(project, "project", false, "change "+config.ProjectFile+" of the folder, which can only make things stricter")
	cmd.Flags().StringVar(cwd, "cwd", ".", "`folder` of --project")
}

// settingsFile returns the person's file, or that of a project. It is found even if it has faults.
func settingsFile(cwd string, project bool) (config.File, error) {
	root, err := workspace(cwd)
	if err != nil {
		return config.File{}, err
	}
	path, err := config.Path()
	return app.SettingsFile(&config.Installation{ConfigPath: path}, root, project), err
}

// change writes settings, and prints where.
func (c *command) change(cmd *cobra.Command, cwd string, project bool, changes ...config.Change) error {
	file, err := settingsFile(cwd, project)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if config.Secret(strings.Join(change.Values, " ")) {
			return misused("%s: the value looks like a secret, which does not belong in settings; "+
				"'inspan setup' stores a key, key_env names a variable", change.Key)
		}
	}
	if err := file.Set(changes...); err != nil {
		if len(config.Faults(err)) > 0 { // it had faults before
			return config.Error{Err: err}
		}
		return words.Misuse{Err: err}
	}
	for _, change := range changes {
		done, shadow := file.Describe(change)
		fmt.Fprintln(cmd.OutOrStdout(), done)
		if shadow != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), shadow)
		}
	}
	if err := file.Faulty(); err != nil {
		c.warn("the file still has faults:\n" + err.Error())
	}
	c.warnUnknownModels(changes)
	c.warnIneffectiveRules(cmd.Context(), cwd, changes)
	return nil
}

// warnUnknownModels warns if a change names an unknown model.
func (c *command) warnUnknownModels(changes []config.Change) {
	a, err := c.installation()
	if err != nil {
		return // it was reported
	}
	for _, m := range a.Config.Models() {
		named := slices.ContainsFunc(changes, func(c config.Change) bool { return c.Key == m.Key && len(c.Values) > 0 })
		if doubt := a.Providers.Doubt(m.Value); named && doubt != "" {
			c.warn(m.Key + ": " + doubt)
		}
	}
}

// warnIneffectiveRules warns about new rules that match nothing here or change nothing, and shows the conversion of rules
// in the form of another agent.
func (c *command) warnIneffectiveRules(ctx context.Context, cwd string, changes []config.Change) {
	a, root, err := c.at(cwd)
	if err != nil {
		return // it was reported
	}
	notes, _ := a.Rules(ctx, root)
	for _, n := range notes {
		set := slices.ContainsFunc(changes, func(c config.Change) bool {
			return c.Key == string(n.Action) && slices.Contains(c.Values, cmp.Or(n.Original, n.Text))
		})
		switch {
		case !set:
		case n.Unmatched != nil:
			c.warn(n.Unmatched.Error() + "; it matches nothing here")
		case n.Original != "":
			c.warn(fmt.Sprintf("%s %s holds as %s", n.Action, n.Original, n.Text))
		case n.By != nil:
			c.warn(fmt.Sprintf("%s %s changes nothing: %s %s decides all that it matches", n.Action, n.Text, n.By.Action, n.By.Text))
		}
	}
}

func (c *command) configGet() *cobra.Command {
	var origin, asJSON bool
	cmd := &cobra.Command{
		Use:   "get KEY",
		Short: "Print the value of a setting in force, or all values of a table",
		Long:  keyForm + "\nA setting that is not set has its default: --origin says so.",
		Args:  exactly(1, 1, "a KEY"),
		RunE: c.inFolder(nil, func(cmd *cobra.Command, a *app.App, root string, args []string) error {
			if err := config.CheckKey(args[0]); err != nil {
				return words.Misuse{Err: err}
			}
			list, err := a.Permission.Settings(root)
			if err != nil {
				return err
			}
			for _, s := range list {
				if s.Ignored != "" && len(config.Of(args[0], []config.Setting{{Key: s.Key}})) > 0 {
					c.warn(fmt.Sprintf("%s sets %s, which is not in force: %s", s.Origin(), s.Key, s.Ignored))
				}
			}
			found := append(config.Of(args[0], list), config.Defaults(args[0], list)...)
			switch out := cmd.OutOrStdout(); {
			case asJSON:
				return printJSON(out, found)
			case origin || len(found) == 0 || found[0].Key != args[0]:
				return settings(out, found, origin)
			default:
				for _, s := range found {
					fmt.Fprintln(out, s.Plain())
				}
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&origin, "origin", false, originUsage)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

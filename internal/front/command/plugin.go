package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/install/app"
)

func (c *command) plugin() *cobra.Command {
	return group("plugin", "Install, enable and update plugins",
		c.pluginInstall(), c.pluginEnable(), c.pluginDisable(), c.pluginUpdate(), c.pluginRemove(), c.pluginList(), c.pluginShow())
}

func (c *command) pluginInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install SOURCE",
		Short: "Copy a plugin from a folder or a git repository, without enabling it",
		Long: "inspan pins the exact content and uses nothing of it before you enable it.\n\n" +
			"SOURCE is a folder, https://HOST/PATH, ssh://HOST/PATH or USER@HOST:PATH. You can add #BRANCH, #TAG or #COMMIT,\n" +
			"and then :FOLDER for a folder in the repository.",
		Example: "  inspan plugin install ./my-plugin\n  inspan plugin install https://github.com/ann/review.git#v1.2.0\n" +
			"  inspan plugin install https://github.com/ann/all.git#:plugins/review",
		Args: exactly(1, 1, "a SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			s := a.Extensions.Store()
			p, err := s.Install(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			console.Installed(cmd.OutOrStdout(), cmd.ErrOrStderr(), p)
			return nil
		},
	}
}

func (c *command) pluginEnable() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Enable a plugin, after showing what it can run",
		Long: "inspan shows everything that the plugin can run, and asks. Without a terminal, pass --yes. New sessions use the plugin.\n" +
			"Its hooks run outside the sandbox, as if you had set them up yourself.",
		Args: exactly(1, 1, "a NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			s := a.Extensions.Store()
			p, err := s.Get(args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			runs := p.Parts().Runs
			for _, line := range runs {
				fmt.Fprintln(out, "  "+line)
			}
			switch {
			case p.Broken || p.Enabled || len(runs) == 0 || yes:
			case !isTerminal(c.in):
				return fmt.Errorf("%s is not enabled: there is nobody to ask; --yes enables it", p.Name)
			case !c.confirms(out, fmt.Sprintf("Enable %s and let these %d run?", console.Titled(p), len(runs))):
				fmt.Fprintln(out, "Not enabled.")
				return nil
			}
			if err := s.Enable(cmd.Context(), p.Name, p.Digest); err != nil {
				return err
			}
			fmt.Fprintf(out, "Enabled %s for new sessions.\n", console.Titled(p))
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "enable without asking")
	return cmd
}

// confirms asks the person. Anything but yes is no.
func (c *command) confirms(out io.Writer, question string) bool {
	fmt.Fprint(out, question+" [y/N] ")
	line, err := bufio.NewReader(c.in).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (word == "y" || word == "yes")
}

func (c *command) pluginDisable() *cobra.Command {
	return c.pluginEach("disable NAME", "Disable a plugin without removing it", "Disabled %s for new sessions.\n",
		func(ctx context.Context, a *app.App, name string) error {
			return a.Extensions.Store().Disable(ctx, name)
		})
}

func (c *command) pluginRemove() *cobra.Command {
	return c.pluginEach("remove NAME", "Remove a plugin and its copy", "Removed %s.\n",
		func(ctx context.Context, a *app.App, name string) error {
			return a.Extensions.Store().Remove(ctx, name)
		})
}

// pluginEach is a command that does one thing with one plugin.
func (c *command) pluginEach(use, short, done string, do func(context.Context, *app.App, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1, 1, "a NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err == nil {
				err = do(cmd.Context(), a, args[0])
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), done, args[0])
			}
			return err
		},
	}
}

func (c *command) pluginUpdate() *cobra.Command {
	return &cobra.Command{
		Use:   "update [NAME]",
		Short: "Update one plugin, or all, from their sources",
		Long: "inspan disables a plugin whose hooks, tools, servers or scripts have changed until you enable it again.\n" +
			"If only texts have changed, the plugin stays enabled.",
		Args: exactly(0, 1, "at most one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			s := a.Extensions.Store()
			if len(args) == 0 {
				list, err := s.List(cmd.Context())
				if err != nil {
					return err
				}
				for _, p := range list {
					args = append(args, p.Name)
				}
			}
			var failed []error
			for _, name := range args {
				was, now, err := s.Update(cmd.Context(), name)
				if err != nil {
					failed = append(failed, err)
					continue
				}
				console.Updated(cmd.OutOrStdout(), cmd.ErrOrStderr(), was, now)
			}
			return errors.Join(failed...)
		},
	}
}

func (c *command) pluginList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the plugins and their parts",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			s := a.Extensions.Store()
			list, err := s.List(cmd.Context())
			if err != nil {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "There are no plugins. 'inspan plugin install SOURCE' copies one.")
				return nil
			}
			return console.Plugins(cmd.OutOrStdout(), cmd.ErrOrStderr(), list)
		},
	}
}

func (c *command) pluginShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show the parts of a plugin, their cost, and what it can run",
		Args:  exactly(1, 1, "a NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, err := app.Load(c.self)
			if err != nil {
				return err
			}
			s := a.Extensions.Store()
			p, err := s.Get(args[0])
			if err != nil {
				return err
			}
			console.Plugin(cmd.OutOrStdout(), cmd.ErrOrStderr(), p)
			return nil
		},
	}
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/view/words"
)

func (c *command) plugin() *cobra.Command {
	disable := c.pluginEach("disable NAME", "Disable a plugin without removing it", "Disabled %s for new sessions.\n", (*plugin.Store).Disable)
	remove := c.pluginEach("remove NAME", "Remove a plugin and its copy", "Removed %s.\n", (*plugin.Store).Remove)
	return group("plugin", "Install, enable and update plugins",
		c.pluginInstall(), c.pluginEnable(), disable, c.pluginUpdate(), remove, c.pluginList(), c.pluginShow())
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
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			s := a.Extensions.Store()
			p, err := s.Install(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Installed %s: %s.\n", titled(p), brings(p))
			printProblems(cmd.ErrOrStderr(), p)
			if !p.Enabled {
				fmt.Fprintf(cmd.OutOrStdout(), "It is not enabled. 'inspan plugin enable %s' shows the programs that it can run, and asks.\n", p.Name)
			}
			return nil
		}),
	}
}

func (c *command) pluginEnable() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "enable NAME",
		Short: "Enable a plugin, after showing the programs that it can run",
		Long: "inspan shows everything that the plugin can run, and asks. Without a terminal, pass --yes. New sessions use the plugin.\n" +
			"Its hooks, tools and servers run in the sandbox, and its hooks can't approve calls.",
		Args: exactly(1, 1, "a NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
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
				return fmt.Errorf("%s was not enabled, because there is no terminal to ask on; --yes enables it", p.Name)
			case !c.confirms(out, fmt.Sprintf("Enable %s and let these %d run?", titled(p), len(runs))):
				fmt.Fprintln(out, "Not enabled.")
				return nil
			}
			if err := s.Enable(cmd.Context(), p.Name, p.Digest); err != nil {
				return err
			}
			fmt.Fprintf(out, "Enabled %s for new sessions.\n", titled(p))
			return nil
		}),
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "enable without asking")
	return cmd
}

// pluginEach returns a command that does one thing with one plugin.
func (c *command) pluginEach(use, short, done string, do func(*plugin.Store, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1, 1, "a NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			err := do(a.Extensions.Store(), cmd.Context(), args[0])
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), done, args[0])
			}
			return err
		}),
	}
}

func (c *command) pluginUpdate() *cobra.Command {
	return &cobra.Command{
		Use:   "update [NAME]",
		Short: "Update one plugin, or all, from their sources",
		Long: "inspan disables a plugin whose hooks, tools, servers or scripts have changed until you enable it again.\n" +
			"If only texts have changed, the plugin stays enabled.",
		Args: exactly(0, 1, "at most one NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
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
				fmt.Fprintln(cmd.OutOrStdout(), changeOf(was, now))
				printProblems(cmd.ErrOrStderr(), now)
			}
			return errors.Join(failed...)
		}),
	}
}

func (c *command) pluginList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the plugins and their parts",
		Args:  exactly(0, 0, "no arguments"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, _ []string) error {
			s := a.Extensions.Store()
			list, err := s.List(cmd.Context())
			if err != nil {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "No plugins are installed. 'inspan plugin install SOURCE' installs one.")
				return nil
			}
			return printPlugins(cmd.OutOrStdout(), cmd.ErrOrStderr(), list)
		}),
	}
}

func (c *command) pluginShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show the parts of a plugin, their cost, and the programs that it can run",
		Args:  exactly(1, 1, "a NAME"),
		RunE: c.withApp(func(cmd *cobra.Command, a *app.App, args []string) error {
			s := a.Extensions.Store()
			p, err := s.Get(args[0])
			if err != nil {
				return err
			}
			return printPlugin(cmd.OutOrStdout(), cmd.ErrOrStderr(), p)
		}),
	}
}

// printPlugins prints plugins in one line each, and then their problems.
func printPlugins(out, complain io.Writer, list []plugin.Plugin) error {
	w := text.NewTable(out, "PLUGIN", "VERSION", "STATE", "DIGEST", "IN THE PROMPT", "BRINGS", "FROM")
	for _, p := range list {
		tokens, _ := p.Cost()
		w.Row(p.Name, cmp.Or(p.Version, "-"), pluginState(p), shortDigest(p.Digest), text.Count(tokens, "token"),
			brings(p), text.Visible(p.Source))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range list {
		printProblems(complain, p)
	}
	return nil
}

// printPlugin prints all details of a plugin, and its problems.
func printPlugin(out, complain io.Writer, p plugin.Plugin) error {
	w := text.NewTable(out)
	row := func(name, s string) {
		if s != "" {
			w.Row(name, text.Visible(s))
		}
	}
	row("plugin", titled(p))
	row("description", p.Description)
	row("author", p.Author)
	row("homepage", p.Homepage)
	row("license", p.License)
	row("state", pluginState(p))
	row("from", p.Source)
	row("commit", p.Commit)
	row("digest", p.Digest)
	row("folder", p.Dir)
	parts := p.Parts()
	row("brings", brings(p))
	for _, cmd := range parts.Commands {
		row("", fmt.Sprintf("  /%s: %s", cmd.Name, words.OneLine(cmd.Description, 80)))
	}
	tokens, lines := p.Cost()
	row("costs", "about "+text.Count(tokens, "token")+" of every prompt")
	for _, line := range lines {
		row("", "  "+line)
	}
	for _, line := range parts.Runs {
		row("may run", line)
	}
	err := w.Flush()
	printProblems(complain, p)
	return err
}

// changeOf describes how an update has changed a plugin.
func changeOf(was, now plugin.Plugin) string {
	again := fmt.Sprintf("'inspan plugin enable %s' shows it", now.Name)
	switch {
	case was.Broken:
		return fmt.Sprintf("%s: its copy was damaged and is now %s; %s", now.Name, shortDigest(now.Digest), again)
	case was.Digest == now.Digest:
		return now.Name + ": nothing has changed"
	case was.Enabled && !now.Enabled:
		return fmt.Sprintf("%s: %s → %s; its programs have changed, so it is disabled; %s", now.Name, stampOf(was), stampOf(now), again)
	}
	return fmt.Sprintf("%s: %s → %s, %s as before", now.Name, stampOf(was), stampOf(now), pluginState(now))
}

// titled returns the name of a plugin with its version.
func titled(p plugin.Plugin) string { return strings.TrimSpace(p.Name + " " + p.Version) }

// stampOf distinguishes two states of a plugin.
func stampOf(p plugin.Plugin) string {
	return strings.TrimSpace(p.Version + " (" + shortDigest(p.Digest) + ")")
}

func shortDigest(digest string) string { return digest[:min(len(digest), 12)] }

func pluginState(p plugin.Plugin) string {
	switch {
	case p.Broken:
		return "broken"
	case p.Enabled:
		return "enabled"
	}
	return "disabled"
}

// brings counts the parts of a plugin.
func brings(p plugin.Plugin) string {
	parts := p.Parts()
	skills, _ := parts.Listed()
	var out []string
	for _, n := range []struct {
		n    int
		what string
	}{
		{len(skills), "skill"},
		{len(parts.Commands), "command"},
		{len(parts.Agents), "agent"},
		{len(parts.Hooks), "hook"},
		{parts.Programs(), "tool"},
		{len(parts.Servers), "server"},
	} {
		if n.n > 0 {
			out = append(out, text.Count(n.n, n.what))
		}
	}
	return cmp.Or(strings.Join(out, ", "), "nothing")
}

// printProblems prints the problems of a plugin.
func printProblems(to io.Writer, p plugin.Plugin) {
	parts := p.Parts()
	for _, s := range p.Problems {
		fmt.Fprintf(to, "%s: %s\n", p.Name, text.Visible(s))
	}
	_, warnings := parts.Listed()
	for _, s := range append(parts.Problems, warnings...) {
		fmt.Fprintln(to, text.Visible(s))
	}
}

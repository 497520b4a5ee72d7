package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/app"
	"github.com/inspan/inspan/internal/plugin"
	"github.com/inspan/inspan/internal/text"
	"github.com/inspan/inspan/internal/words"
)

func (c *command) plugin() *cobra.Command {
	return group("plugin", "Install, enable and update plugins",
		c.pluginInstall(), c.pluginEnable(), c.pluginDisable(), c.pluginUpdate(), c.pluginRemove(), c.pluginList(), c.pluginShow())
}

// plugins opens the store of plugins.
func (c *command) plugins() (*plugin.Store, error) {
	a, err := app.Load(c.self)
	if err != nil {
		return nil, err
	}
	return a.Extensions.Store(), nil
}

func (c *command) pluginInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install SOURCE",
		Short: "Copy a plugin from a folder or a git repository, without enabling it",
		Long: "inspan pins the exact content and uses nothing of it before you enable it.\n\n" +
			"SOURCE is a folder, https://HOST/PATH, ssh://HOST/PATH or USER@HOST:PATH. You can add #BRANCH, #TAG or #COMMIT,\n" +
			"and then :FOLDER for a folder in the repository.",
		Example: "  inspan plugin install ./my-plugin\n  inspan plugin install https://github.com/ann/review.git#v1.2.0\n  inspan plugin install https://github.com/ann/all.git#:plugins/review",
		Args:    exactly(1, 1, "one SOURCE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.plugins()
			if err != nil {
				return err
			}
			p, err := s.Install(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "Installed %s: %s.\n", titled(p), brings(p))
			complain(cmd.ErrOrStderr(), p)
			if !p.Enabled {
				fmt.Fprintf(out, "It is not used yet: 'inspan plugin enable %s' shows what it could run.\n", p.Name)
			}
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
		Args: exactly(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.plugins()
			if err != nil {
				return err
			}
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
				return fmt.Errorf("%s is not enabled: there is nobody to ask; --yes enables what is shown", p.Name)
			case !c.confirms(out, fmt.Sprintf("Enable %s, so that these %d may run?", titled(p), len(runs))):
				fmt.Fprintln(out, "Not enabled.")
				return nil
			}
			if err := s.Enable(cmd.Context(), p.Name, p.Digest); err != nil {
				return err
			}
			fmt.Fprintf(out, "Enabled %s for sessions that begin from now on.\n", titled(p))
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
	return c.pluginEach("disable NAME", "Keep a plugin, and don't use it", "Disabled %s for sessions that begin from now on.\n", (*plugin.Store).Disable)
}

func (c *command) pluginRemove() *cobra.Command {
	return c.pluginEach("remove NAME", "Remove a plugin and its copy", "Removed %s.\n", (*plugin.Store).Remove)
}

// pluginEach is a command that does one thing with one plugin.
func (c *command) pluginEach(use, short, done string, do func(*plugin.Store, context.Context, string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: exactly(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.plugins()
			if err == nil {
				err = do(s, cmd.Context(), args[0])
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
		Args: exactly(0, 1, "one NAME at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.plugins()
			if err != nil {
				return err
			}
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
				fmt.Fprintln(cmd.OutOrStdout(), updated(was, now))
				complain(cmd.ErrOrStderr(), now)
			}
			return errors.Join(failed...)
		},
	}
}

func updated(was, now plugin.Plugin) string {
	switch {
	case was.Broken:
		return fmt.Sprintf("%s: its copy was damaged and is now %s; %s", now.Name, short(now.Digest), enableAgain(now))
	case was.Digest == now.Digest:
		return now.Name + ": nothing has changed"
	case was.Enabled && !now.Enabled:
		return fmt.Sprintf("%s: %s → %s; what it could run has changed, so it is disabled; %s", now.Name, stamp(was), stamp(now), enableAgain(now))
	}
	return fmt.Sprintf("%s: %s → %s, %s as before", now.Name, stamp(was), stamp(now), state(now))
}

func enableAgain(p plugin.Plugin) string {
	return fmt.Sprintf("'inspan plugin enable %s' shows it", p.Name)
}

func (c *command) pluginList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the plugins and their parts",
		Args:  exactly(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.plugins()
			if err != nil {
				return err
			}
			list, err := s.List(cmd.Context())
			if err != nil {
				return err
			}
			if len(list) == 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "There are no plugins. 'inspan plugin install SOURCE' copies one.")
				return nil
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "PLUGIN\tVERSION\tSTATE\tDIGEST\tIN THE PROMPT\tBRINGS\tFROM")
			for _, p := range list {
				tokens, _ := p.Cost()
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Name, cmp.Or(p.Version, "-"), state(p), short(p.Digest), text.Count(tokens, "token"), brings(p), text.Visible(p.Source))
			}
			if err := w.Flush(); err != nil {
				return err
			}
			for _, p := range list {
				complain(cmd.ErrOrStderr(), p)
			}
			return nil
		},
	}
}

func (c *command) pluginShow() *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME",
		Short: "Show the parts of a plugin, their cost, and what it can run",
		Args:  exactly(1, 1, "one NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := c.plugins()
			if err != nil {
				return err
			}
			p, err := s.Get(args[0])
			if err != nil {
				return err
			}
			showPlugin(cmd.OutOrStdout(), p)
			complain(cmd.ErrOrStderr(), p)
			return nil
		},
	}
}

func showPlugin(out io.Writer, p plugin.Plugin) {
	row := func(name, s string) {
		if s != "" {
			fmt.Fprintf(out, "%-12s %s\n", name, text.Visible(s))
		}
	}
	row("plugin", titled(p))
	row("description", p.Description)
	row("author", p.Author)
	row("homepage", p.Homepage)
	row("license", p.License)
	row("state", state(p))
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
}

// titled is the name of a plugin with its version.
func titled(p plugin.Plugin) string { return strings.TrimSpace(p.Name + " " + p.Version) }

// stamp tells two states of a plugin apart.
func stamp(p plugin.Plugin) string {
	return strings.TrimSpace(p.Version + " (" + short(p.Digest) + ")")
}

func short(digest string) string { return digest[:min(len(digest), 12)] }

func state(p plugin.Plugin) string {
	switch {
	case p.Broken:
		return "broken"
	case p.Enabled:
		return "enabled"
	}
	return "disabled"
}

// brings counts what a plugin has.
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

// complain tells what is wrong with a plugin.
func complain(to io.Writer, p plugin.Plugin) {
	parts := p.Parts()
	for _, s := range p.Problems {
		fmt.Fprintf(to, "%s: %s\n", p.Name, text.Visible(s))
	}
	_, warnings := parts.Listed()
	for _, s := range append(parts.Problems, warnings...) {
		fmt.Fprintln(to, text.Visible(s))
	}
}

package console

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/plugin"
	"github.com/inspan/inspan/internal/view/words"
)

// Plugins prints plugins in one line each, and then what is wrong with them.
func Plugins(out, complain io.Writer, list []plugin.Plugin) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PLUGIN\tVERSION\tSTATE\tDIGEST\tIN THE PROMPT\tBRINGS\tFROM")
	for _, p := range list {
		tokens, _ := p.Cost()
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
			p.Name, cmp.Or(p.Version, "-"), state(p), short(p.Digest), text.Count(tokens, "token"), brings(p), text.Visible(p.Source))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, p := range list {
		problems(complain, p)
	}
	return nil
}

// Plugin prints all there is to know of a plugin, and what is wrong with it.
func Plugin(out, complain io.Writer, p plugin.Plugin) {
	row := func(name, s string) {
		if s != "" {
			fmt.Fprintf(out, "%-12s %s\n", name, text.Visible(s))
		}
	}
	row("plugin", Titled(p))
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
	problems(complain, p)
}

// Installed tells that a plugin was copied here, and what is wrong with it.
func Installed(out, complain io.Writer, p plugin.Plugin) {
	fmt.Fprintf(out, "Installed %s: %s.\n", Titled(p), brings(p))
	problems(complain, p)
	if !p.Enabled {
		fmt.Fprintf(out, "It is not enabled. 'inspan plugin enable %s' shows what it can run, and asks.\n", p.Name)
	}
}

// Updated tells what an update has made of a plugin, and what is wrong with it.
func Updated(out, complain io.Writer, was, now plugin.Plugin) {
	fmt.Fprintln(out, updated(was, now))
	problems(complain, now)
}

func updated(was, now plugin.Plugin) string {
	again := fmt.Sprintf("'inspan plugin enable %s' shows it", now.Name)
	switch {
	case was.Broken:
		return fmt.Sprintf("%s: its copy was damaged and is now %s; %s", now.Name, short(now.Digest), again)
	case was.Digest == now.Digest:
		return now.Name + ": nothing has changed"
	case was.Enabled && !now.Enabled:
		return fmt.Sprintf("%s: %s → %s; its programs have changed, so it is disabled; %s", now.Name, stamp(was), stamp(now), again)
	}
	return fmt.Sprintf("%s: %s → %s, %s as before", now.Name, stamp(was), stamp(now), state(now))
}

// Titled is the name of a plugin with its version.
func Titled(p plugin.Plugin) string { return strings.TrimSpace(p.Name + " " + p.Version) }

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

// problems tells what is wrong with a plugin.
func problems(to io.Writer, p plugin.Plugin) {
	parts := p.Parts()
	for _, s := range p.Problems {
		fmt.Fprintf(to, "%s: %s\n", p.Name, text.Visible(s))
	}
	_, warnings := parts.Listed()
	for _, s := range append(parts.Problems, warnings...) {
		fmt.Fprintln(to, text.Visible(s))
	}
}

package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/view/words"
)

// help prints the purpose and usage of a command; for the root, a screen with the most used commands.
func help(cmd *cobra.Command, _ []string) {
	if cmd.HasParent() {
		explain(cmd)
		return
	}
	var b strings.Builder
	cells := width(cmd.OutOrStdout())
	b.WriteString(words.Wrap(cmd.Short, cells))
	section(&b, "Usage:", "  inspan [flags] [\"task\"]\n  inspan COMMAND [flags]")
	section(&b, "Examples:", cmd.Example)
	most := ""
	for _, name := range strings.Fields("run resume board show setup config doctor") {
		most += listed(cmd, func(c *cobra.Command) bool { return c.Name() == name })
	}
	section(&b, "Used most:", words.WrapRows(most, cells))
	section(&b, "", words.Wrap("All commands and flags: inspan help all. One: inspan COMMAND --help. Topics: inspan help "+
		strings.Join(topicNames(), " | "), cells))
	fmt.Fprintln(cmd.OutOrStdout(), b.String())
}

// explain prints usage and examples first, then the explanation, the subcommands and the flags.
func explain(cmd *cobra.Command) {
	var b strings.Builder
	cells := width(cmd.OutOrStdout())
	part := func(title, text string) { section(&b, title, words.WrapRows(text, cells)) }
	b.WriteString(words.Wrap(cmd.Short, cells) + usage(cmd))
	section(&b, "Examples:", cmd.Example) // to be copied
	part("", cmd.Long)
	if cmd.HasAvailableSubCommands() && len(cmd.Groups()) == 0 {
		part("Commands:", listed(cmd, (*cobra.Command).IsAvailableCommand))
	}
	for _, group := range cmd.Groups() {
		part(group.Title, listed(cmd, func(c *cobra.Command) bool { return c.GroupID == group.ID }))
	}
	for name, says := range map[string]string{"help": "show this help", "version": "print the version"} {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			flag.Usage = says
		}
	}
	part("Flags:", flagUsages(cmd.LocalFlags()))
	part("Flags of all commands:", flagUsages(cmd.InheritedFlags()))
	if !cmd.HasParent() {
		var topics strings.Builder
		w := text.NewTable(&topics)
		for _, topic := range helpTopics() {
			w.Row("  "+topic.name, topic.says)
		}
		_ = w.Flush() // into memory
		part("Help topics:", topics.String())
	}
	fmt.Fprintln(cmd.OutOrStdout(), b.String())
}

// flagUsages lists flags. A value that can be left out is in brackets, without what then stands for it.
func flagUsages(flags *pflag.FlagSet) string {
	return optionalValue.ReplaceAllStringFunc(flags.FlagUsages(), func(match string) string {
		name, _, _ := strings.Cut(strings.TrimSpace(match), "[")
		return fmt.Sprintf("%-*s", len(match), "[="+name+"]") // the columns stay
	})
}

// optionalValue matches how pflag writes a value that can be left out, such as ID[="?"].
var optionalValue = regexp.MustCompile(` \S+\[="[^"]*"\]`)

// usage returns the usage line of a command; empty for a help topic.
func usage(cmd *cobra.Command) string {
	var out string
	if cmd.Runnable() {
		out += "\n  " + cmd.UseLine()
	}
	if cmd.HasAvailableSubCommands() {
		out += "\n  " + cmd.CommandPath() + " [command]"
	}
	if out == "" {
		return ""
	}
	return "\n\nUsage:" + out
}

// section adds a section to a help text, unless it is empty.
func section(b *strings.Builder, title, text string) {
	if text = strings.TrimRight(text, " \n"); text == "" {
		return
	}
	b.WriteString("\n\n")
	if title != "" {
		b.WriteString(title + "\n")
	}
	b.WriteString(text)
}

// listed lists the wanted subcommands of a command, one a line.
func listed(cmd *cobra.Command, wanted func(*cobra.Command) bool) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if wanted(c) {
			fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// groups returns the groups of commands in 'inspan help all'.
func groups() [][2]string {
	return [][2]string{
		{"Work:", "run resume goal workflow schedule rewind compact ask-corpus"},
		{"Sessions that run:", "board web ps logs attach send stop"},
		{"Look back:", "show sessions cost spend stats trace context effects"},
		{"Permissions:", "policy trust"},
		{"Extend:", "skills memory mcp plugin agents tools copies"},
		{"Connect:", "serve worker acp a2a"},
		{"Measure:", "eval bench"},
		{"Set up:", "setup import models config doctor demo completion help version"},
	}
}

// shownCommands are offered by shells and by the help of the root. The others work as well; most people never
// need them.
const shownCommands = "run resume goal workflow schedule board ps attach send stop show sessions policy trust skills mcp plugin " +
	"serve web setup import models config doctor help"

// describe sets the form of all help, and the groups of the root command.
func describe(root *cobra.Command) {
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completions(root)
	for _, group := range groups() {
		root.AddGroup(&cobra.Group{ID: group[0], Title: group[0]})
		for _, cmd := range root.Commands() {
			if slices.Contains(strings.Fields(group[1]), cmd.Name()) {
				cmd.GroupID = group[0]
				cmd.Hidden = !slices.Contains(strings.Fields(shownCommands), cmd.Name())
			}
		}
	}
}

// helpCommand is 'inspan help', which knows commands and help topics.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND | TOPIC | all]",
		Short:   "Show the help of a command or a topic, or all commands",
		Example: "  inspan help all\n  inspan help run\n  inspan help sessions list\n  inspan help modes",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 && args[0] == "all" {
				explain(root)
				return nil
			}
			cmd, rest, err := root.Find(args)
			if len(args) == 1 {
				for _, topic := range helpTopics() {
					if topic.name == args[0] {
						says := topic.text
						if cmd != root {
							says += "\n\nThe command of this name: inspan " + topic.name + " --help"
						}
						fmt.Fprintln(root.OutOrStdout(), words.WrapRows(says, width(root.OutOrStdout())))
						return nil
					}
				}
			}
			if err != nil || len(rest) > 0 {
				if cmd != root {
					return unknown(cmd, rest[0])
				}
				return unknown(cmd, rest[0], topicNames()...)
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}

// completions rewords the help of the commands that cobra makes.
func completions(root *cobra.Command) {
	load := map[string]string{
		"bash":       "  source <(inspan completion bash)          # put this into ~/.bashrc; needs the package bash-completion",
		"zsh":        "  source <(inspan completion zsh)           # put this into ~/.zshrc, after compinit",
		"fish":       "  inspan completion fish > ~/.config/fish/completions/inspan.fish",
		"powershell": "  inspan completion powershell | Out-String | Invoke-Expression    # put this into your profile",
	}
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Short, cmd.Long = "Print a completion script for your shell", ""
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, grouped
		for _, shell := range cmd.Commands() {
			shell.Short, shell.Example, shell.Long = "Print the completion script for "+shell.Name(), load[shell.Name()], ""
			if flag := shell.Flags().Lookup("no-descriptions"); flag != nil {
				flag.Usage = "complete without descriptions"
			}
		}
	}
}

const exitPointer = "Exit codes: see 'inspan help exit-codes'."

// exitCodes is a help topic.
func exitCodes() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "Exit codes of inspan run, resume, logs -f and attach",
		Long:  exitHelp(),
	}
}

// unknown returns the error for a missing subcommand, where words other than commands may also be meant.
func unknown(cmd *cobra.Command, name string, others ...string) error {
	if verb, ok := peerVerbs()[name]; ok && !cmd.HasParent() {
		return misused("unknown command %q; use: %s", name, verb.use)
	}
	near := words.DidYouMean(name, append(others, commands(cmd)...))
	return misused("unknown command %q for %q%s; see '%s'", name, cmd.CommandPath(), near, helpOf(cmd))
}

// helpOf returns the command that prints a command's full help.
func helpOf(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return cmd.Name() + " help all"
	}
	return cmd.CommandPath() + " --help"
}

// commands returns the names of the subcommands of a command.
func commands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// group returns a command that only has subcommands.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs, RunE: grouped}
	cmd.AddCommand(subs...)
	return cmd
}

func grouped(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	return unknown(cmd, args[0])
}

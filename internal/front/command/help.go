package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/front/console"

	"github.com/spf13/cobra"

	"github.com/inspan/inspan/internal/view/words"
)

// help prints usage and examples first, then the explanation, the subcommands and the flags.
func help(cmd *cobra.Command, _ []string) {
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
		part(group.Title, listed(cmd, func(c *cobra.Command) bool {
			return c.GroupID == group.ID && (c.IsAvailableCommand() || c.Name() == "help")
		}))
	}
	for name, says := range map[string]string{"help": "show this help", "version": "print the version"} {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			flag.Usage = says
		}
	}
	part("Flags:", cmd.LocalFlags().FlagUsages())
	part("Flags of all commands:", cmd.InheritedFlags().FlagUsages())
	part("Help topics:", listed(cmd, (*cobra.Command).IsAdditionalHelpTopicCommand))
	fmt.Fprintln(cmd.OutOrStdout(), b.String())
}

// usage is how a command is typed, empty for a help topic.
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

// section adds a part of a help text, unless it is empty.
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

// listed names the commands below one that are wanted, each in a line.
func listed(cmd *cobra.Command, wanted func(*cobra.Command) bool) string {
	var b strings.Builder
	for _, c := range cmd.Commands() {
		if wanted(c) {
			fmt.Fprintf(&b, "  %-*s %s\n", c.NamePadding(), c.Name(), c.Short)
		}
	}
	return b.String()
}

// topics are the groups that 'inspan --help' lists commands in.
func topics() [][2]string {
	return [][2]string{
		{"Work:", "run resume rewind compact ask-corpus workflow goal schedule eval demo"},
		{"Background runs:", "board web ps logs attach send stop"},
		{"Look:", "sessions context cost spend stats trace effects eval bench"},
		{"Permissions:", "policy trust"},
		{"Extend:", "skills agents copies memory tools mcp plugin"},
		{"Connect:", "serve worker acp a2a"},
		{"Set up:", "setup import models config doctor completion help version"},
	}
}

// describe sets the form of all help, and the groups of the root command.
func describe(root *cobra.Command) {
	root.SetHelpFunc(help)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	completions(root)
	for _, topic := range topics() {
		root.AddGroup(&cobra.Group{ID: topic[0], Title: topic[0]})
		for _, cmd := range root.Commands() {
			if slices.Contains(strings.Fields(topic[1]), cmd.Name()) {
				cmd.GroupID = topic[0]
			}
		}
	}
}

// helpCommand is 'inspan help', which knows commands and help topics.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "Show the help of a command or a topic",
		Example: "  inspan help run\n  inspan help sessions list\n  inspan help exit-codes",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknown(cmd, rest[0])
			}
			cmd.InitDefaultHelpFlag()
			cmd.InitDefaultVersionFlag()
			return cmd.Help()
		},
	}
}

// completions words the help of the commands that cobra makes.
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
		Long: exitHelp() + "\n\nFrom 20 on the run ended as \"failed\", and the code names the cause.\n" +
			"With --output json the result object has the same reason and code; see docs/OUTPUT.md.",
	}
}

func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, row := range console.Codes() {
		fmt.Fprintf(&b, "  %-4s %s\n", row[0], row[1])
	}
	return strings.TrimRight(b.String(), "\n")
}

// unknown is the error for a subcommand that does not exist.
func unknown(cmd *cobra.Command, name string) error {
	return misused("unknown command %q for %q%s; see '%s --help'",
		name, cmd.CommandPath(), words.DidYouMean(name, commands(cmd)), cmd.CommandPath())
}

// commands are the names of the commands below one.
func commands(cmd *cobra.Command) (names []string) {
	for _, sub := range cmd.Commands() {
		names = append(names, sub.Name())
	}
	return names
}

// group makes a command that only holds others.
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

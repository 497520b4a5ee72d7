package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helpTemplate shows usage and examples first, then the explanation, the
// subcommands and the flags.
const helpTemplate = `{{.Short}}{{if or .Runnable .HasAvailableSubCommands}}

Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{with .Long}}

{{. | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{if eq (len .Groups) 0}}

Commands:{{range $cmds}}{{if .IsAvailableCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{else}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of all commands:
{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}{{if .HasHelpSubCommands}}

Help topics:{{range .Commands}}{{if .IsAdditionalHelpTopicCommand}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}
`

// topics are the groups that 'inspan --help' lists commands in.
func topics() [][2]string {
	return [][2]string{
		{"Work:", "run resume rewind compact demo"},
		{"Background runs:", "ps logs attach send stop"},
		{"Look:", "sessions context cost effects"},
		{"Permissions:", "policy trust"},
		{"Extend:", "skills agents memory tools mcp plugin"},
		{"Connect:", "acp a2a"},
		{"Set up:", "models config doctor completion help version"},
	}
}

// describe sets the form of all help, and the groups of the root command.
func describe(root *cobra.Command) {
	root.SetHelpTemplate(helpTemplate)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, topic := range topics() {
		root.AddGroup(&cobra.Group{ID: topic[0], Title: topic[0]})
		for _, cmd := range root.Commands() {
			if slices.Contains(strings.Fields(topic[1]), cmd.Name()) {
				cmd.GroupID = topic[0]
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

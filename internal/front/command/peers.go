package command

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/install/setup"
)

// peerVerb is a command of other agents, or a slash command, that inspan has under another name.
type peerVerb struct {
	use   string // our equivalent
	words string // words that may follow it in other agents
}

func peerVerbs() map[string]peerVerb {
	keys := "inspan setup, or inspan models login PROVIDER"
	update := "inspan version --check. To update, " + updates()
	return map[string]peerVerb{
		"exec":      {`inspan run "task", or inspan -p "task"`, ""},
		"chat":      {`inspan, or inspan "task"`, ""},
		"ask":       {`inspan -p "question"`, ""},
		"login":     {keys, "status"},
		"logout":    {"inspan models logout PROVIDER", ""},
		"auth":      {keys, "login logout status list ls"},
		"update":    {update, "check"},
		"upgrade":   {update, "check"},
		"init":      {`inspan setup for a model; inspan "write an AGENTS.md for this project" for its instructions`, ""},
		"review":    {`inspan -p "review the changes since main"`, ""},
		"history":   {"inspan sessions list, or inspan memory search WORDS", "list"},
		"list":      {"inspan sessions list", ""},
		"status":    {"inspan show for the last session, inspan ps for what runs, inspan doctor for the set-up", ""},
		"usage":     {"inspan show --cost", ""},
		"providers": {"inspan models", "list login logout"},
		"settings":  {"inspan config show", ""},
		"hooks":     {"/hooks in a session, or inspan run /hooks", "list"},
		"configure": {"inspan setup, or inspan config edit", ""},
		"undo":      {"inspan rewind --to last", ""},
		"new":       {"inspan", ""},
		"continue":  {"inspan --continue", ""},
		"start":     {"inspan", ""},
		"tail":      {"inspan logs --follow", ""},
		"commands":  {"inspan help, or /help in a session", ""},
		"quit":      {"/quit in a session", ""}, "exit": {"/quit in a session", ""},
		"extension": {"inspan plugin, inspan mcp or inspan skills", "list install"}, "extensions": {"inspan plugin, inspan mcp or inspan skills", "list install"},
	}
}

// updates says how this program is updated.
func updates() string {
	program, err := os.Executable()
	if err != nil {
		return "see docs/INSTALL.md"
	}
	return setup.HowToUpdate(program)
}

// meansPeer returns the error for arguments that are a command of other agents; nil means they are a task. Such a
// command is the verb alone, a verb with a quoted sentence, with a flag, or with a word that other agents accept
// there: "update the changelog" is not one.
func meansPeer(args []string) error {
	if len(args) == 0 {
		return nil
	}
	if len(args) == 1 && slices.Contains(topicNames(), args[0]) {
		return misused("%q is a topic of the help; use: inspan help %[1]s", args[0])
	}
	verb, ok := peerVerbs()[args[0]]
	form := len(args) == 1 || args[0] == "exec" || strings.HasPrefix(args[1], "-") ||
		len(args) == 2 && (strings.Contains(args[1], " ") || slices.Contains(strings.Fields(verb.words), args[1]))
	if !ok || !form {
		return nil
	}
	task := args
	if args[0] == "exec" {
		task = args[1:]
	}
	own := ""
	if len(task) > 0 && !slices.ContainsFunc(task, func(word string) bool { return strings.HasPrefix(word, "-") }) {
		own = fmt.Sprintf(". For a task of your own: inspan run %q", strings.Join(task, " "))
	}
	return misused("unknown command %q; use: %s%s", args[0], verb.use, own)
}

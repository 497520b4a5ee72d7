package skill

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// MaxCommands is how many command files of one folder are read.
const MaxCommands = 500

const maxCommandDepth = 8 // nested folders

// Command is a slash command: a person types /NAME ARGUMENTS, and the model gets its text.
type Command struct {
	Name        string // without the slash: "review", or "git:review" for one in a folder
	Description string // one line; the beginning of the text if the file has none
	Hint        string // its arguments, for people; may be empty
	Text        string // with placeholders
	Source      string // where it is from, for people
}

// Commands reads the commands of folders and their subfolders. Of several with the same name, the one in the first
// folder counts. Links are ignored. The warnings name the files that can't be used.
func Commands(folders []Folder) (commands []Command, warnings []string) {
	s := shelf{kind: "command"}
	m := markdown[Command]{
		files: "commands", most: MaxCommands, depth: maxCommandDepth, parse: ParseCommand,
		name: func(c Command) string { return c.Name },
	}
	return m.find(&s, folders), s.warnings
}

// ParseCommand reads the file at a path below a folder of commands, such as "git/review.md". It has the format of
// other agents: optional front matter with description and argument-hint, followed by the text, in which $ARGUMENTS
// stands for everything typed after the name and $1 to $9 for its words. Other front matter is ignored.
func ParseCommand(file, source string, data []byte) (Command, error) {
	name, ok := strings.CutSuffix(path.Clean(file), ".md")
	name = strings.ReplaceAll(name, "/", ":")
	if !ok || name == "" || strings.HasPrefix(name, ".") || !madeOf(name, "-_.:") {
		return Command{}, fmt.Errorf("%q is not the name of a command: letters, digits, - _ . and .md at the end", file)
	}
	head, body, _, err := read(data)
	if err != nil {
		return Command{}, err
	}
	if body == "" {
		return Command{}, errors.New("it has no text")
	}
	return Command{
		Name: name, Source: source, Text: body,
		Description: text.Clip(described(head["description"], body), mostDescription), Hint: line(head["argument-hint"]),
	}, nil
}

// madeOf reports whether a name only has letters, digits and the other given characters.
func madeOf(name, others string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+others, r)
	})
}

// Expand returns the text for the model, given what was typed after the command. If the text has no placeholder for
// arguments, they follow it. The model is to run shell commands in the text as calls, see [Command.Inline].
func (c Command) Expand(args string) string { return expand(c.Text, args, nil) }

// Inline lists the shell commands that the text has as !`command`. Other agents run them before they send the
// text, without anyone judging them. Here the model is told to run them as calls.
func (c Command) Inline() []string {
	var out []string
	for _, m := range inline.FindAllStringSubmatch(c.Text, -1) {
		out = append(out, m[1])
	}
	return out
}

// inline matches a shell command in a text: at its beginning, or after white space.
var inline = regexp.MustCompile("(?m)(?:^|\\s)!`([^`\n]+)`")

const notRun = "\n\nNote: the commands that are written as !`command` above were not run. Run them with bash first. " +
	"Their output belongs where they stand."

// expand is [Expand], with a note about commands that other agents would have run.
func expand(text, args string, vars map[string]string) string {
	said := Expand(text, args, vars)
	if inline.MatchString(text) {
		said += notRun
	}
	return said
}

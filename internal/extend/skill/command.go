package skill

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// MaxCommands is how many files of commands in one folder are read.
const MaxCommands = 500

const maxCommandDepth = 8 // folders in each other

// Command is a slash command: what a person types as /NAME ARGUMENTS, and what is said
// to the model for it.
type Command struct {
	Name        string // without the slash: "review", or "git:review" for one in a folder
	Description string // one line; of the first line of the text if the file gives none
	Hint        string // what arguments it takes, for people; may be empty
	Text        string // with placeholders
	Source      string // where it is from, for people
}

// Commands reads the commands of folders and of the folders in these. Of several with one
// name, that of the first folder counts. Links are left out. The warnings say what can't
// be used.
func Commands(folders []Folder) (commands []Command, warnings []string) {
	s := shelf{kind: "command"}
	m := markdown[Command]{
		files: "commands", most: MaxCommands, depth: maxCommandDepth, parse: ParseCommand,
		name: func(c Command) string { return c.Name },
	}
	return m.find(&s, folders), s.warnings
}

// ParseCommand reads the file at a path below a folder of commands, such as
// "git/review.md". The format is the one that other agents use: optional front matter with
// description and argument-hint, and below it the text, in which $ARGUMENTS stands for all
// that was typed behind the name and $1 to $9 for its words. What else the front matter
// holds is passed over.
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

// madeOf reports whether a name has nothing but letters, digits and the other characters.
func madeOf(name, others string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+others, r)
	})
}

// Expand is what is said for the command and what was typed behind it. Where the
// text has no place for arguments, they come below it. Shell commands of the text, as other agents
// have them, are for the model to run, see [Command.Inline].
func (c Command) Expand(args string) string { return expand(c.Text, args, nil) }

// Inline lists the shell commands that the text has as !`command`. Other agents run them before they
// send the text, which nobody would judge. Here the model is told to run them as calls.
func (c Command) Inline() []string {
	var out []string
	for _, m := range inline.FindAllStringSubmatch(c.Text, -1) {
		out = append(out, m[1])
	}
	return out
}

// inline matches a shell command in a text: at its beginning, or behind white space.
var inline = regexp.MustCompile("(?m)(?:^|\\s)!`([^`\n]+)`")

const notRun = "\n\nNote: the commands that are written as !`command` above were not run. Run them with bash first. " +
	"Their output belongs where they stand."

// expand is [Expand], with a note on commands that other agents would have run.
func expand(text, args string, vars map[string]string) string {
	said := Expand(text, args, vars)
	if inline.MatchString(text) {
		said += notRun
	}
	return said
}

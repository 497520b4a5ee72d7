// Package command reads markdown files that are slash commands: what a person
// types as /NAME ARGUMENTS, and what is said to the model for it.
//
// The format is the one that other agents use: optional front matter between
// lines of ---, with description and argument-hint, and below it the text, in
// which $ARGUMENTS stands for all that was typed behind the name and $1 to $9
// for its words. Nothing in a file is run.
package command

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/inspan/inspan/internal/frontmatter"
)

// MaxSize is how long a file may be, in bytes.
const MaxSize = 100 << 10

// Command is one slash command.
type Command struct {
	Name        string // without the slash: "review", or "git:review" for one in a folder
	Description string // one line; of the first line of the text if the file gives none
	Hint        string // what arguments it takes, for people; may be empty
	Text        string // with placeholders
	Source      string // where it is from, for people
}

// Parse reads the file at a path below a folder of commands, such as
// "git/review.md". Of the front matter only what is needed is read.
func Parse(file, source string, data []byte) (Command, error) {
	name, ok := strings.CutSuffix(path.Clean(file), ".md")
	name = strings.ReplaceAll(name, "/", ":")
	switch {
	case !ok || name == "" || strings.ContainsFunc(name, notOfName) || strings.HasPrefix(name, "."):
		return Command{}, fmt.Errorf("%q is no name of a command: letters, digits, - _ . and .md at the end", file)
	case len(data) > MaxSize:
		return Command{}, fmt.Errorf("it has %d bytes, more than %d", len(data), MaxSize)
	}
	matter, text, err := frontmatter.Split(data)
	if err != nil {
		return Command{}, err
	}
	var head map[string]any
	_ = frontmatter.Decode(matter, &head) // what could be read is enough
	c := Command{
		Name: name, Source: source, Text: strings.TrimSpace(text),
		Description: frontmatter.Line(head["description"]), Hint: frontmatter.Line(head["argument-hint"]),
	}
	if c.Text == "" {
		return Command{}, errors.New("it has no text")
	}
	if c.Description == "" {
		first, _, _ := strings.Cut(c.Text, "\n")
		c.Description = strings.TrimSpace(strings.TrimLeft(first, "# "))
	}
	return c, nil
}

func notOfName(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:", r)
}

// Expand is what is said for the command and what was typed behind it. Where the
// text has no place for arguments, they come below it.
func (c Command) Expand(args string) string { return frontmatter.Expand(c.Text, args, nil) }

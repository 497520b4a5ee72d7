// Package command reads markdown files that are slash commands: what a person
// types as /NAME ARGUMENTS, and what is said to the model for it.
//
// The format is the one that other agents use: optional front matter between
// lines of ---, with description and argument-hint, and below it the text, in
// which $ARGUMENTS stands for all that was typed behind the name and $1 to $9
// for its words. Nothing in a file is run.
package command

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"
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
	case !ok || name == "" || strings.ContainsFunc(name, odd) || strings.HasPrefix(name, "."):
		return Command{}, fmt.Errorf("%q is no name of a command: letters, digits, - _ . and .md at the end", file)
	case len(data) > MaxSize:
		return Command{}, fmt.Errorf("it has %d bytes, more than %d", len(data), MaxSize)
	}
	head, text, err := split(data)
	if err != nil {
		return Command{}, err
	}
	c := Command{Name: name, Source: source, Text: strings.TrimSpace(text)}
	c.Description, c.Hint = head.line(head.Description), head.line(head.Hint)
	if c.Text == "" {
		return Command{}, errors.New("it has no text")
	}
	if c.Description == "" {
		first, _, _ := strings.Cut(c.Text, "\n")
		c.Description = strings.TrimSpace(strings.TrimLeft(first, "# "))
	}
	return c, nil
}

func odd(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:", r)
}

// front is what we read of the front matter.
type front struct {
	Description any `yaml:"description"`
	Hint        any `yaml:"argument-hint"` // often written as [a] [b], which is a list in YAML
}

func (front) line(v any) string {
	if v == nil {
		return ""
	}
	return strings.Join(strings.Fields(fmt.Sprint(v)), " ")
}

// split parts the front matter from the text.
func split(data []byte) (head front, text string, err error) {
	data = bytes.ReplaceAll(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	rest, ok := bytes.CutPrefix(data, []byte("---\n"))
	if !ok {
		return head, string(data), nil
	}
	if body, empty := bytes.CutPrefix(rest, []byte("---\n")); empty {
		return head, string(body), nil
	}
	matter, body, closed := bytes.Cut(rest, []byte("\n---\n"))
	if !closed {
		if matter, closed = bytes.CutSuffix(rest, []byte("\n---")); !closed {
			return head, "", errors.New("its front matter has no end")
		}
		body = nil
	}
	if yaml.Unmarshal(matter, &head) != nil {
		head = lines(matter)
	}
	return head, string(body), nil
}

// lines reads front matter that is no YAML, as a hint like "[file] [depth]" is
// none: each line a key and its text.
func lines(matter []byte) (head front) {
	for line := range bytes.Lines(matter) {
		key, value, _ := strings.Cut(string(line), ":")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		switch strings.TrimSpace(key) {
		case "description":
			head.Description = value
		case "argument-hint":
			head.Hint = value
		}
	}
	return head
}

// Expand is what is said for the command and what was typed behind it. Where the
// text has no place for arguments, they come below it.
func (c Command) Expand(args string) string {
	args = strings.TrimSpace(args)
	words, used := Words(args), false
	var out strings.Builder
	for rest := c.Text; rest != ""; {
		before, after, found := strings.Cut(rest, "$")
		out.WriteString(before)
		if !found {
			break
		}
		switch tail, all := strings.CutPrefix(after, "ARGUMENTS"); {
		case all:
			out.WriteString(args)
			rest, used = tail, true
		case after != "" && after[0] >= '1' && after[0] <= '9' && (len(after) == 1 || after[1] < '0' || after[1] > '9'):
			if n := int(after[0] - '1'); n < len(words) {
				out.WriteString(words[n])
			}
			rest, used = after[1:], true
		default:
			out.WriteByte('$')
			rest = after
		}
	}
	if !used && args != "" {
		fmt.Fprintf(&out, "\n\n%s", args)
	}
	return out.String()
}

// Words splits what was typed at blanks, but for those in quotes. A quote that is
// not closed is a character like any other.
func Words(args string) []string {
	var out []string
	for {
		args = strings.TrimLeft(args, " \t\n")
		if args == "" {
			return out
		}
		if q := args[:1]; q == `"` || q == "'" {
			if word, rest, closed := strings.Cut(args[1:], q); closed && (rest == "" || strings.ContainsAny(rest[:1], " \t\n")) {
				out, args = append(out, word), rest
				continue
			}
		}
		end := strings.IndexAny(args, " \t\n")
		if end < 0 {
			end = len(args)
		}
		out, args = append(out, args[:end]), args[end:]
	}
}

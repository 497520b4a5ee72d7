package words

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// OwnShell is the source of messages about commands that the person ran.
const OwnShell = "your shell"

const ownIntro = "The user ran a command in their own shell, outside of the sandbox:\n"

// Ran returns the text for the model about a command that the person ran: its output, with dropped bytes left out
// between head and tail, and how it ended.
func Ran(command, head, tail string, dropped, code int, stopped bool) string {
	var b strings.Builder
	b.WriteString(ownIntro + "$ " + command + "\n" + head)
	if dropped > 0 {
		fmt.Fprintf(&b, "\n[%s left out]\n%s", text.Count(dropped, "byte"), tail)
	}
	out := strings.TrimRight(b.String(), "\n")
	switch {
	case stopped:
		return out + "\n[stopped by the user]"
	case code != 0:
		return out + fmt.Sprintf("\n[exit %d]", code)
	}
	return out
}

// OwnCommand returns the command and its output from the result of Ran, without the introduction for the model. It
// is text by others.
func OwnCommand(told string) string { return strings.TrimPrefix(told, ownIntro) }

// NamedFiles is the source of the contents of files that a person's message names.
const NamedFiles = "@"

const namedIntro = "The files that the user names with @, as read_file shows them now: "

// Named returns the text for the model about files that a message names.
func Named(names []string, content string) string {
	return namedIntro + strings.Join(names, ", ") + "\n" + content
}

// Names returns the names of the files from the result of Named, for people. They are text by others.
func Names(told string) string {
	names, _, _ := strings.Cut(strings.TrimPrefix(told, namedIntro), "\n")
	return names
}

// File returns a file for Named. The middle of a file longer than most bytes is left out.
func File(name, content string, most int) string {
	head, tail, dropped := text.CutMiddle(content, most)
	if dropped > 0 {
		head += fmt.Sprintf("\n[%s left out; read_file shows them]\n", text.Count(dropped, "byte"))
	}
	return "\n" + name + ":\n" + strings.TrimRight(head+tail, "\n") + "\n"
}

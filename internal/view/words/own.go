package words

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/tool"
)

// OwnShell is who tells the session of a command that the person ran.
const OwnShell = "your shell"

const ownIntro = "The user ran a command in their own shell, outside of the sandbox:\n"

// Ran is what the model is told of a command that the person ran: what it printed, of which
// dropped bytes are left out between head and tail, and how it ended.
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

// OwnCommand is what Ran says without the words that are for the model: the command and what it
// printed. It is text of others.
func OwnCommand(told string) string { return strings.TrimPrefix(told, ownIntro) }

// NamedFiles is who tells the session of the files that a message of the person names.
const NamedFiles = "@"

const namedIntro = "The files that the user names with @, as read_file shows them now: "

// Named is what the model is told of files that a message names.
func Named(names []string, content string) string {
	return namedIntro + strings.Join(names, ", ") + "\n" + content
}

// Names are the files of what Named says, for people. They are text of others.
func Names(told string) string {
	names, _, _ := strings.Cut(strings.TrimPrefix(told, namedIntro), "\n")
	return names
}

// File is a file in what Named says. Of one that is longer than so many bytes the middle is left out.
func File(name, content string, most int) string {
	head, tail, dropped := tool.Cut(content, most)
	if dropped > 0 {
		head += fmt.Sprintf("\n[%s left out; read_file shows them]\n", text.Count(dropped, "byte"))
	}
	return "\n" + name + ":\n" + strings.TrimRight(head+tail, "\n") + "\n"
}

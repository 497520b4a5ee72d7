package words

import (
	"fmt"
	"strings"

	"github.com/inspan/inspan/internal/text"
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

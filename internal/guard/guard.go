// Package guard holds checks that stand beside the permission engine: a second
// model that looks at risky calls before they run ([Reviewer]), marks on text
// that nobody vouches for ([Marker]), and patterns that a person has set
// ([Checks]).
//
// Nothing here promises to stop an injection. What a model reads can always
// talk it into something, and the model of a reviewer too; whoever writes the
// text may know all that is below. What holds are the walls: the permission
// engine, the sandbox and the guard of the network. This package only makes
// success rarer and attempts visible. So nothing here can ever allow what the
// walls deny.
package guard

import (
	"strings"

	"github.com/inspan/inspan/internal/text"
)

// plainLine makes one short line of text that others wrote, so that it can be
// quoted in words of ours: nothing hidden, no line ends, no brackets.
func plainLine(s string, limit int) string {
	s, _ = reveal(strings.ToValidUTF8(s, "\ufffd"))
	return text.Short(strings.NewReplacer("[", "(", "]", ")", "<", "(", ">", ")", `"`, "'").Replace(s), limit)
}

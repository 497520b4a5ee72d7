// Package guard holds checks beside the permission engine: a second model that
// looks at risky calls before they run ([Reviewer]), marks on untrusted text
// ([Marker]), and a person's own patterns ([Checks]).
//
// Nothing here promises to stop an injection. Text can always persuade a model,
// including the reviewer's, and its author may know this code. The permission
// engine, the sandbox and the network guard give the real protection. This package
// only makes success rarer and attempts visible, so nothing here can allow what
// they deny.
package guard

import (
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// plainLine makes one short line of text that others wrote, so that it can be
// quoted in words of ours: nothing hidden, no line ends, no brackets.
func plainLine(s string, limit int) string {
	s, _ = reveal(strings.ToValidUTF8(s, "\ufffd"))
	return text.Short(strings.NewReplacer("[", "(", "]", ")", "<", "(", ">", ")", `"`, "'").Replace(s), limit)
}

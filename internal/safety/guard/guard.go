// Package guard provides checks in addition to the permission engine: a second model that reviews risky calls
// before they run ([Reviewer]), marks on untrusted text ([Marker]), and a person's own patterns ([Checks]).
//
// Nothing here promises to stop an injection. Text can always persuade a model, including the reviewer's, and
// its author may know this code. The permission engine, the sandbox and the network guard give the real
// protection. This package only makes success rarer and attempts visible, so nothing here can allow what they
// deny.
package guard

import (
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// plainLine converts untrusted text to one short line that can be quoted in our own messages: no hidden
// characters, line ends or brackets.
func plainLine(s string, limit int) string {
	s, _ = reveal(strings.ToValidUTF8(s, "\ufffd"))
	return text.Short(strings.NewReplacer("[", "(", "]", ")", "<", "(", ">", ")", `"`, "'").Replace(s), limit)
}

package hold

import (
	"errors"
	"fmt"
	"strings"

	"github.com/inspan/inspan/tool"
)

// Key returns an idempotency key: the same for every try of a call, and for no other call of any session. It is
// made of the session, the number of the event that requested the call, and the call's id within that event.
// The key reveals none of them.
func Key(session string, event uint64, id string) string {
	return tool.Digest(fmt.Appendf(nil, "%s\x00%d\x00%s", session, event, id))
}

// Exported formats variables as in Vars of [tool.Command], one per line, for people and judges: line ends in values
// become \n.
func Exported(vars []string) string {
	lines := make([]string, len(vars))
	for i, kv := range vars {
		lines[i] = strings.NewReplacer("\\", `\\`, "\n", `\n`).Replace(kv)
	}
	return strings.Join(lines, "\n")
}

// ErrDiverged says that a tool that was run again left out a call of its first run. The tool's call fails with
// it.
var ErrDiverged = errors.New("the tool did not repeat itself when it was run again")

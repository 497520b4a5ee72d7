package openai

import (
	"cmp"
	"crypto/sha256"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// aliases maps the names of tools and the ids of calls to forms that a server accepts, for one request.
type aliases struct {
	names, ids *wire.Aliases
}

// newAliases returns the aliases of a request; ids is the rule for the ids of calls.
func newAliases(req llm.Request, ids func(string) string) *aliases {
	return &aliases{names: wire.ToolNames(req, wire.ToolName), ids: wire.NewAliases(ids)}
}

// name returns the name of our tool on the wire.
func (a *aliases) name(ours string) string { return a.names.Theirs(ours) }

// ours returns the tool with this name on the wire.
func (a *aliases) ours(name string) string { return a.names.Ours(name) }

// id returns the id of our call on the wire.
func (a *aliases) id(ours string) string { return a.ids.Theirs(ours) }

// call returns the id of a call on the wire: the server's own id, if it can be used.
func (a *aliases) call(c llm.Call) string { return a.ids.Prefer(c.ID, cmp.Or(c.Wire, c.ID)) }

func idUpTo40(id string) string { return wire.ShortID(id, 40) }
func idUpTo64(id string) string { return wire.ShortID(id, 64) }

// nineLetters is Mistral's rule.
func nineLetters(id string) string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if len(id) == 9 && strings.IndexFunc(id, func(r rune) bool { return !strings.ContainsRune(alphabet, r) }) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	short := make([]byte, 9)
	for i := range short {
		short[i] = alphabet[int(sum[i])%len(alphabet)]
	}
	return string(short)
}

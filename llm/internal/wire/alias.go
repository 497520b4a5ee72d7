package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// Aliases pair our strings, such as the names of tools, with strings that follow a vendor's rule, for one request.
// No two are the same, and each depends only on itself and those before it, so that a longer conversation changes
// none. Not safe for concurrent use.
type Aliases struct {
	rule   func(string) string
	theirs map[string]string // by ours
	ours   map[string]string // by theirs
}

// NewAliases returns aliases by a rule, which returns its argument if that is valid, or else a valid replacement.
func NewAliases(rule func(string) string) *Aliases {
	return &Aliases{rule: rule, theirs: map[string]string{}, ours: map[string]string{}}
}

// ToolNames returns the aliases of a request's tools.
func ToolNames(req llm.Request, rule func(string) string) *Aliases {
	a := NewAliases(rule)
	for _, t := range req.Tools {
		a.Theirs(t.Name)
	}
	return a
}

// Theirs returns the alias of our string.
func (a *Aliases) Theirs(ours string) string {
	if known, ok := a.theirs[ours]; ok {
		return known
	}
	theirs := a.rule(ours)
	for n := 2; a.taken(theirs); n++ {
		// The part after the NUL is never valid, so that the rule returns a replacement.
		theirs = a.rule(ours + "\x00" + strconv.Itoa(n))
	}
	a.theirs[ours], a.ours[theirs] = theirs, ours
	return theirs
}

// Prefer returns the alias of our string; it is other, as long as nothing else has that.
func (a *Aliases) Prefer(ours, other string) string {
	theirs := a.rule(other)
	if _, known := a.theirs[ours]; known || a.taken(theirs) {
		return a.Theirs(ours)
	}
	a.theirs[ours], a.ours[theirs] = theirs, ours
	return theirs
}

func (a *Aliases) taken(theirs string) bool {
	_, taken := a.ours[theirs]
	return taken
}

// Ours returns our string for an alias. A name that is not an alias is the model's invention and is returned
// unchanged.
func (a *Aliases) Ours(theirs string) string {
	if ours, ok := a.ours[theirs]; ok {
		return ours
	}
	return theirs
}

// maxToolName is the longest name of a tool that every vendor accepts, in bytes.
const maxToolName = 64

// ToolName is the rule of OpenAI and Anthropic for names of tools: up to 64 letters, digits, "_" and "-".
func ToolName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if foreign(r) {
			return '_'
		}
		return r
	}, name)
	return Named(name, clean)
}

// Named returns name if it equals clean, its valid form, and is not too long. Otherwise it returns the valid form,
// which the model can read, and a hash of name.
func Named(name, clean string) string {
	if clean == name && name != "" && len(name) <= maxToolName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return clean[:min(len(clean), maxToolName-9)] + "_" + hex.EncodeToString(sum[:4])
}

package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/llm"
)

// A Turn is a sequence of messages of one role, in the form for the wire: parts that cannot be sent are gone and
// results come first.
type Turn struct {
	Role    llm.Role
	Results []llm.Result
	Parts   []llm.Part // all others, in order
}

// Turns joins adjacent messages of the same role. Text without a visible character is dropped, because some vendors
// refuse it, and so is reasoning that another route wrote or that is not needed back. Empty turns are dropped.
func Turns(messages []llm.Message, route string) []Turn {
	turns := make([]Turn, 0, len(messages))
	results, parts := room(messages) // of all turns, each after the one before it
	for _, m := range messages {
		var t *Turn
		if n := len(turns); n > 0 && turns[n-1].Role == m.Role {
			t = &turns[n-1]
		}
		for _, p := range m.Parts {
			if !sendable(p, route) {
				continue
			}
			if t == nil {
				turns = append(turns, Turn{Role: m.Role})
				t = &turns[len(turns)-1]
			}
			if r, ok := p.(llm.Result); ok {
				results = append(results, r)
				t.Results = last(results, len(t.Results)+1)
			} else {
				parts = append(parts, p)
				t.Parts = last(parts, len(t.Parts)+1)
			}
		}
	}
	return turns
}

// room returns lists with capacity for all parts of the messages, so that no turn allocates its own.
func room(messages []llm.Message) ([]llm.Result, []llm.Part) {
	results, parts := 0, 0
	for _, m := range messages {
		for _, p := range m.Parts {
			if _, ok := p.(llm.Result); ok {
				results++
			} else {
				parts++
			}
		}
	}
	return make([]llm.Result, 0, results), make([]llm.Part, 0, parts)
}

// last returns the last n of a list. Appending to them does not overwrite others.
func last[T any](list []T, n int) []T { return list[len(list)-n : len(list) : len(list)] }

func sendable(p llm.Part, route string) bool {
	switch v := p.(type) {
	case llm.Text:
		return Visible(v.Text)
	case llm.Reasoning:
		return v.Route == route && len(v.Opaque) > 0
	case llm.Unknown:
		return false
	}
	return true
}

// Visible reports whether s holds more than white space.
func Visible(s string) bool { return strings.TrimSpace(s) != "" }

// AllVisible returns the blocks that hold more than white space.
func AllVisible(blocks []string) []string {
	return slices.DeleteFunc(slices.Clone(blocks), func(s string) bool { return !Visible(s) })
}

// ShortID returns id if it has at most limit bytes, all letters, digits, "_" or "-", or else a stable replacement
// of that form. limit is at least 20.
func ShortID(id string, limit int) string {
	if id != "" && len(id) <= limit && strings.IndexFunc(id, foreign) < 0 {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:])[:min(limit-5, 32)]
}

func foreign(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// CallIDs makes the ids of calls unique in a conversation: some servers restart their count in every reply, or send
// none.
type CallIDs struct {
	History []llm.Message

	taken map[string]bool // nil until the first call
}

// Of returns an id if it is not in use, or else one made from its place in the conversation, that of the n-th call of
// the reply.
func (c *CallIDs) Of(id string, n int) string {
	if c.taken == nil {
		c.taken = map[string]bool{}
		for _, m := range c.History {
			for _, call := range m.Parts.Calls() {
				c.taken[call.ID] = true
			}
		}
	}
	for ; id == "" || c.taken[id]; n++ {
		id = fmt.Sprintf("call_%d_%d", len(c.History), n)
	}
	c.taken[id] = true
	return id
}

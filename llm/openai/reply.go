package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// cut returns the error for a stream that ended too early.
func cut(err error) *llm.Error {
	var e *llm.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, io.EOF):
		return &llm.Error{Kind: llm.KindStreamCut, Message: "the stream ended before the reply was complete"}
	}
	return &llm.Error{Kind: llm.KindStreamCut, Err: err}
}

func brokenEvent(err error) *llm.Error {
	return &llm.Error{Kind: llm.KindStreamCut, Message: "broken event", Err: err}
}

// ids makes the ids of calls unique in a conversation: some servers restart their count in every reply, or send
// none.
type ids struct {
	history []llm.Message
	taken   map[string]bool // nil until the first call
	calls   int
}

func newIDs(history []llm.Message) *ids { return &ids{history: history} }

// call returns a finished call.
func (s *ids) call(id, name, args string, stop llm.Stop) llm.Call {
	if s.taken == nil {
		s.taken = map[string]bool{}
		for _, m := range s.history {
			for _, c := range m.Parts.Calls() {
				s.taken[c.ID] = true
			}
		}
	}
	for n := s.calls; id == "" || s.taken[id]; n++ {
		id = fmt.Sprintf("call_%d_%d", len(s.history), n)
	}
	s.taken[id] = true
	s.calls++
	object, invalid := wire.Args(args, stop)
	return llm.Call{ID: id, Name: name, Args: object, Invalid: invalid}
}

// split separates the cached tokens from the size of the prompt.
func split(prompt, read, write, output, reasoning int) llm.Usage {
	read = min(read, prompt)
	write = min(write, prompt-read)
	return llm.Usage{Input: prompt - read - write, CacheRead: read, CacheWrite: write, Output: output, Reasoning: reasoning}
}

// estimated returns the usage of an exchange whose server stated none: about four bytes per token.
func estimated(request, reply int) llm.Usage {
	return llm.Usage{Input: (request + 3) / 4, Output: (reply + 3) / 4, Estimated: true}
}

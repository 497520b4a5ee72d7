package openai

import (
	"encoding/json"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func brokenEvent(err error) *llm.Error {
	return &llm.Error{Kind: llm.KindStreamCut, Message: "broken event", Err: err}
}

// ids numbers the calls of a reply.
type ids struct {
	wire.CallIDs
	calls int
}

// call returns a finished call.
func (s *ids) call(id, name, args string, stop llm.Stop) llm.Call {
	id = s.Of(id, s.calls)
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

package subagent

import (
	"context"
	"iter"

	"github.com/inspan/inspan/llm"
)

// held is a model that is asked only while the limits of the tree are not reached.
// Requests under way are not stopped, so that a tree can spend at most one of each
// session more.
type held struct {
	llm.Model
	team *Team
}

// Stream implements [llm.Model].
func (h *held) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	if why := h.team.exhausted(); why != "" {
		return func(yield func(llm.Chunk, error) bool) {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindBudget, Message: why})
		}
	}
	return h.Model.Stream(ctx, req)
}

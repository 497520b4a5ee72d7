package request

import (
	"context"
	"iter"

	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/llm"
)

// Steady returns a model whose panics become failed replies.
func Steady(m llm.Model) llm.Model { return steady{m} }

type steady struct{ llm.Model }

// Stream implements [llm.Model]. It ignores a panic after the reply, or after the consumer has stopped
// iterating.
func (m steady) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		consumer := fault.Consumer[llm.Chunk]{Yield: yield}
		panicked := func() (err error) {
			defer fault.Recover("the model", &consumer.Running, &err)
			m.Model.Stream(ctx, req)(consumer.Show)
			return nil
		}()
		if panicked != nil {
			consumer.Show(llm.Chunk{}, &llm.Error{Kind: llm.KindPanic, Err: panicked})
		}
	}
}

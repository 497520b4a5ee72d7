package request

import (
	"context"
	"iter"

	"github.com/inspan/inspan/internal/kernel/fault"
	"github.com/inspan/inspan/llm"
)

// Steady returns the model with panics turned into failed replies.
func Steady(m llm.Model) llm.Model { return steady{m} }

type steady struct{ llm.Model }

// Stream implements [llm.Model]. A panic after the reply, or once the consumer has gone, is ignored.
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

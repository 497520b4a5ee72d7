package openai

import (
	"context"
	"iter"

	"github.com/inspan/inspan/llm"
)

// Responses is one model behind OpenAI's Responses API, at BaseURL "/responses". Its fields are those of [Model].
// Newer models reason together with tools only here, and keep their thoughts from one request to the next.
//
// Nothing is stored with the vendor: each request holds the whole conversation, with encrypted thoughts.
//
// Wire reference: https://platform.openai.com/docs/api-reference/responses and the guides on reasoning and
// conversation state.
type Responses Model

var _ llm.Model = (*Responses)(nil)

// Info implements [llm.Model].
func (m *Responses) Info() llm.Info { return (*Model)(m).Info() }

// Stream implements [llm.Model].
func (m *Responses) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		s, err := (*Model)(m).server("/responses", req)
		if err != nil {
			yield(llm.Chunk{}, err)
			return
		}
		a := newAliases(req, idUpTo64)
		s.body = encodeResponses(s.info, s.dialect, a, req)
		s.exchange(ctx, newResponseDecoder(s.info.Route(), req, a), yield)
	}
}

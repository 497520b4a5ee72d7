// Package anthropic speaks the Anthropic Messages API over plain HTTP: to the vendor itself, to Amazon Bedrock and
// to Vertex AI.
//
// Wire reference: https://platform.claude.com/docs/en/api/messages and its pages on streaming, thinking, prompt
// caching and errors. platform.go has the differences of the clouds.
//
// Don't use it for servers that only imitate OpenAI's wire (package openai), nor for Claude after such a gateway.
package anthropic

import (
	"context"
	"iter"
	"strings"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Model is one Claude, or another model behind the Messages API. It never retries.
//
// Dialect is "anthropic", "bedrock" or "vertex"; if empty, the host of BaseURL decides. A model of another dialect
// answers every request with KindInvalid.
//
//   - anthropic: requests go to BaseURL + "/v1/messages".
//   - bedrock: BaseURL is "https://bedrock-runtime.REGION.amazonaws.com", and HTTP
//     signs the requests (cloud.AWS), or Key returns a Bedrock API key.
//   - vertex: BaseURL is ".../v1/projects/PROJECT/locations/LOCATION/publishers/anthropic",
//     and Key returns an access token (cloud.Google).
//
// Without a Provider the dialect is the provider's name, so that no platform receives the thoughts of another.
type Model llm.Endpoint

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	p, _ := m.platform() // Stream returns the error
	known := catalog.Find("anthropic", m.ID)
	if p == vertex && !strings.Contains(m.BaseURL, "/locations/global/") {
		known.Prices = known.Prices.In("region")
	}
	return llm.Endpoint(*m).Describe(string(p), known)
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		info, names := m.Info(), wire.ToolNames(req, wire.ToolName)
		post, at, err := m.post(info, names, req)
		if err != nil {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Provider: info.Provider, Message: err.Error()})
			return
		}
		answer := &answered{next: post.HTTP}
		post.HTTP = answer
		post.Exchange(ctx, answer.classify, yield, func(r *wire.Reply, emit func(llm.Chunk) bool) (*llm.Reply, error) {
			return newDecoder(info.Route(), names).run(source(at, r), emit)
		})
	}
}

// source returns a function that reads the data of a stream's events, one by one, and then io.EOF.
func source(p platform, reply *wire.Reply) func() ([]byte, error) {
	switch {
	case p == bedrock:
		return newFrames(reply).next
	case reply.Whole():
		return wire.Whole(reply, eventsOf)
	}
	return serverSent(reply)
}

// Package gemini speaks Google's generateContent wire over plain HTTP: the Gemini API and, with an access token,
// Vertex AI.
//
// Wire reference: https://ai.google.dev/api/generate-content and its pages on function calling, thinking, thought
// signatures and rate limits.
//
// Don't use it for Gemini behind a gateway with OpenAI's wire; that is package openai.
package gemini

import (
	"cmp"
	"context"
	"iter"
	"strings"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// Model is one model after streamGenerateContent. It never retries.
//
// Requests go to BaseURL + "models/ID:streamGenerateContent"; a BaseURL without a path gets the Gemini API's
// "/v1beta". For Vertex AI it is ".../v1/projects/PROJECT/locations/LOCATION/publishers/google", with Bearer set
// and an access token as Key.
type Model llm.Endpoint

var _ llm.Model = (*Model)(nil)

// Info implements [llm.Model].
func (m *Model) Info() llm.Info {
	return llm.Endpoint(*m).Describe("gemini", catalog.Find("gemini", m.ID))
}

func (m *Model) url() string {
	base := strings.TrimSuffix(m.BaseURL, "/")
	if base == "" {
		base = "https://generativelanguage.googleapis.com"
	}
	if _, rest, _ := strings.Cut(base, "://"); !strings.Contains(rest, "/") {
		base += "/v1beta"
	}
	return base + "/models/" + strings.TrimPrefix(m.ID, "models/") + ":streamGenerateContent?alt=sse"
}

// Stream implements [llm.Model].
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		info, names := m.Info(), wire.ToolNames(req, toolName)
		post := m.post(info.Provider, encode(info, names, req))
		post.MaxOutput = cmp.Or(req.MaxOutput, info.MaxOutput)
		post.Exchange(ctx, classify, yield, func(r *wire.Reply, emit func(llm.Chunk) bool) (*llm.Reply, error) {
			d := newDecoder(info.Route(), names, req.Messages)
			d.usage.Tier = r.Header.Get("X-Gemini-Service-Tier")
			if r.Whole() {
				return d.run(wire.Whole(r, chunksOf), emit)
			}
			return d.run(serverSent(r), emit)
		})
	}
}

func (m *Model) post(provider string, body []byte) wire.Post {
	header := "X-Goog-Api-Key"
	if m.Bearer {
		header = "Authorization"
	}
	return wire.Post{
		Provider: provider, URL: m.url(), Extra: m.Header, KeyHeader: header, Key: m.Key,
		Body: body, HTTP: m.HTTP, Deadlines: m.Deadlines,
	}
}

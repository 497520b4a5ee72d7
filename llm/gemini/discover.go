package gemini

import (
	"context"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
)

// Discover returns the chat models that the key may use, with the properties known to the vendor and the catalog.
// It is the cheapest request that validates a key. Vertex AI has no such list; for it Discover returns an error.
//
// ID, Window, MaxOutput, Prices and Images of at are ignored. Deadlines.Total bounds the whole call; 0 means 30 s.
// The error is an [*llm.Error].
func Discover(ctx context.Context, at llm.Endpoint) ([]llm.Info, error) {
	at.ID = ""
	m := (*Model)(&at)
	provider := m.Info().Provider
	post := m.post(provider, nil)
	if strings.Contains(at.BaseURL, "aiplatform.") {
		return nil, &llm.Error{Kind: llm.KindInvalid, Provider: provider, Message: "Vertex AI has no list of models"}
	}
	base, _, _ := strings.Cut(post.URL, "/models/")
	post.URL = base + "/models?pageSize=1000"
	var list struct {
		Models []struct {
			Name    string   `json:"name"`
			Window  int      `json:"inputTokenLimit"`
			Output  int      `json:"outputTokenLimit"`
			Methods []string `json:"supportedGenerationMethods"`
		} `json:"models"`
	}
	if err := post.List(ctx, at, classify, &list); err != nil {
		return nil, err
	}
	var out []llm.Info
	for _, one := range list.Models {
		if one.Methods != nil && !slices.Contains(one.Methods, "generateContent") {
			continue
		}
		id := strings.TrimPrefix(one.Name, "models/")
		info := catalog.Find("gemini", id)
		info.Provider, info.Model, info.Window, info.MaxOutput = provider, id, one.Window, one.Output
		out = append(out, info)
	}
	return out, nil
}

package anthropic

import (
	"context"
	"strings"

	"github.com/inspan/inspan/internal/models/catalog"
	"github.com/inspan/inspan/llm"
)

// Discover returns the models that the key may use, newest first, with the properties known to the vendor and the
// catalog. It is the cheapest request that validates a key. The clouds have no such list; for them it returns an
// error.
//
// ID, Window, MaxOutput, Prices and Images of at are ignored. Deadlines.Total bounds the whole call; 0 means 30 s.
// The error is an [*llm.Error].
func Discover(ctx context.Context, at llm.Endpoint) ([]llm.Info, error) {
	m := (*Model)(&at)
	provider := m.Info().Provider
	post, p, err := m.exchange(m.Info())
	if err == nil && p != direct {
		return nil, &llm.Error{Kind: llm.KindInvalid, Provider: provider, Message: string(p) + " has no list of models"}
	}
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindInvalid, Provider: provider, Message: err.Error(), Err: err}
	}
	post.URL = strings.TrimSuffix(post.URL, "/messages") + "/models?limit=1000"
	var list struct {
		Data []struct {
			ID     string `json:"id"`
			Window int    `json:"max_input_tokens"`
			Output int    `json:"max_tokens"`
		} `json:"data"`
	}
	if err := post.List(ctx, at, classify, &list); err != nil {
		return nil, err
	}
	var out []llm.Info
	for _, one := range list.Data {
		info := catalog.Find("anthropic", one.ID)
		info.Provider, info.Model = provider, one.ID
		if one.Window > 0 {
			info.Window = one.Window
		}
		if one.Output > 0 {
			info.MaxOutput = one.Output
		}
		out = append(out, info)
	}
	return out, nil
}

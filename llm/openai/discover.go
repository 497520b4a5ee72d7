package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

const (
	maxList     = 16 << 20
	listTimeout = 30 * time.Second
)

// Discover returns the chat models that a server offers, in its order, with the properties that it states. Window
// is the actual one if the server states it: the one that it was started with, not the model's maximum. For a model
// that is not loaded yet it may be the maximum. Model ids are valid for [llm.Endpoint.ID]. If a server without a
// dialect states no window, Discover asks as [Identify] does which server it is.
//
// ID, Window, MaxOutput, Prices and Images of at are ignored, except with Hugging Face's router: if ID is
// "model:provider", the list begins with that pair. Deadlines.Total bounds the whole call; 0 means 30 s. The error
// is an [*llm.Error].
func Discover(ctx context.Context, at llm.Endpoint) ([]llm.Info, error) {
	l, err := newLister(at)
	if err != nil {
		return nil, &llm.Error{Kind: llm.KindInvalid, Provider: l.provider, Message: err.Error(), Err: err}
	}
	ctx, cancel := wire.Within(ctx, at, l.provider, listTimeout)
	defer cancel()
	if l.list != nil {
		return l.list(l, ctx)
	}
	if l.Name != "" {
		return l.models(ctx)
	}
	list, err := l.llamacpp(ctx) // whose common list states the window that a model was trained for
	if slices.ContainsFunc(list, func(m llm.Info) bool { return m.Window == 0 }) {
		if d, ok := l.identify(ctx); ok && d.list != nil {
			return d.list(l, ctx)
		}
	}
	return list, err
}

// Identify asks a server which of the known ones it is: those that people run themselves have addresses of their
// own. The zero Dialect means that it is none of them, or does not answer.
func Identify(ctx context.Context, at llm.Endpoint) Dialect {
	l, err := newLister(at)
	if err != nil {
		return Dialect{}
	}
	ctx, cancel := wire.Within(ctx, at, l.provider, listTimeout)
	defer cancel()
	d, _ := l.identify(ctx)
	return d.Dialect
}

func newLister(at llm.Endpoint) (*lister, error) {
	d, err := dialectOf(llm.Endpoint{Dialect: at.Dialect, BaseURL: at.BaseURL})
	base := ""
	if err == nil {
		base, err = d.base(at)
	}
	provider := llm.Endpoint{Provider: at.Provider}.Describe("openai", llm.Info{}).Provider
	return &lister{Endpoint: at, dialect: d, base: base, provider: provider}, err
}

// lister asks one server for its models.
type lister struct {
	llm.Endpoint
	dialect
	base     string
	provider string
}

// models lists by the endpoint that all servers share.
func (l *lister) models(ctx context.Context) ([]llm.Info, error) {
	entries, err := l.entries(ctx, l.base+"/models")
	if err != nil {
		return nil, err
	}
	var list []llm.Info
	for _, e := range entries {
		if e.converses() {
			list = append(list, l.complete(e.info()))
		}
	}
	return list, nil
}

// complete adds the model's origin and its entry in the catalog.
func (l *lister) complete(info llm.Info) llm.Info {
	if l.own {
		catalog := known(info.Model)
		catalog.Model = info.Model
		info = catalog
	}
	info.Provider = l.provider
	return info
}

// openrouter has a list that needs no key, and another address that checks the key.
func (l *lister) openrouter(ctx context.Context) ([]llm.Info, error) {
	if l.Key != nil {
		if _, err := l.get(ctx, l.base+"/key"); err != nil && llm.AsError(err).Kind == llm.KindAuth {
			return nil, err
		}
	}
	return l.models(ctx)
}

// identify returns the server that the address shows signs of.
func (l *lister) identify(ctx context.Context) (dialect, bool) {
	for _, d := range servers() {
		if d.sign != nil && d.sign(l, ctx) {
			return d, true
		}
	}
	return dialect{}, false
}

// isLiteLLM knows the proxy by its address for health checks.
func (l *lister) isLiteLLM(ctx context.Context) bool {
	body, err := l.get(ctx, root(l.base)+"/health/liveliness")
	return err == nil && strings.Contains(string(body), "alive")
}

// isVLLM knows vLLM by the owner of its models.
func (l *lister) isVLLM(ctx context.Context) bool {
	list, err := l.entries(ctx, l.base+"/models")
	return err == nil && slices.ContainsFunc(list, func(e listed) bool { return e.Owner == "vllm" })
}

// props are the properties of llama.cpp's server.
type props struct {
	Context  amount `json:"n_ctx"`
	Defaults *struct {
		Context amount `json:"n_ctx"`
	} `json:"default_generation_settings"`
	Modalities struct {
		Vision bool `json:"vision"`
	} `json:"modalities"`
}

// isLlamacpp knows llama.cpp by its properties.
func (l *lister) isLlamacpp(ctx context.Context) bool {
	var p props
	return l.ask(ctx, "/props", &p) == nil && p.Defaults != nil
}

// llamacpp asks the server for the size of its slots. A server that loads models on demand does not state it.
func (l *lister) llamacpp(ctx context.Context) ([]llm.Info, error) {
	list, err := l.models(ctx)
	if err != nil || len(list) != 1 {
		return list, err
	}
	var p props
	if err := l.ask(ctx, "/props", &p); err != nil {
		return nil, err
	}
	if p.Defaults != nil && p.Defaults.Context > 0 {
		p.Context = p.Defaults.Context
	}
	if p.Context > 0 {
		list[0].Window = int(p.Context)
	}
	list[0].Images = list[0].Images || p.Modalities.Vision
	return list, nil
}

// isLMStudio knows LM Studio by its native API.
func (l *lister) isLMStudio(ctx context.Context) bool {
	for _, path := range []string{"/api/v0/models", "/api/v1/models"} {
		list, err := l.entries(ctx, root(l.base)+path)
		if err == nil && slices.ContainsFunc(list, func(e listed) bool { return e.MaxContext > 0 }) {
			return true
		}
	}
	return false
}

// lmstudio asks the native API: first its first version, which is deprecated but states the most, then its
// successor.
func (l *lister) lmstudio(ctx context.Context) ([]llm.Info, error) {
	own := l.base
	for _, path := range []string{"/api/v0", "/api/v1"} {
		l.base = root(own) + path
		if list, err := l.models(ctx); err == nil {
			return list, nil
		} else if ctx.Err() != nil {
			return nil, err
		}
	}
	l.base = own
	return l.models(ctx)
}

// tgiInfo describes the one model of a TGI server.
type tgiInfo struct {
	Model string `json:"model_id"`
	Total amount `json:"max_total_tokens"`
	Input amount `json:"max_input_tokens"`
	Older amount `json:"max_input_length"`
}

// window returns the model's context window.
func (i tgiInfo) window() int { return first(i.Total, i.Input, i.Older) }

// isTGI knows TGI by its description of the model.
func (l *lister) isTGI(ctx context.Context) bool {
	var info tgiInfo
	return l.ask(ctx, "/info", &info) == nil && info.Model != "" && info.window() > 0
}

// tgi serves one model, described by /info. An endpoint may have another server behind it.
func (l *lister) tgi(ctx context.Context) ([]llm.Info, error) {
	var info tgiInfo
	if err := l.ask(ctx, "/info", &info); err != nil {
		return nil, err
	}
	if info.Model == "" {
		return l.models(ctx)
	}
	return []llm.Info{{Provider: l.provider, Model: info.Model, Window: info.window()}}, nil
}

// huggingface lists the models of the router, preceded by the pair of model and provider that the endpoint names.
func (l *lister) huggingface(ctx context.Context) ([]llm.Info, error) {
	entries, err := l.entries(ctx, l.base+"/models")
	if err != nil {
		return nil, err
	}
	var list, pair []llm.Info
	for _, e := range entries {
		list = append(list, l.complete(e.routed("")))
		if name, provider, _ := strings.Cut(l.ID, ":"); name == e.ID && e.offeredBy(provider) {
			pair = append(pair, l.complete(e.routed(provider)))
		}
	}
	return append(pair, list...), nil
}

// ask reads an endpoint outside the common wire. If the server does not have it, into stays as it is: only the end
// of ctx is an error.
func (l *lister) ask(ctx context.Context, path string, into any) error {
	body, err := l.get(ctx, root(l.base)+path)
	if ctx.Err() != nil {
		return err
	}
	if err == nil {
		_ = json.Unmarshal(body, into)
	}
	return nil
}

// root returns the base URL without the path of the version.
func root(base string) string { return strings.TrimSuffix(base, "/v1") }

// get returns the body of an answer with status 200.
func (l *lister) get(ctx context.Context, url string) ([]byte, error) {
	return wire.Post{
		Method: http.MethodGet, Provider: l.provider, URL: url, Extra: l.Header, KeyHeader: l.carrier(l.Bearer), Key: l.Key,
		HTTP: l.HTTP, Deadlines: l.Deadlines,
	}.Ask(ctx, maxList, l.classify)
}

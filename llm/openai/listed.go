package openai

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/inspan/inspan/llm"
)

// listed is the union of the fields of a model in the servers' lists.
type listed struct {
	ID    string `json:"id"`
	Key   string `json:"key"`      // LM Studio, API v1
	Type  string `json:"type"`     // LM Studio, Together, Mistral
	Owner string `json:"owned_by"` // vLLM

	ContextLength amount `json:"context_length"`        // OpenRouter, Together, Fireworks, Moonshot, xAI
	ContextWindow amount `json:"context_window"`        // Groq
	MaxModelLen   amount `json:"max_model_len"`         // vLLM
	MaxContext    amount `json:"max_context_length"`    // Mistral, LM Studio
	Loaded        amount `json:"loaded_context_length"` // LM Studio, API v0
	Instances     []struct {
		Config struct {
			Context amount `json:"context_length"`
		} `json:"config"`
	} `json:"loaded_instances"` // LM Studio, API v1
	Meta struct {
		Context amount `json:"n_ctx"`
		Trained amount `json:"n_ctx_train"`
	} `json:"meta"` // llama.cpp
	Top struct {
		Context   amount `json:"context_length"`
		MaxOutput amount `json:"max_completion_tokens"`
	} `json:"top_provider"` // OpenRouter
	MaxOutput amount `json:"max_completion_tokens"` // Groq

	Architecture struct {
		Input []string `json:"input_modalities"`
	} `json:"architecture"` // OpenRouter, Hugging Face
	ImageIn    bool  `json:"supports_image_in"`    // Moonshot
	ImageInput bool  `json:"supports_image_input"` // Fireworks
	Tools      *bool `json:"supports_tools"`       // Fireworks
	Chat       *bool `json:"supports_chat"`        // Fireworks
	// Parameters is nil if the server does not list them.
	Parameters   []string `json:"supported_parameters"` // OpenRouter
	Capabilities struct {
		Chat   *bool `json:"completion_chat"`
		Tools  *bool `json:"function_calling"`
		Vision bool  `json:"vision"` // LM Studio, API v1, too
	} `json:"capabilities"` // Mistral; a list in LM Studio's API v0

	Pricing   pricing    `json:"pricing"`   // OpenRouter, Together
	Providers []provider `json:"providers"` // Hugging Face
}

// provider is one of the providers after Hugging Face's router.
type provider struct {
	Name    string  `json:"provider"`
	Status  string  `json:"status"`
	Context amount  `json:"context_length"`
	Pricing pricing `json:"pricing"`
	Tools   *bool   `json:"supports_tools"`
}

type pricing struct {
	// US dollars a token.
	Prompt     *amount `json:"prompt"`
	Completion *amount `json:"completion"`
	CacheRead  *amount `json:"input_cache_read"`
	CacheWrite *amount `json:"input_cache_write"`
	// US dollars per million tokens.
	Input  *amount `json:"input"`
	Output *amount `json:"output"`
	Cached *amount `json:"cached_input"`
}

// amount is a number, or a string that holds one. Anything else is 0, as is a number that can't be one of tokens or
// dollars.
type amount float64

func (a *amount) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(b), `"`), 64)
	if err == nil && math.Abs(f) < 1e12 {
		*a = amount(f)
	}
	return nil
}

// first returns the first amount above 0.
func first(list ...amount) int {
	i := slices.IndexFunc(list, func(a amount) bool { return a > 0 })
	if i < 0 {
		return 0
	}
	return int(list[i])
}

// entries returns the entries of a list at url. Fields of an unexpected type are skipped.
func (l *lister) entries(ctx context.Context, url string) ([]listed, error) {
	body, err := l.get(ctx, url)
	if err != nil {
		return nil, err
	}
	var list struct {
		Data   []json.RawMessage `json:"data"`
		Models []json.RawMessage `json:"models"`
	}
	if json.Unmarshal(body, &list.Data) != nil { // Together sends a bare list
		_ = json.Unmarshal(body, &list)
	}
	if list.Data == nil {
		list.Data = list.Models
	}
	if list.Data == nil {
		e := classify(200, body)
		e.Kind, e.Provider = llm.KindInvalid, l.provider
		return nil, e
	}
	entries := make([]listed, 0, len(list.Data))
	for _, raw := range list.Data {
		var e listed
		var other *json.UnmarshalTypeError
		if err := json.Unmarshal(raw, &e); err != nil && !errors.As(err, &other) {
			continue
		}
		if e.ID == "" {
			e.ID = e.Key
		}
		if e.ID != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// converses reports whether the model is a chat model, as far as the list says.
func (e *listed) converses() bool {
	return !no(e.Chat) && !no(e.Capabilities.Chat) &&
		!containsAny(strings.ToLower(e.Type), "embed", "rerank", "moderation", "image", "audio", "video", "transcri", "speech")
}

func no(b *bool) bool { return b != nil && !*b }

func (e *listed) info() llm.Info {
	return llm.Info{
		Model: e.ID, Window: e.window(), MaxOutput: first(e.MaxOutput, e.Top.MaxOutput), Prices: e.Pricing.prices(),
		Images:  e.Type == "vlm" || e.ImageIn || e.ImageInput || e.Capabilities.Vision || slices.Contains(e.Architecture.Input, "image"),
		NoTools: no(e.Tools) || no(e.Capabilities.Tools) || e.Parameters != nil && !slices.Contains(e.Parameters, "tools"),
	}
}

// window prefers the loaded window to the model's maximum.
func (e *listed) window() int {
	var instance amount
	if len(e.Instances) > 0 {
		instance = e.Instances[0].Config.Context
	}
	n := first(e.Loaded, instance, e.Meta.Context, e.MaxModelLen, e.ContextLength, e.ContextWindow, e.MaxContext, e.Meta.Trained)
	if top := first(e.Top.Context); top > 0 && (n == 0 || top < n) {
		return top
	}
	return n
}

// routed returns the properties of a model at one provider or, if none is named, at any provider that the router
// may choose: the smallest window and the highest price.
func (e *listed) routed(name string) llm.Info {
	info := e.info()
	if name != "" {
		info.Model += ":" + name
	}
	tools, told := false, false
	for _, p := range e.Providers {
		if name != "" && p.Name != name || name == "" && p.Status == "error" {
			continue
		}
		if n := first(p.Context); n > 0 && (info.Window == 0 || n < info.Window) {
			info.Window = n
		}
		told = told || p.Tools != nil
		tools = tools || p.Tools == nil || *p.Tools
		info.Prices = dearer(info.Prices, p.Pricing.prices())
	}
	info.NoTools = info.NoTools || told && !tools
	return info
}

func (e *listed) offeredBy(name string) bool {
	return slices.ContainsFunc(e.Providers, func(p provider) bool { return p.Name == name })
}

func dearer(a, b llm.Prices) llm.Prices {
	if a == nil || b != nil && b[0].Output > a[0].Output {
		return b
	}
	return a
}

// prices returns nil if no valid price is stated. A cache without a price costs as much as input.
func (p pricing) prices() llm.Prices {
	var price llm.Price
	switch {
	case p.Prompt != nil && p.Completion != nil:
		price = llm.Price{
			Input: million(p.Prompt), Output: million(p.Completion), CacheRead: million(p.CacheRead, p.Prompt),
			CacheWrite: million(p.CacheWrite, p.Prompt),
		}
	case p.Input != nil && p.Output != nil:
		price = llm.Price{Input: float64(*p.Input), Output: float64(*p.Output), CacheRead: float64(*p.Input), CacheWrite: float64(*p.Input)}
		if p.Cached != nil && *p.Cached > 0 {
			price.CacheRead = float64(*p.Cached)
		}
	default:
		return nil
	}
	if min(price.Input, price.Output, price.CacheRead, price.CacheWrite) < 0 {
		return nil
	}
	return llm.Prices{price}
}

// million returns the first stated price, per million tokens, rounded to the precision in which prices are quoted.
func million(list ...*amount) float64 {
	for _, a := range list {
		if a != nil {
			f, _ := strconv.ParseFloat(strconv.FormatFloat(float64(*a)*1e6, 'f', 6, 64), 64)
			return f
		}
	}
	return 0
}

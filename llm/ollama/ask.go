package ollama

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

const (
	maxAnswer  = 64 << 20 // the full description of a model includes its vocabulary
	askTimeout = 30 * time.Second
)

// client asks a server about itself and its models.
type client struct {
	llm.Endpoint
	provider string
}

func newClient(at llm.Endpoint) client {
	return client{at, at.Describe("ollama", llm.Info{}).Provider}
}

// ask sends question, if there is one, and reads the answer into into. The error is an [*llm.Error].
func (c client) ask(ctx context.Context, path string, question, into any) error {
	post := wire.Post{
		Method: http.MethodGet, Provider: c.provider, URL: trimBase(c.BaseURL) + path, Extra: c.Header,
		KeyHeader: "Authorization", Key: c.Key, HTTP: c.HTTP, Deadlines: c.Deadlines,
	}
	if question != nil {
		post.Method = http.MethodPost
		post.Body, _ = json.Marshal(question) // maps of strings and booleans always marshal
	}
	answer, err := post.Ask(ctx, maxAnswer, func(status int, body []byte) *llm.Error { return classify(c.ID, status, body) })
	if err != nil {
		return err
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return &llm.Error{Kind: llm.KindInvalid, Provider: c.provider, Message: path + " did not answer as Ollama does", Err: err}
	}
	return nil
}

// process is a model that the server has loaded.
type process struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	VRAM  int64  `json:"size_vram"`
	Count int    `json:"context_length"` // missing from old servers
}

// loaded returns the model as the server has it loaded now; ok is false if it is not loaded, or the server does not
// say. taken is the GPU memory of all loaded models.
func (c client) loaded(ctx context.Context) (model process, taken int64, ok bool) {
	var list struct {
		Models []process `json:"models"`
	}
	if c.ask(ctx, "/api/ps", nil, &list) != nil {
		return process{}, 0, false
	}
	for _, p := range list.Models {
		taken += max(p.VRAM, 0)
		if same(p.Name, c.ID) {
			model, ok = p, true
		}
	}
	return model, taken, ok
}

// same reports whether two names mean the same model: the tag may be omitted.
func same(a, b string) bool {
	full := func(s string) string {
		if !strings.Contains(s[strings.LastIndex(s, "/")+1:], ":") {
			s += ":latest"
		}
		return s
	}
	return strings.EqualFold(full(a), full(b))
}

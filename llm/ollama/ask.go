package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

const (
	maxAnswer  = 64 << 20 // a model told of in full comes with its vocabulary
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

// within bounds all the questions of one task.
func (c client) within(ctx context.Context) (context.Context, context.CancelFunc) {
	total := c.Deadlines.Or(llm.Deadlines{Total: askTimeout}).Total
	if total <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, total, &llm.Error{Kind: llm.KindTimeout, Provider: c.provider, Phase: "total"})
}

// ask sends question, if there is one, and reads the answer into into. The
// error is an [*llm.Error].
func (c client) ask(ctx context.Context, path string, question, into any) error {
	method, body := http.MethodGet, []byte(nil)
	if question != nil {
		method = http.MethodPost
		body, _ = json.Marshal(question) // maps of strings and booleans
	}
	header, err := c.header(ctx)
	if err != nil {
		return &llm.Error{Kind: llm.KindAuth, Provider: c.provider, Message: "no API key: " + err.Error(), Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, method, trimBase(c.BaseURL)+path, bytes.NewReader(body))
	if err != nil {
		return &llm.Error{Kind: llm.KindInvalid, Provider: c.provider, Message: "bad base URL"}
	}
	req.Header = header
	status, answer, err := c.exchange(req)
	if err != nil {
		return c.failed(ctx, err)
	}
	if status != http.StatusOK {
		e := classify(c.ID, status, answer)
		e.Provider = c.provider
		e.Message = wire.Redact(e.Message, wire.Secrets(header, "Authorization")...)
		return e
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return &llm.Error{Kind: llm.KindInvalid, Provider: c.provider, Message: path + " did not answer as Ollama does", Err: err}
	}
	return nil
}

// exchange follows no redirect: that would carry the key to another host.
func (c client) exchange(req *http.Request) (int, []byte, error) {
	tripper := c.HTTP
	if tripper == nil {
		tripper = http.DefaultTransport
	}
	resp, err := tripper.RoundTrip(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}

func (c client) header(ctx context.Context) (http.Header, error) {
	h := http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}, "User-Agent": {"inspan"}}
	if c.Key != nil {
		key, err := c.Key(ctx)
		if err != nil {
			return nil, err
		}
		h.Set("Authorization", "Bearer "+key)
	}
	maps.Copy(h, c.Header)
	return h, nil
}

// failed returns why nothing came: by us, by our deadline, or by the other side.
func (c client) failed(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return &llm.Error{Kind: llm.KindTransient, Provider: c.provider, Message: err.Error(), Err: err}
	}
	var late *llm.Error
	if errors.As(context.Cause(ctx), &late) {
		return late
	}
	return &llm.Error{Kind: llm.KindCancelled, Provider: c.provider, Err: context.Cause(ctx)}
}

// process is a model that the server has loaded.
type process struct {
	Name  string `json:"name"`
	Size  int64  `json:"size"`
	VRAM  int64  `json:"size_vram"`
	Count int    `json:"context_length"` // not told by old servers
}

// loaded returns what the server tells of the model as it is loaded now; ok is
// false if it is not, or the server does not say.
func (c client) loaded(ctx context.Context) (p process, ok bool) {
	var list struct {
		Models []process `json:"models"`
	}
	if c.ask(ctx, "/api/ps", nil, &list) != nil {
		return process{}, false
	}
	for _, p := range list.Models {
		if same(p.Name, c.ID) {
			return p, true
		}
	}
	return process{}, false
}

// same reports whether two names mean one model: the tag may be left out.
func same(a, b string) bool {
	full := func(s string) string {
		if !strings.Contains(s[strings.LastIndex(s, "/")+1:], ":") {
			s += ":latest"
		}
		return s
	}
	return strings.EqualFold(full(a), full(b))
}

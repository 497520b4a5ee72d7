package anthropic

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/internal/wire"
)

// platform is the service that runs Claude. The clouds wrap the vendor's wire: the model is in the path and the
// version of the API in the body. Bedrock also takes betas in the body, has no field for streaming, and frames its
// events differently. References:
// https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-anthropic-claude-messages.html
// https://docs.cloud.google.com/vertex-ai/generative-ai/docs/partner-models/claude/use-claude
type platform string

// Platforms. Each is also the default name of the provider: thoughts of one platform are of no use to another.
const (
	direct  platform = "anthropic"
	bedrock platform = "bedrock"
	vertex  platform = "vertex"
)

var (
	bedrockHost = regexp.MustCompile(`^https?://([^/]*\.)?bedrock-runtime[.-]`)
	vertexHost  = regexp.MustCompile(`^https?://([^/]*-)?aiplatform\.[^/]*googleapis\.com`)
)

// platform returns the platform of the model, from Dialect or the host. With an unknown dialect it is direct and
// err is set.
func (m *Model) platform() (platform, error) {
	switch p := platform(m.Dialect); p {
	case direct, bedrock, vertex:
		return p, nil
	case "":
	default:
		return direct, fmt.Errorf("unknown dialect %q: want %q, %q or %q", m.Dialect, direct, bedrock, vertex)
	}
	switch {
	case bedrockHost.MatchString(m.BaseURL):
		return bedrock, nil
	case vertexHost.MatchString(m.BaseURL):
		return vertex, nil
	}
	return direct, nil
}

// url returns the destination of requests. The clouds have no address without a region.
func (m *Model) url(p platform) (string, error) {
	base := strings.TrimSuffix(m.BaseURL, "/")
	switch {
	case p == direct && base == "":
		base = "https://api.anthropic.com"
	case base == "":
		return "", fmt.Errorf("%s needs a base URL with its region", p)
	}
	switch p {
	case bedrock:
		return base + "/model/" + url.QueryEscape(m.ID) + "/invoke-with-response-stream", nil
	case vertex:
		return base + "/models/" + url.PathEscape(m.ID) + ":streamRawPredict", nil
	}
	return strings.TrimSuffix(base, "/v1") + "/v1/messages", nil
}

// post returns the exchange for one request.
func (m *Model) post(info llm.Info, names *wire.Aliases, req llm.Request) (wire.Post, platform, error) {
	post, p, err := m.exchange(info)
	if err != nil {
		return post, p, err
	}
	betas := strings.Join(betas(m.ID, req), ",")
	switch {
	case p == bedrock:
		post.Header.Set("Accept", "application/vnd.amazon.eventstream")
	case betas != "":
		post.Header.Set("Anthropic-Beta", betas)
	}
	post.Body, post.MaxOutput = encode(info, p, names, req), cmp.Or(req.MaxOutput, info.MaxOutput)
	return post, p, nil
}

// exchange returns the part that all requests share.
func (m *Model) exchange(info llm.Info) (wire.Post, platform, error) {
	p, err := m.platform()
	if err != nil {
		return wire.Post{}, p, err
	}
	target, err := m.url(p)
	if err != nil {
		return wire.Post{}, p, err
	}
	header, keyHeader := http.Header{}, "Authorization"
	if p == direct {
		header.Set("Anthropic-Version", "2023-06-01")
		if !m.Bearer {
			keyHeader = "X-Api-Key"
		}
	}
	return wire.Post{
		Provider: info.Provider, URL: target, Header: header, Extra: m.Header, KeyHeader: keyHeader, Key: m.Key,
		HTTP: m.HTTP, Deadlines: m.Deadlines,
	}, p, nil
}

// head writes the beginning of a body: the model and the options of its answer.
func (e *encoder) head(p platform, info llm.Info, req llm.Request) {
	switch p {
	case bedrock:
		e.Raw(`{"anthropic_version":"bedrock-2023-05-31"`)
		if list := betas(info.Model, req); len(list) > 0 {
			e.Raw(`,"anthropic_beta":["` + strings.Join(list, `","`) + `"]`)
		}
	case vertex:
		e.Raw(`{"anthropic_version":"vertex-2023-10-16","stream":true`)
	default:
		e.Raw(`{"model":`).Str(info.Model).Raw(`,"stream":true`)
	}
}

// betas returns the names of the features in use that are not part of the stable API.
func betas(id string, req llm.Request) []string {
	var list []string
	if bindsThinking(id) {
		list = append(list, "thinking-binding-controls-2026-08-01")
	}
	if interleaves(id) && req.Effort != "" && len(req.Tools) > 0 {
		list = append(list, "interleaved-thinking-2025-05-14")
	}
	return list
}

// answered is a transport that keeps the header of the answer, in which Bedrock names its errors. It serves one
// exchange.
type answered struct {
	next   http.RoundTripper
	header http.Header
}

// RoundTrip implements [http.RoundTripper].
func (a *answered) RoundTrip(r *http.Request) (*http.Response, error) {
	next := a.next
	if next == nil {
		next = http.DefaultTransport
	}
	resp, err := next.RoundTrip(r)
	if err == nil {
		a.header = resp.Header
	}
	return resp, err
}

// classify turns the answer into an error.
func (a *answered) classify(status int, body []byte) *llm.Error {
	code, _, _ := strings.Cut(a.header.Get("X-Amzn-Errortype"), ":")
	e := classifyAs(code, status, body)
	if e.RequestID == "" {
		e.RequestID = a.header.Get("X-Amzn-Requestid")
	}
	return e
}

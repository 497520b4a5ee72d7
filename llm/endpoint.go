package llm

import (
	"context"
	"net/http"
)

// Endpoint is the address of a model over HTTP. Each adapter's model is an endpoint that speaks one wire:
//
//	m := &anthropic.Model{ID: "claude-opus-5-5", Key: key}
//
// Only ID is required. Don't change the fields once the model is in use; then it is safe for concurrent use.
type Endpoint struct {
	// Provider is the configured name; empty means the name of the adapter.
	Provider string
	// ID is the vendor's id of the model.
	ID string
	// BaseURL is the address that the adapter appends its paths to; empty means the vendor's own server.
	BaseURL string
	// Key returns the API key, once for each request. If nil, no key is sent. Its error becomes KindAuth. The
	// key appears in no URL and no error.
	Key func(ctx context.Context) (string, error)
	// Bearer sends Key as a bearer token, even if the vendor's usual way differs.
	Bearer bool
	// Header is added to every request and overrides the adapter's own headers.
	Header http.Header
	// HTTP sends the requests; nil means [http.DefaultTransport].
	HTTP http.RoundTripper
	// Deadlines of one call; see there for the defaults.
	Deadlines Deadlines
	// Dialect names the server among those that speak the wire, such as "vllm" or "bedrock". If empty, the
	// adapter decides by BaseURL.
	Dialect string

	// Window, MaxOutput and Prices override the adapter's knowledge of the model; zero leaves it unchanged.
	Window    int
	MaxOutput int
	Prices    Prices
	// Images says that the model accepts images, for models that the adapter does not know.
	Images bool
}

// Describe returns the known facts about the endpoint's model: the adapter's knowledge, overridden by the fields.
// The provider is the adapter's name, unless the endpoint has one.
func (e Endpoint) Describe(provider string, known Info) Info {
	known.Provider, known.Model = provider, e.ID
	if e.Provider != "" {
		known.Provider = e.Provider
	}
	if e.Window != 0 {
		known.Window = e.Window
	}
	if e.MaxOutput != 0 {
		known.MaxOutput = e.MaxOutput
	}
	if e.Prices != nil {
		known.Prices = e.Prices
	}
	known.Images = known.Images || e.Images
	return known
}

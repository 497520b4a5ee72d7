package llm

import (
	"context"
	"net/http"
)

// Endpoint is where a model is to be had over HTTP. Each adapter's model is an
// endpoint that speaks one wire:
//
//	m := &anthropic.Model{ID: "claude-opus-5-5", Key: key}
//
// Only ID is needed. The fields are not to be changed once the model is in
// use; then it is safe for concurrent use.
type Endpoint struct {
	// Provider is the configured name; empty means the name of the adapter.
	Provider string
	// ID is the vendor's id of the model.
	ID string
	// BaseURL is what the adapter appends its paths to; empty means the
	// vendor's own server.
	BaseURL string
	// Key returns the API key, once a request; nil: none is sent. Its error
	// becomes KindAuth. The key appears in no URL and no error.
	Key func(ctx context.Context) (string, error)
	// Bearer sends Key as a bearer token where the vendor's own way is another.
	Bearer bool
	// Header is added to every request and overrides what the adapter sets.
	Header http.Header
	// HTTP sends the requests; nil: [http.DefaultTransport].
	HTTP http.RoundTripper
	// Deadlines of one call; see there for the defaults.
	Deadlines Deadlines
	// Dialect names which of the servers that speak the wire this is, such as
	// "vllm" or "bedrock". Empty leaves it to the adapter, which goes by BaseURL.
	Dialect string

	// Window, MaxOutput and Prices override what the adapter knows of the model;
	// zero leaves that as it is.
	Window    int
	MaxOutput int
	Prices    Prices
	// Images says that the model accepts images, where the adapter does not
	// know it.
	Images bool
}

// Describe returns what is known of the endpoint's model: what the adapter
// knows, and what the fields say beyond it. The provider is the adapter's name,
// unless the endpoint has one.
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

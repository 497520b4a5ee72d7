package mcp

import (
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/base/text"
)

// remote restricts requests to one server, for the life of the connection: they go nowhere else, follow no
// redirects, and their responses are bounded.
type remote struct {
	next    http.RoundTripper
	life    context.Context //nolint:containedctx // of the connection, which requests must not outlast
	url     *url.URL
	server  Server
	headers map[string]string // by canonical names
	auth    Authorizer        // nil means there are no tokens
	fail    func(error)       // ends the connection
	sift    sift              // of what it sends
	nonce   atomic.Value      // string: the newest that the server wants to be signed (DPoP-Nonce)
}

// remoteTransport returns the transport for a server over HTTP.
func remoteTransport(life context.Context, fail func(error), m *Manager, s Server) (sdk.Transport, error) {
	noise := sift{func(data []byte) { m.noise(s, data) }, s.kind() == SSE}
	u, err := s.address()
	if err != nil {
		return nil, err
	}
	if m.HTTP == nil {
		return nil, final("servers can't be reached from here")
	}
	r := &remote{next: m.HTTP(s).Transport, life: life, url: u, server: s, headers: canonical(s.Headers), auth: s.Auth, fail: fail, sift: noise}
	if r.auth == nil {
		r.auth = m.Auth
	}
	if r.next == nil {
		return nil, final("servers can't be reached without the network guard")
	}
	only := &http.Client{Transport: r, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	switch s.kind() {
	case WebSocket:
		return dialSocket(life, only, u, noise)
	case SSE:
		return &sdk.SSEClientTransport{Endpoint: s.URL, HTTPClient: only, MaxEventSize: maxFrame}, nil
	}
	return &sdk.StreamableClientTransport{Endpoint: s.URL, HTTPClient: only, MaxEventSize: maxFrame}, nil
}

// RoundTrip implements [http.RoundTripper].
func (r *remote) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != r.url.Scheme || !strings.EqualFold(req.URL.Host, r.url.Host) {
		if req.Body != nil {
			req.Body.Close()
		}
		err := fmt.Errorf("it redirects to another server, %s, which inspan does not follow", text.Cut(req.URL.Host, 100))
		r.fail(err)
		return nil, err
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	done := func() { stop(); cancel() }
	req = req.Clone(ctx)
	for name, value := range r.headers {
		req.Header.Set(name, value)
	}
	if err := bodyOnWire(req); err != nil {
		done()
		return nil, err
	}
	nameTask(req)
	resp, err := r.authorized(req)
	if err == nil {
		err = r.refuse(resp)
	}
	if err != nil {
		done()
		return nil, err
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &body{resp.Body, done, limit(resp)}
		hear(req, resp, r.sift)
	}
	return resp, nil
}

// refuse turns responses that need an explanation into errors.
func (r *remote) refuse(resp *http.Response) error {
	err := r.unauthorized(resp)
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		err = fmt.Errorf("it redirects to %s, which inspan does not follow", text.Cut(resp.Header.Get("Location"), 200))
	}
	if err != nil {
		resp.Body.Close()
	}
	return err
}

// canonical normalizes header names for comparison.
func canonical(headers map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range headers {
		out[http.CanonicalHeaderKey(name)] = value
	}
	return out
}

// limit returns the maximum size of a response body, -1 for a stream, whose events are bounded one by one.
func limit(resp *http.Response) int64 {
	if kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type")); err == nil && kind == "text/event-stream" {
		return -1
	}
	return maxFrame
}

// body is a response body.
type body struct {
	io.ReadCloser
	done func()
	left int64 // bytes that may still be read; negative: any number
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	if b.left < 0 {
		return b.ReadCloser.Read(p)
	}
	if b.left == 0 {
		return 0, fmt.Errorf("its answer has more than %d MiB", maxFrame>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

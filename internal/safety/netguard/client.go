package netguard

import (
	"crypto/tls"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// maxRedirects bounds the redirects of a request.
const maxRedirects = 5

// maxHeader bounds the header of a response, in bytes.
const maxHeader = 256 << 10

// Client returns a client that applies the rules of the package to every request. It sends requests only to the
// host of their address, and ignores [http.Request.Host]. It follows at most 5 redirects, none from https to
// http. Once a redirect leaves the scheme, host and port of the first request, only harmless headers are sent,
// and a request with a body fails. Gzip is decoded; other encodings are errors. A body over MaxBytes is read up
// to there and then fails with [ErrTooLarge]. A connection that switched to another protocol has no bounds.
func (g *Guard) Client() *http.Client {
	return &http.Client{
		Timeout:       g.timeout(),
		CheckRedirect: follow,
		Transport: &transport{guard: g, next: &http.Transport{
			DialContext:            g.DialContext,
			DisableKeepAlives:      true, // a reused connection would skip the checks
			DisableCompression:     true, // decoded in body.go, where both sizes are counted
			MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig:        &tls.Config{RootCAs: g.RootCAs, MinVersion: tls.VersionTLS12},
		}},
	}
}

// Unredirected is like Client, but follows no redirects: the caller sees them.
func (g *Guard) Unredirected() *http.Client {
	client := g.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// transport checks each request and bounds each response.
type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	u, err := Check(req.URL.String())
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	req = req.Clone(req.Context())
	req.URL, req.Host = u, u.Host
	req.Header.Set("Accept-Encoding", "gzip")
	if req.Method == http.MethodHead || req.Header.Get("Range") != "" {
		req.Header.Set("Accept-Encoding", "identity")
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if err := t.guard.bound(resp, u.Hostname()); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// checkType checks the type of a response. Redirects and empty responses need none.
func (g *Guard) checkType(resp *http.Response, host string) error {
	redirect := resp.StatusCode >= 300 && resp.StatusCode < 400
	if len(g.Types) == 0 || redirect || resp.ContentLength == 0 {
		return nil
	}
	said := resp.Header.Get("Content-Type")
	got, _, err := mime.ParseMediaType(said)
	if err != nil {
		got = "application/octet-stream"
	}
	group, _, _ := strings.Cut(got, "/")
	if slices.Contains(g.Types, got) || slices.Contains(g.Types, group+"/*") || slices.Contains(g.Types, "*/*") {
		return nil
	}
	return fmt.Errorf("host %q answered with content type %q; wanted is one of %s", host, said, strings.Join(g.Types, ", "))
}

// follow implements [http.Client.CheckRedirect]. Allow and the addresses are checked when the new connection is
// made.
func follow(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	if len(via) > maxRedirects {
		return fmt.Errorf("host %q: more than %d redirects", from.Hostname(), maxRedirects)
	}
	u, err := Check(req.URL.String())
	if err != nil {
		return fmt.Errorf("host %q redirects to a bad place: %w", from.Hostname(), err)
	}
	if from.Scheme == "https" && u.Scheme != "https" {
		return fmt.Errorf("host %q redirects from https to http, which is not followed", from.Hostname())
	}
	req.URL = u
	first := origin(via[0].URL)
	same := func(r *http.Request) bool { return origin(r.URL) == first }
	if same(req) && !slices.ContainsFunc(via, func(r *http.Request) bool { return !same(r) }) {
		return nil
	}
	if req.Body != nil {
		return fmt.Errorf("host %q redirects a request with a body to %q, which is not followed", from.Hostname(), u.Hostname())
	}
	// Keys have many names, so only headers that are known to contain none go to another host than intended.
	maps.DeleteFunc(req.Header, func(name string, _ []string) bool {
		return !slices.Contains([]string{"Accept", "Accept-Language", "User-Agent", "Range"}, name)
	})
	return nil
}

// origin returns the scheme, host and port of an address.
func origin(u *url.URL) string {
	host, err := canonical(u.Hostname())
	if err != nil {
		host = u.Host
	}
	return fmt.Sprintf("%s://%s:%d", u.Scheme, host, Port(u))
}

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/base/text"
)

// Authorizer has access tokens for servers over HTTP that require authorization. It must be safe for concurrent
// use.
type Authorizer interface {
	// Token returns the token for a server; nil means the person has to log in.
	Token(ctx context.Context, s Server) (Pass, error)
	// Renew returns a token that replaces one that the server has refused with a challenge (WWW-Authenticate); nil
	// means the person has to log in.
	Renew(ctx context.Context, s Server, refused Pass, challenge string) (Pass, error)
}

// refusable is an [Authorizer] that wants to know about a refusal after which there is no other token: of the
// one that Renew has just returned, or of the configured header (nil).
type refusable interface {
	Refused(ctx context.Context, s Server, p Pass)
}

// Pass is an access token, with a proof of possession if the server requires one.
type Pass interface {
	// Apply adds it to a request that is sent next: a signature is valid once. The nonce is the server's latest
	// (DPoP-Nonce), empty if it gave none.
	Apply(req *http.Request, nonce string) error
}

// loginError says that the person has to log in, or to grant more.
type loginError struct {
	server    string
	challenge string // WWW-Authenticate
	more      bool   // they are logged in, but may not do that
}

func (e *loginError) Error() string {
	if e.more {
		return "it requires a login with more rights: inspan mcp login " + e.server
	}
	return "it requires a login: inspan mcp login " + e.server
}

// authorized sends a request with the token for the server, and once more with a new one if that is refused.
// Headers set by the person win.
func (r *remote) authorized(req *http.Request) (*http.Response, error) {
	if r.auth == nil || req.Header.Get("Authorization") != "" {
		resp, err := r.next.RoundTrip(req)
		r.refused(req, resp, nil)
		return resp, err
	}
	pass, err := r.auth.Token(req.Context(), r.server)
	if err != nil {
		return nil, closing(req, err)
	}
	resp, err := r.passed(req, pass)
	if err != nil || pass == nil || resp.StatusCode != http.StatusUnauthorized || !repeatable(req) {
		return resp, err
	}
	fresh, err := r.auth.Renew(req.Context(), r.server, pass, challenge(resp))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if fresh == nil {
		return resp, nil
	}
	resp.Body.Close()
	if err := rewind(req); err != nil {
		return nil, err
	}
	resp, err = r.passed(req, fresh)
	r.refused(req, resp, fresh)
	return resp, err
}

// refused reports to the Authorizer that the server accepts none of its tokens, if the response says so.
func (r *remote) refused(req *http.Request, resp *http.Response, pass Pass) {
	if a, is := r.auth.(refusable); is && resp != nil && resp.StatusCode == http.StatusUnauthorized {
		a.Refused(req.Context(), r.server, pass)
	}
}

// passed sends a request with a token, which may be nil. If the server refuses the proof and not the token,
// such as for a missing nonce (RFC 9449, section 9), it sends the request once more with a new proof.
func (r *remote) passed(req *http.Request, pass Pass) (*http.Response, error) {
	for last := !repeatable(req); ; last = true {
		resp, unproven, err := r.tried(req, pass)
		if err != nil || unproven == nil {
			return resp, err
		}
		resp.Body.Close()
		if last {
			return nil, unproven
		}
		if err := rewind(req); err != nil {
			return nil, err
		}
	}
}

var (
	errNonce = errors.New("it requires a nonce with the token (DPoP), and rejects the nonce that it sent")
	errProof = errors.New("it rejects the proof of possession of the token (DPoP); check the clock of this machine")
)

// tried sends a request once, with a new proof. Unproven is the reason why the proof was refused, nil if it was
// not: then logging in does not help.
func (r *remote) tried(req *http.Request, pass Pass) (resp *http.Response, unproven, err error) {
	req = req.Clone(req.Context())
	if pass != nil {
		nonce, _ := r.nonce.Load().(string)
		if err := pass.Apply(req, nonce); err != nil {
			return nil, nil, closing(req, err)
		}
	}
	if resp, err = r.next.RoundTrip(req); err != nil {
		return nil, nil, err
	}
	if nonce := resp.Header.Get("DPoP-Nonce"); nonce != "" {
		r.nonce.Store(nonce)
	}
	if said := challenge(resp); resp.StatusCode == http.StatusUnauthorized && req.Header.Get("DPoP") != "" {
		switch {
		case strings.Contains(said, "use_dpop_nonce"):
			unproven = errNonce
		case strings.Contains(said, "invalid_dpop_proof"):
			unproven = errProof
		}
	}
	return resp, unproven, nil
}

// repeatable reports whether a request can be sent again.
func repeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// rewind resets the body of a request that has been sent.
func rewind(req *http.Request) (err error) {
	if req.GetBody != nil {
		req.Body, err = req.GetBody()
	}
	return err
}

// challenge returns the challenge of a response.
func challenge(resp *http.Response) string {
	return strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
}

// closing closes the body of a request that is not sent.
func closing(req *http.Request, err error) error {
	if req.Body != nil {
		req.Body.Close()
	}
	return err
}

// unauthorized returns an error if the response asks for a login.
func (r *remote) unauthorized(resp *http.Response) error {
	said := challenge(resp)
	more := resp.StatusCode == http.StatusForbidden && strings.Contains(said, "insufficient_scope")
	switch {
	case resp.StatusCode != http.StatusUnauthorized && !more:
		return nil
	case r.server.Auth != nil:
		return fmt.Errorf("it rejects the stored token (%d), which can't be renewed", resp.StatusCode)
	case r.auth == nil || r.headers["Authorization"] != "":
		return fmt.Errorf("it requires authentication (%d), and rejects the header of the settings", resp.StatusCode)
	}
	err := &finalError{&loginError{r.server.Name, said, more}}
	r.fail(err)
	return err
}

// Revive reconnects to servers that the person has logged in to meanwhile.
func (m *Manager) Revive(ctx context.Context) {
	if m.Auth == nil {
		return
	}
	for _, s := range m.Status() {
		if s.State != Login {
			continue
		}
		server, _, err := m.Server(s.Name)
		if err != nil {
			continue
		}
		if pass, err := m.Auth.Token(ctx, server); err == nil && pass != nil {
			_ = m.Again(s.Name) // it may be on its way already
		}
	}
}

// Server returns a server with its variables filled in, and its latest login challenge (WWW-Authenticate).
func (m *Manager) Server(name string) (s Server, challenge string, err error) {
	m.mu.Lock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == name })
	if i >= 0 {
		s, challenge = m.slots[i].server, m.slots[i].challenge
	}
	m.mu.Unlock()
	if i < 0 {
		return Server{}, "", errors.New("there is no MCP server " + text.Cut(name, 60))
	}
	s, err = m.expanded(s)
	return s, challenge, err
}

// expanded returns a server with its variables filled in.
func (m *Manager) expanded(s Server) (Server, error) {
	var value func(string) string
	if m.Expand != nil {
		value = func(name string) string { return m.Expand(s, name) }
	}
	out, err := s.expanded(value)
	var missing *missingError
	if !errors.As(err, &missing) || m.Withheld == nil {
		return out, err
	}
	for _, name := range missing.names {
		if m.Withheld(s, name) {
			return out, final("it does not get %s, which looks like a secret; to pass it, set mcp.secrets = { %s = [%q] } in your settings",
				name, s.Name, name)
		}
	}
	return out, err
}

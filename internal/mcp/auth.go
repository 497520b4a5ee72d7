package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Authorizer has access tokens for servers over HTTP that want to know who asks. It
// must be safe for concurrent use.
type Authorizer interface {
	// Token returns the access token for a server; empty: the person has to log in.
	Token(ctx context.Context, s Server) (string, error)
	// Renew returns one in the place of one that the server has refused; empty: the
	// person has to log in.
	Renew(ctx context.Context, s Server, refused string) (string, error)
}

// loginError says that the person has to log in, or to do so for more.
type loginError struct {
	server    string
	challenge string // WWW-Authenticate
	more      bool   // they are logged in, but may not do that
}

func (e *loginError) Error() string {
	if e.more {
		return "it wants you to log in for more than it gave you: inspan mcp login " + e.server
	}
	return "it wants you to log in: inspan mcp login " + e.server
}

// authorized sends a request with the token for the server, and once more with a new
// one if that is refused. Headers that the person has set win.
func (r *remote) authorized(req *http.Request) (*http.Response, error) {
	if r.auth == nil || req.Header.Get("Authorization") != "" {
		return r.next.RoundTrip(req)
	}
	token, err := r.auth.Token(req.Context(), r.server)
	if err != nil {
		return nil, closing(req, err)
	}
	resp, err := r.next.RoundTrip(bearer(req, token))
	if err != nil || token == "" || resp.StatusCode != http.StatusUnauthorized || req.Body != nil && req.GetBody == nil {
		return resp, err
	}
	fresh, err := r.auth.Renew(req.Context(), r.server, token)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if fresh == "" || fresh == token {
		return resp, nil
	}
	resp.Body.Close()
	again := bearer(req, fresh)
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return r.next.RoundTrip(again)
}

// closing closes the body of a request that is not sent.
func closing(req *http.Request, err error) error {
	if req.Body != nil {
		req.Body.Close()
	}
	return err
}

func bearer(req *http.Request, token string) *http.Request {
	req = req.Clone(req.Context())
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// unauthorized is the error of an answer that wants a login; nil if it does not.
func (r *remote) unauthorized(resp *http.Response) error {
	challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
	more := resp.StatusCode == http.StatusForbidden && strings.Contains(challenge, "insufficient_scope")
	switch {
	case resp.StatusCode != http.StatusUnauthorized && !more:
		return nil
	case r.auth == nil || r.headers["Authorization"] != "":
		return fmt.Errorf("it wants to know who asks (%d); the header with the key is not what it wants", resp.StatusCode)
	}
	err := &finalError{&loginError{r.server.Name, challenge, more}}
	r.fail(err)
	return err
}

// Revive connects again to servers that the person has logged in to meanwhile.
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
		if token, err := m.Auth.Token(ctx, server); err == nil && token != "" {
			_ = m.Again(s.Name) // it may be on its way already
		}
	}
}

// Server returns a server as it is reached, with its variables filled in, and what it
// said when it last wanted a login (WWW-Authenticate).
func (m *Manager) Server(name string) (s Server, challenge string, err error) {
	m.mu.Lock()
	i := slices.IndexFunc(m.slots, func(s *slot) bool { return s.server.Name == name })
	if i >= 0 {
		s, challenge = m.slots[i].server, m.slots[i].challenge
	}
	m.mu.Unlock()
	if i < 0 {
		return Server{}, "", errors.New("there is no MCP server " + short(name, 60))
	}
	s, err = m.expanded(s)
	return s, challenge, err
}

// expanded is a server with its variables filled in.
func (m *Manager) expanded(s Server) (Server, error) {
	var value func(string) string
	if m.Expand != nil {
		value = func(name string) string { return m.Expand(s, name) }
	}
	return s.expanded(value)
}

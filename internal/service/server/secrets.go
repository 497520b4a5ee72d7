package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// Secrets are values that clients give and never get back, or that were shown in one response only: tokens,
// credentials, keys of webhooks. They are stored in a folder of the state folder, like tokens of logins; the
// book records only that there is one. The name of a secret is derived from its owner, so another tenant can't
// name it.

// KeepSecret stores a secret, and replaces one with the same name.
func (s *Server) KeepSecret(ctx context.Context, name string, value any) error {
	if s.State == "" {
		return &Problem{
			Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "this server stores no secrets, because it has no state folder",
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.secrets.Set(ctx, name, raw)
}

// Secret reads a secret. The error for a missing one is [fs.ErrNotExist].
func (s *Server) Secret(ctx context.Context, name string, into any) error {
	raw, _, err := s.secrets.Get(ctx, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// ForgetSecret removes a secret. If that fails, it is removed when the server starts again.
func (s *Server) ForgetSecret(name string) {
	if err := s.secrets.Delete(context.Background(), name); err != nil {
		s.warn("a secret can't be removed before the server restarts: " + err.Error())
	}
}

// Logins returns a client that refreshes tokens, and stores them among the secrets. The address is that of the
// server that refreshes them. Clients name it, so it is reached like their MCP servers.
func (s *Server) Logins(address string) *oauth.Client {
	var local []netip.Prefix
	if s.Guard != nil {
		local = s.Guard.Local
	}
	return &oauth.Client{HTTP: netguard.For(address, local).Unredirected(), Store: s.secrets}
}

// SweepSecrets removes secrets without an owner, which a crash has left. Left reports that for a name, and
// returns false for names that it does not know.
func (s *Server) SweepSecrets(ctx context.Context, left func(name string) bool) error {
	if s.State == "" {
		return nil
	}
	names, err := s.secrets.Names(ctx)
	for _, name := range names {
		if left(name) {
			s.ForgetSecret(name)
		}
	}
	return err
}

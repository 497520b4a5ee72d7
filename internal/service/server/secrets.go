package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// Secrets are what clients give and never get back, and what one answer alone has shown: tokens,
// credentials, keys of webhooks. They lie in a folder of the state folder, as tokens of logins do;
// the book holds that there is one. A secret has the name of what it belongs to, so nobody of
// another tenant can name it.

// KeepSecret keeps a secret, in place of one that had its name.
func (s *Server) KeepSecret(ctx context.Context, name string, value any) error {
	if s.State == "" {
		return &Problem{
			Status: http.StatusBadRequest, Type: "invalid_request_error", Message: "this server keeps no secrets, as it has no state folder",
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.secrets.Set(ctx, name, raw)
}

// Secret reads a secret. The error of one that is not there is [fs.ErrNotExist].
func (s *Server) Secret(ctx context.Context, name string, into any) error {
	raw, _, err := s.secrets.Get(ctx, name)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// ForgetSecret forgets a secret. What can't be forgotten now is when the server starts again.
func (s *Server) ForgetSecret(name string) {
	if err := s.secrets.Delete(context.Background(), name); err != nil {
		s.warn("a secret that is to go stays until the server starts again: " + err.Error())
	}
}

// Logins gets tokens that are refreshed, and keeps them among the secrets. The address is that of
// the server that they are refreshed at, which clients name: it is reached as their MCP servers are.
func (s *Server) Logins(address string) *oauth.Client {
	var local []netip.Prefix
	if s.Guard != nil {
		local = s.Guard.Local
	}
	return &oauth.Client{HTTP: netguard.For(address, local).Unredirected(), Store: s.secrets}
}

// SweepSecrets forgets the secrets that belong to nothing, as a crash has left them. Left says that
// of a name, and nothing of names that it does not know.
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

package mcp_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/mcp"
)

// tokens is what a person has logged in to.
type tokens struct {
	mu       sync.Mutex
	has      string
	renewed  string // what a refused token becomes
	renewals int
	err      error
}

func (t *tokens) Token(context.Context, mcp.Server) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.has, t.err
}

func (t *tokens) Renew(_ context.Context, _ mcp.Server, refused string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewals++
	if t.has == refused {
		t.has = t.renewed
	}
	return t.has, nil
}

func (t *tokens) set(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.has = token
}

// locked lets those in who have the token, and all but one tool to those who have a
// smaller one.
func locked(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer good":
		case "Bearer small":
			if r.Header.Get("Mcp-Method") == "tools/call" {
				w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="write"`)
				w.WriteHeader(http.StatusForbidden)
				return
			}
		default:
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://x.example/meta"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func TestTokens(t *testing.T) {
	server := honest()
	for kind, handler := range map[string]http.Handler{
		mcp.HTTP:      sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true}),
		mcp.SSE:       sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil),
		mcp.WebSocket: sockets(server),
	} {
		t.Run(kind, func(t *testing.T) {
			has := &tokens{}
			h := served(t, kind, "/mcp", locked(handler))
			h.Servers[0].Headers, h.Auth = nil, has
			s := h.begin("far", mcp.Login)
			if !strings.Contains(s.Why, "inspan mcp login far") {
				t.Errorf("%+v", s)
			}
			if got, challenge, err := h.Server("far"); err != nil || got.URL != h.Servers[0].URL || challenge != `Bearer resource_metadata="https://x.example/meta"` {
				t.Errorf("%+v, %q, %v", got, challenge, err)
			}
			h.Revive(t.Context()) // not logged in yet
			if s := h.status("far"); s.State != mcp.Login {
				t.Errorf("%+v", s)
			}
			has.set("old")
			has.renewed = "good"
			h.Revive(t.Context())
			h.until("ready", func() bool { return h.status("far").State == mcp.Ready })
			if res, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`); err != nil || text(res) != "you said x" {
				t.Errorf("%q, %v", text(res), err)
			}
			if has.renewals == 0 {
				t.Error("nothing was renewed")
			}
		})
	}
}

func TestTokensThatDoNotHelp(t *testing.T) {
	server := honest()
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true})
	for name, c := range map[string]struct {
		has   *tokens
		state mcp.State
		want  string
	}{
		"refused for good": {&tokens{has: "old", renewed: "older"}, mcp.Login, "log in"},
		"renewed to none":  {&tokens{has: "old"}, mcp.Login, "log in"},
		"out of order":     {&tokens{err: errors.New("the keychain is locked")}, mcp.Failed, "the keychain is locked"},
	} {
		t.Run(name, func(t *testing.T) {
			h := served(t, mcp.HTTP, "/mcp", locked(handler))
			h.Servers[0].Headers, h.Auth = nil, c.has
			if s := h.begin("far", c.state); !strings.Contains(s.Why, c.want) {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("not enough", func(t *testing.T) {
		h := served(t, mcp.HTTP, "/mcp", locked(handler))
		h.Servers[0].Headers, h.Auth = nil, &tokens{has: "small"}
		h.begin("far", mcp.Ready)
		if _, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`); err == nil || !strings.Contains(err.Error(), "log in for more") {
			t.Error(err)
		}
		h.until("login", func() bool { return h.status("far").State == mcp.Login })
		if _, challenge, _ := h.Server("far"); !strings.Contains(challenge, `scope="write"`) {
			t.Error(challenge)
		}
	})
}

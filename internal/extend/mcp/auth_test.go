package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/testkit"
)

// tokens are the logins of a person.
type tokens struct {
	mu       sync.Mutex
	has      string
	renewed  string // what a refused token becomes
	renewals int
	err      error
	signs    bool // they are bound to a key
	signed   int
	heard    string // the challenge of the last renewal
}

// bearer is a token that any holder may use.
type bearer string

func (b bearer) Apply(req *http.Request, _ string) error {
	req.Header.Set("Authorization", "Bearer "+string(b))
	return nil
}

func (t *tokens) Token(context.Context, mcp.Server) (mcp.Pass, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pass(), t.err
}

func (t *tokens) Renew(_ context.Context, _ mcp.Server, refused mcp.Pass, challenge string) (mcp.Pass, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.renewals++
	t.heard = challenge
	if t.pass() == refused {
		t.has = t.renewed
	}
	return t.pass(), nil
}

func (t *tokens) pass() mcp.Pass {
	switch {
	case t.has == "":
		return nil
	case t.signs:
		return bound{t, t.has}
	}
	return bearer(t.has)
}

// bound is a pass with a proof that says which one it is and for which nonce.
type bound struct {
	of    *tokens
	token string
}

func (b bound) Apply(req *http.Request, nonce string) error {
	if nonce == "unspeakable" {
		return errors.New("it can't be signed")
	}
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	b.of.signed++
	req.Header.Set("Authorization", "DPoP "+b.token)
	req.Header.Set("DPoP", fmt.Sprintf("%d %s %s", b.of.signed, nonce, req.Method))
	return nil
}

// proving accepts requests with a fresh proof for one of the last two nonces. There is a new nonce every few requests.
type proving struct {
	next http.Handler
	mu   sync.Mutex
	seen map[string]bool
	asks int // for a nonce
	bad  []string
}

func (p *proving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.check(w, r) {
		p.next.ServeHTTP(w, r)
	}
}

func (p *proving) check(w http.ResponseWriter, r *http.Request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Header.Get("Authorization") == "" {
		w.Header().Set("WWW-Authenticate", `DPoP algs="ES256"`)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	}
	proof, words := r.Header.Get("DPoP"), strings.Split(r.Header.Get("DPoP"), " ")
	if p.seen[proof] || len(words) != 3 || words[2] != r.Method || r.Header.Get("Authorization") != "DPoP good" {
		p.bad = append(p.bad, r.Method+" "+proof)
	}
	p.seen[proof] = true
	now := len(p.seen) / 4
	if words[1] == fmt.Sprint("nonce-", now) || words[1] == fmt.Sprint("nonce-", now-1) {
		return true
	}
	p.asks++
	w.Header().Set("DPoP-Nonce", fmt.Sprint("nonce-", now))
	w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce", error_description="a newer one"`)
	w.WriteHeader(http.StatusUnauthorized)
	return false
}

func TestBoundTokens(t *testing.T) {
	server := honest()
	for kind, handler := range map[string]http.Handler{
		mcp.HTTP:      sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil),
		mcp.SSE:       sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil),
		mcp.WebSocket: sockets(server),
	} {
		t.Run(kind, func(t *testing.T) {
			has, gate := &tokens{has: "good", signs: true}, &proving{next: handler, seen: map[string]bool{}}
			h := served(t, kind, "/mcp", gate)
			h.Servers[0].Headers, h.Auth = nil, has
			h.begin("far", mcp.Ready)
			for range 5 {
				if res, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`); err != nil || text(res) != "you said x" {
					t.Errorf("%q, %v", text(res), err)
				}
			}
			// One that is under way when all is closed may not come.
			testkit.WaitFor(t, "all that was signed to come", func() bool {
				has.mu.Lock()
				defer has.mu.Unlock()
				gate.mu.Lock()
				defer gate.mu.Unlock()
				return has.signed == len(gate.seen)
			})
			h.Close()
			gate.mu.Lock()
			defer gate.mu.Unlock()
			if gate.asks == 0 || len(gate.bad) > 0 || has.renewals > 0 {
				t.Errorf("asked for a nonce %d times, %d renewals, these are not good: %q", gate.asks, has.renewals, gate.bad)
			}
		})
	}
}

// TestBoundTokensThatDoNotHelp tells a nonce from a token that is refused.
func TestBoundTokensThatDoNotHelp(t *testing.T) {
	refuse := func(challenge, nonce string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", challenge)
			w.Header().Set("DPoP-Nonce", nonce)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	const wants = `DPoP error="use_dpop_nonce"`
	for name, c := range map[string]struct {
		has      *tokens
		handler  http.HandlerFunc
		state    mcp.State
		want     string
		renewals int
	}{
		"a nonce without end":    {&tokens{has: "good", signs: true}, refuse(wants, "n"), mcp.Failed, "rejects the nonce that it sent", 0},
		"a nonce without a word": {&tokens{has: "good", signs: true}, refuse(wants, ""), mcp.Failed, "rejects the nonce that it sent", 0},
		"a nonce for a bearer":   {&tokens{has: "good"}, refuse(wants, "n"), mcp.Login, "requires a login", 1},
		"a nonce for nobody":     {&tokens{}, refuse(wants, "n"), mcp.Login, "requires a login", 0},
		"refused":                {&tokens{has: "good", signs: true}, refuse(`DPoP error="invalid_token"`, "n"), mcp.Login, "requires a login", 1},
		"clocks that differ": {
			&tokens{has: "good", signs: true},
			refuse(`DPoP error="invalid_dpop_proof"`, ""), mcp.Failed, "check the clock", 0,
		},
		"another scheme":       {&tokens{has: "good", signs: true}, refuse(`Bearer realm="x"`, ""), mcp.Login, "requires a login", 1},
		"what can't be signed": {&tokens{has: "good", signs: true}, refuse(wants, "unspeakable"), mcp.Failed, "can't be signed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := served(t, mcp.HTTP, "/mcp", c.handler)
			h.Servers[0].Headers, h.Auth = nil, c.has
			s := h.begin("far", c.state)
			h.Close()
			if !strings.Contains(s.Why, c.want) || (c.has.renewals > 0) != (c.renewals > 0) ||
				c.renewals > 0 && c.has.heard == "" || strings.Contains(s.Why, "good") {
				t.Errorf("%+v, renewed %d times, heard %q", s, c.has.renewals, c.has.heard)
			}
		})
	}
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
		mcp.HTTP: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
			&sdk.StreamableHTTPOptions{Stateless: true}),
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
			if got, challenge, err := h.Server("far"); err != nil || got.URL != h.Servers[0].URL ||
				challenge != `Bearer resource_metadata="https://x.example/meta"` {
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
		"refused for good": {&tokens{has: "old", renewed: "older"}, mcp.Login, "requires a login"},
		"renewed to none":  {&tokens{has: "old"}, mcp.Login, "requires a login"},
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
		if _, err := h.call(t.Context(), "mcp__far__echo", `{"text":"x"}`); err == nil || !strings.Contains(err.Error(), "a login with more rights") {
			t.Error(err)
		}
		h.until("login", func() bool { return h.status("far").State == mcp.Login })
		if _, challenge, _ := h.Server("far"); !strings.Contains(challenge, `scope="write"`) {
			t.Error(challenge)
		}
	})
}

package managed_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// issuer is a token endpoint whose refresh tokens are valid once. The MCP server accepts the tokens that it issues.
type issuer struct {
	*httptest.Server
	taken *atomic.Value

	mu    sync.Mutex
	n     int
	forms []url.Values
	auths []string
	hold  chan struct{} // it answers when this is closed; nil means at once
	came  chan struct{} // has a token for each request
}

func newIssuer(t *testing.T, taken *atomic.Value) *issuer {
	t.Helper()
	i := &issuer{taken: taken, came: make(chan struct{}, 64)}
	i.Server = httptest.NewServer(i)
	t.Cleanup(i.Close)
	return i
}

func refreshToken(n int) string { return fmt.Sprintf("refresh-that-nobody-may-read-%03d", n) }
func accessToken(n int) string  { return fmt.Sprintf("access-that-nobody-may-read-%03d", n) }

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	i.mu.Lock()
	hold := i.hold
	i.forms, i.auths = append(i.forms, r.PostForm), append(i.auths, r.Header.Get("Authorization"))
	i.mu.Unlock()
	i.came <- struct{}{}
	if hold != nil {
		<-hold
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.PostForm.Get("refresh_token") != refreshToken(i.n) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"` + r.PostForm.Get("refresh_token") + ` is spent"}`))
		return
	}
	i.n++
	i.taken.Store(accessToken(i.n))
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": accessToken(i.n), "refresh_token": refreshToken(i.n), "token_type": "Bearer", "expires_in": 3600,
	})
}

// asked is the number of token requests.
func (i *issuer) asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return len(i.forms)
}

// TestRefresh checks that an expired token is refreshed once for all sessions, even if the server restarts
// meanwhile, and that a refusal is reported to the session and to webhooks. No token leaks.
func TestRefresh(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) {
		s.Options.Allow, s.WebhookTo = []string{"mcp__peer__repeat"}, netguard.Hosts{"127.0.0.1"}
	})
	var token atomic.Value
	token.Store("none")
	address := peer(t, &token)
	i := newIssuer(t, &token)
	n := newNews(t)
	h.made("/v1/organizations/webhooks", object{"url": n.h.URL, "enabled_events": []any{"vault_credential.refresh_failed"}})
	agent := h.made("/v1/agents", object{
		"name": "a", "model": "script", "mcp_servers": []any{object{"type": "url", "name": "peer", "url": address}},
		"tools": []any{
			object{"type": "mcp_toolset", "mcp_server_name": "peer", "default_config": object{"permission_policy": object{"type": "always_allow"}}},
		},
	})
	env := h.made("/v1/environments", someEnv)
	vault := h.made("/v1/vaults", object{"display_name": "Ann"})
	at := "/v1/vaults/" + vault + "/credentials"
	made := h.must("POST", at, object{"auth": object{
		"type": "mcp_oauth", "mcp_server_url": address, "access_token": "ended-that-nobody-may-read", "expires_at": "2020-01-01T00:00:00Z",
		"refresh": object{
			"client_id": "us", "refresh_token": refreshToken(0), "token_endpoint": i.URL, "scope": "read", "resource": address,
			"token_endpoint_auth": object{"type": "client_secret_basic", "client_secret": "secret-that-nobody-may-read"},
		},
	}})
	one := at + "/" + fmt.Sprint(made["id"])
	raw, _ := json.Marshal(made)
	has(t, string(raw), `"client_id":"us"`, `"token_endpoint_auth":{"type":"client_secret_basic"}`, `"scope":"read"`)
	session := func() string {
		return h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "vault_ids": []any{vault}})
	}
	told, call := string(raw), "call: mcp__peer__repeat {}"
	first, others := session(), []string{session(), session()}
	ran := make([]string, len(others))
	var wg sync.WaitGroup
	for n, id := range others {
		wg.Go(func() { ran[n] = h.run(id, call) })
	}
	wg.Wait()
	for _, text := range ran {
		has(t, text, "you are in with Bearer [secret:")
		told += text
	}
	if i.asked() != 1 || i.auths[0] != "Basic "+"dXM6c2VjcmV0LXRoYXQtbm9ib2R5LW1heS1yZWFk" || i.forms[0].Get("scope") != "read" ||
		i.forms[0].Get("resource") != address {
		t.Errorf("%d %v %v", i.asked(), i.auths, i.forms)
	}
	if expires := fmt.Sprint(h.must("GET", one, nil)["auth"].(object)["expires_at"]); expires <= "2026" {
		t.Errorf("it expires at %s", expires)
	}

	// The MCP server no longer accepts the token, and the server ends before there is a new one.
	<-i.came
	i.mu.Lock()
	i.hold = make(chan struct{})
	i.mu.Unlock()
	token.Store("none")
	h.must("POST", "/v1/sessions/"+first+"/events", object{"events": []any{
		object{"type": "user.message", "content": []any{object{"type": "text", "text": call}}},
	}})
	<-i.came
	closing := make(chan struct{})
	wg.Go(func() {
		close(closing)
		h.close()
	})
	<-closing
	i.mu.Lock()
	close(i.hold)
	i.hold = nil
	i.mu.Unlock()
	wg.Wait()
	h.open()
	h.until("/v1/sessions/"+first, "idle")
	text := h.run(first, call)
	has(t, text, "you are in with Bearer [secret:")
	told += text
	if i.asked() != 2 {
		t.Errorf("%d requests for tokens", i.asked())
	}

	// No token is available until a person has logged in again.
	h.must("POST", one, object{"auth": object{
		"type": "mcp_oauth", "access_token": "again-that-nobody-may-read", "expires_at": "2020-01-01T00:00:00Z",
		"refresh": object{"refresh_token": "spent-that-nobody-may-read"},
	}})
	last := session()
	told += h.run(last, call)
	testkit.WaitFor(t, "the session to be as it was", func() bool {
		_, text = h.do("GET", "/v1/sessions/"+last+"/events", nil)
		return strings.Contains(text, "mcp_authentication_failed_error")
	})
	told += text
	has(t, text, `"mcp_server_name":"peer"`, `"retry_status":{"type":"terminal"}`, "invalid_grant", fmt.Sprint(made["id"]))
	n.of(fmt.Sprint(made["id"]), "vault_credential.refresh_failed")
	i.mu.Lock()
	good := refreshToken(i.n)
	i.mu.Unlock()
	h.must("POST", one, object{"auth": object{"type": "mcp_oauth", "refresh": object{"refresh_token": good}}})
	text = h.run(last, call)
	has(t, text, "you are in with Bearer [secret:")
	told += text
	for _, path := range []string{one, at, "/v1/sessions/" + first + "/events", "/api/v1/audit"} {
		_, text := h.do("GET", path, nil)
		told += text
	}
	if strings.Contains(told, "that-nobody-may-read") || h.leaks("that-nobody-may-read") {
		t.Error("a secret has come out")
	}
	h.must("DELETE", one, nil)
	if h.onDisk("that-nobody-may-read") {
		t.Error("the secrets of a credential that is deleted are still there")
	}
}

// TestRefusedToken checks that a session gets one report per run that an MCP server refuses its token, and that at most
// one new token is requested then.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	var token, other atomic.Value
	token.Store("none")
	address, i := peer(t, &token), newIssuer(t, &other)
	agent := h.made("/v1/agents", object{
		"name": "a", "model": "script", "mcp_servers": []any{object{"type": "url", "name": "peer", "url": address}},
		"tools": []any{object{"type": "mcp_toolset", "mcp_server_name": "peer"}},
	})
	env := h.made("/v1/environments", someEnv)
	for name, auth := range map[string]object{
		"static": {"type": "static_bearer", "mcp_server_url": address, "token": "static-that-nobody-may-read"},
		"oauth": {
			"type": "mcp_oauth", "mcp_server_url": address, "access_token": "ended-that-nobody-may-read", "expires_at": "2999-01-01T00:00:00Z",
			"refresh": object{
				"client_id": "us", "refresh_token": refreshToken(0), "token_endpoint": i.URL, "token_endpoint_auth": object{"type": "none"},
			},
		},
	} {
		vault := h.made("/v1/vaults", object{"display_name": "Ann"})
		credential := h.made("/v1/vaults/"+vault+"/credentials", object{"auth": auth})
		session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "vault_ids": []any{vault}})
		const runs = 2
		for range runs {
			h.run(session, "call: mcp__peer__repeat {}\nsay: x")
		}
		var text string
		testkit.WaitFor(t, "the session to be as it was", func() bool {
			_, text = h.do("GET", "/v1/sessions/"+session+"/events?limit=1000", nil)
			return strings.Contains(text, "mcp_authentication_failed_error")
		})
		has(t, text, `"mcp_server_name":"peer"`, `"retry_status":{"type":"terminal"}`, "refuses the token of credential "+credential)
		const opened = runs + 1 // at most, once to make its workspace
		if n := strings.Count(text, "mcp_authentication_failed_error"); n > opened || strings.Contains(text, "that-nobody-may-read") {
			t.Errorf("%s: %d errors when it was opened %d times: %s", name, n, opened, text)
		}
		if name == "oauth" && (i.asked() == 0 || i.asked() > opened) {
			t.Errorf("%d tokens were asked for when it was opened %d times", i.asked(), opened)
		}
	}
}

// TestRefreshStrict checks invalid refreshes.
func TestRefreshStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red := h.as("ann", "red")
	vault := red.made("/v1/vaults", object{"display_name": "v"})
	at := "/v1/vaults/" + vault + "/credentials"
	refresh := object{
		"client_id": "us", "refresh_token": "r", "token_endpoint": "https://example.org/token", "token_endpoint_auth": object{"type": "none"},
	}
	auth := func(refresh any) object {
		return object{"auth": object{
			"type": "mcp_oauth", "mcp_server_url": "https://mcp.example.org", "access_token": "a", "refresh": refresh,
		}}
	}
	for name, tc := range map[string]struct {
		refresh any
		want    string
	}{
		"no token":            {with(refresh, "refresh_token", ""), "refresh_token"},
		"no client":           {with(refresh, "client_id", ""), "client_id"},
		"no endpoint":         {with(refresh, "token_endpoint", ""), "token_endpoint"},
		"this machine":        {with(refresh, "token_endpoint", "https://127.0.0.1/token"), "token_endpoint"},
		"this machine's name": {with(refresh, "token_endpoint", "https://a.localhost/token"), "token_endpoint"},
		"in the clear":        {with(refresh, "token_endpoint", "http://example.org/token"), "token_endpoint"},
		"an unknown way":      {with(refresh, "token_endpoint_auth", object{"type": "private_key_jwt"}), "token_endpoint_auth.type"},
		"no secret":           {with(refresh, "token_endpoint_auth", object{"type": "client_secret_post"}), "client_secret"},
		"a secret of nobody":  {with(refresh, "token_endpoint_auth", object{"type": "none", "client_secret": "s"}), "client_secret"},
		"a line":              {with(refresh, "scope", "a\nb"), "scope"},
		"an unknown field":    {with(refresh, "audience", "x"), "audience"},
		"no object":           {"x", "refresh"},
	} {
		if status, message := red.problem("POST", at, auth(tc.refresh)); status != http.StatusBadRequest || !strings.Contains(message, tc.want) {
			t.Errorf("%s: %d %s", name, status, message)
		}
	}
	one := at + "/" + red.made(at, auth(refresh))
	for name, tc := range map[string]struct {
		refresh any
		want    string
	}{
		"another client":   {object{"client_id": "x"}, "can't be changed"},
		"another endpoint": {object{"token_endpoint": "https://example.com"}, "can't be changed"},
		"another way": {
			object{"token_endpoint_auth": object{"type": "client_secret_basic", "client_secret": "s"}},
			"the credential has none",
		},
	} {
		body := object{"auth": object{"type": "mcp_oauth", "refresh": tc.refresh}}
		if status, message := red.problem("POST", one, body); status != http.StatusBadRequest || !strings.Contains(message, tc.want) {
			t.Errorf("%s: %d %s", name, status, message)
		}
	}
	v := red.must("POST", one, object{"auth": object{"type": "mcp_oauth", "refresh": object{"scope": "more"}}})
	if v["auth"].(object)["refresh"].(object)["scope"] != "more" {
		t.Error(v)
	}
}

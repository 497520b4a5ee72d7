package managed_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/inspan/inspan/internal/service/server"
)

// peer is an MCP server that wants a token, and has a tool that repeats it.
func peer(t *testing.T, token *atomic.Value) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "repeat", Description: "Repeats the token."},
		func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			said := "you are in with " + req.Extra.Header.Get("Authorization") + " and " + fmt.Sprint(token.Load())
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: said}}}, nil, nil
		})
	next := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+fmt.Sprint(token.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	t.Cleanup(func() { // those whose end it has refused, because the token was another by then
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	return h.URL + "/mcp"
}

// secrets is the folder of values that clients never get back.
func (h *house) secrets() string { return filepath.Join(h.dir, "state", "server-secrets") }

// leaks reports whether a text is in any file of the server, but for the folder of secrets.
func (h *house) leaks(text string) bool {
	h.t.Helper()
	aside := filepath.Join(h.t.TempDir(), "aside")
	err := os.Rename(h.secrets(), aside)
	found := h.onDisk(text)
	if err == nil {
		err = os.Rename(aside, h.secrets())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// TestVaults checks that a token reaches the server that it is for as a header, and nothing else: no answer, log, book
// or workspace; and that it is gone with its credential.
func TestVaults(t *testing.T) {
	t.Parallel()
	const first, second = "the-first-token-that-nobody-may-read-9f2c", "the-second-token-that-nobody-may-read-77ab"
	h := newHouse(t, func(s *server.Server) { s.Options.Allow = []string{"mcp__peer__repeat"} })
	var token atomic.Value
	token.Store(first)
	address := peer(t, &token)
	agent := h.made("/v1/agents", object{
		"name": "a", "model": "script", "mcp_servers": []any{object{"type": "url", "name": "peer", "url": address}},
		"tools": []any{
			object{"type": "agent_toolset_20260401"},
			object{"type": "mcp_toolset", "mcp_server_name": "peer", "default_config": object{"permission_policy": object{"type": "always_allow"}}},
		},
	})
	env := h.made("/v1/environments", someEnv)
	vault := h.made("/v1/vaults", object{"display_name": "Ann"})
	at := "/v1/vaults/" + vault + "/credentials"
	made := h.must("POST", at, object{"auth": object{
		"type":           "static_bearer",
		"mcp_server_url": strings.ToUpper(address[:4]) + address[4:] + "/", "token": first,
	}})
	raw, _ := json.Marshal(made)
	has(t, string(raw), `"type":"static_bearer"`, vault)
	one := at + "/" + fmt.Sprint(made["id"])
	start := func(vaults ...any) string {
		return h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "vault_ids": vaults})
	}
	told := string(raw)
	session := start(vault)
	ran := h.run(session, "call: mcp__peer__repeat {}")
	has(t, ran, "you are in with Bearer [secret:")
	told += ran + h.run(start(), "call: mcp__peer__repeat {}")
	if strings.Contains(told, "you are in with Bearer "+first) || strings.Count(told, "you are in") != 1 {
		t.Errorf("whoever names no vault is in: %s", told)
	}
	// the placeholder gives no one the token, least of all in a file
	standIn := "[secret:" + strings.SplitN(strings.SplitN(ran, "[secret:", 2)[1], "]", 2)[0] + "]"
	written := h.run(start(vault), `call: write {"file_path":"x.txt","content":"`+standIn+`"}`+"\nbash: wc -c x.txt; rev x.txt")
	if !strings.Contains(written, strconv.Itoa(len(standIn))+" x.txt") {
		t.Errorf("a file has what %s stands for: %s", standIn, written)
	}
	told += written
	token.Store(second)
	h.must("POST", one, object{"auth": object{"type": "static_bearer", "token": second}})
	h.close()
	h.open()
	ran = h.run(session, "call: mcp__peer__repeat {}")
	has(t, ran, "you are in")
	told += ran + h.run(session, "bash: env; ls -a")
	for _, path := range []string{
		one, at, "/v1/vaults/" + vault, "/v1/sessions/" + session,
		"/v1/sessions/" + session + "/events", "/api/v1/audit",
	} {
		_, text := h.do("GET", path, nil)
		told += text
	}
	entries, err := os.ReadDir(h.secrets())
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be read by others: %v, %v", e.Name(), info.Mode(), err)
		}
		if e.Type().IsRegular() {
			files++
		}
	}
	if files != 1 {
		t.Errorf("%d secrets are kept, want that of the credential", files)
	}
	for _, secret := range []string{first, second} {
		if strings.Contains(told, secret) {
			t.Errorf("somebody was told the token: %s", told)
		}
		if h.leaks(secret) {
			t.Error("the token is on the disk, not only among the secrets")
		}
	}
	h.must("POST", one+"/archive", nil)
	if h.onDisk(second) {
		t.Error("the token of an archived credential is still there")
	}
	has(t, h.run(start(vault), "call: mcp__peer__repeat {}"), "is_error\":true")
	h.must("POST", at, object{"auth": object{
		"type": "mcp_oauth", "mcp_server_url": address, "access_token": second,
		"expires_at": "2030-01-01T00:00:00Z",
	}})
	has(t, h.run(start(vault), "call: mcp__peer__repeat {}"), "you are in")
	h.must("DELETE", "/v1/vaults/"+vault, nil)
	if h.onDisk(second) {
		t.Error("the token of a vault that is deleted is still there")
	}
}

// TestVaultsStrict checks that invalid requests are refused with the reason, and that their secrets are not kept.
func TestVaultsStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	vault := h.made("/v1/vaults", object{"display_name": "n"})
	at := "/v1/vaults/" + vault + "/credentials"
	bearer := object{"type": "static_bearer", "mcp_server_url": "https://a.example/mcp", "token": "t"}
	auth := func(a object) object { return object{"auth": a} }
	one := at + "/" + h.made(at, auth(bearer))
	h.must("DELETE", at+"/"+h.made(at, auth(with(someVariable, "secret_name", "GONE"))), nil)
	archived := h.made("/v1/vaults", object{"display_name": "n"})
	h.must("POST", "/v1/vaults/"+archived+"/archive", nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	session := func(vaults ...any) object { return object{"agent": agent, "environment_id": env, "vault_ids": vaults} }
	other := with(bearer, "mcp_server_url", "https://b.example")
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		{"POST", "/v1/vaults", object{}, 400, "display_name"},
		{"POST", at, object{}, 400, "auth"},
		{"POST", at, auth(bearer), 409, "for this server"},
		{"POST", at, auth(with(other, "type", "basic")), 400, "auth.type"},
		{"POST", at, auth(with(someVariable, "secret_name", "A B")), 400, "secret_name"},
		{"POST", at, auth(with(someVariable, "secret_name", "LD_PRELOAD")), 400, "steers"},
		{"POST", at, auth(with(someVariable, "secret_name", "https_proxy")), 400, "steers"},
		{"POST", at, auth(with(someVariable, "secret_name", "PATH")), 400, "steers"},
		{"POST", at, auth(with(someVariable, "secret_name", "SSL_CERT_FILE")), 400, "steers"},
		{"POST", at, auth(with(someVariable, "secret_value", "a\r\nb: c")), 400, "secret_value"},
		{"POST", at, auth(object{"type": "environment_variable", "secret_name": "A", "secret_value": "b"}), 400, "networking"},
		{"POST", at, auth(with(someVariable, "networking", object{"type": "limited", "allowed_hosts": []any{}})), 400, "allowed_hosts"},
		{"POST", at, auth(with(someVariable, "networking", object{"type": "limited", "allowed_hosts": []any{"https://a.b"}})), 400, "no host"},
		{"POST", at, auth(with(someVariable, "networking", object{"type": "limited", "allowed_hosts": []any{"a.b:443"}})), 400, "no host"},
		{"POST", at, auth(with(someVariable, "networking", object{"type": "limited", "allowed_hosts": []any{"*"}})), 400, "no host"},
		{"POST", at, auth(with(someVariable, "networking", object{"type": "unrestricted", "allowed_hosts": []any{"a.b"}})), 400, "networking"},
		{"POST", at, auth(with(someVariable, "injection_location", object{"header": false})), 400, "sent nowhere"},
		{"POST", at, auth(with(someVariable, "mcp_server_url", "https://a.b")), 400, "mcp_server_url"},
		{"POST", at, auth(with(other, "token", "")), 400, "auth.token"},
		{"POST", at, auth(with(other, "token", "a\r\nb: c")), 400, "header"},
		{"POST", at, auth(with(other, "token", "${HOME}")), 400, "${"},
		{"POST", at, auth(with(other, "access_token", "x")), 400, "another type"},
		{"POST", at, auth(with(other, "mcp_server_url", "http://b.example")), 400, "in the clear"},
		{"POST", at, auth(with(other, "mcp_server_url", "https://u:p@b.example")), 400, "address"},
		{"POST", at, auth(object{
			"type": "mcp_oauth", "mcp_server_url": "https://b.example", "access_token": "x",
			"refresh": object{},
		}), 400, "refresh"},
		{"POST", at, auth(object{
			"type": "mcp_oauth", "mcp_server_url": "https://b.example", "access_token": "x",
			"expires_at": "soon",
		}), 400, "auth"},
		{"POST", one, auth(object{"type": "mcp_oauth", "access_token": "x"}), 400, "static_bearer"},
		{"POST", one, auth(object{"type": "static_bearer", "mcp_server_url": "https://c.example"}), 400, "changed"},
		{"GET", at + "/vcrd_none", nil, 404, "vcrd_none"},
		{"POST", one + "/mcp_oauth_validate", nil, 404, "MANAGED.md"},
		{"POST", "/v1/vaults/" + archived, object{"display_name": "x"}, 409, "archived"},
		{"POST", "/v1/vaults/" + archived + "/credentials", auth(bearer), 409, "archived"},
		{"POST", "/v1/sessions", session(archived), 409, "archived"},
		{"POST", "/v1/sessions", session(vault, vault), 400, "twice"},
		{"POST", "/v1/sessions", session("vlt_none"), 404, "vlt_none"},
	} {
		status, message := h.problem(tc.method, tc.path, tc.body)
		if status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%s %s %v: %d %s, want %d with %q", tc.method, tc.path, tc.body, status, message, tc.status, tc.want)
		}
	}
	if files, err := filepath.Glob(filepath.Join(h.secrets(), "*.json")); err != nil || len(files) != 1 {
		t.Errorf("%v are kept, want one: %v", files, err)
	}
}

// TestTenantsVaults checks that no tenant sees or uses the vaults of another.
func TestTenantsVaults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	vault := "/v1/vaults/" + red.made("/v1/vaults", object{"display_name": "n"})
	auth := object{"auth": object{"type": "static_bearer", "mcp_server_url": "https://a.example", "token": "t"}}
	one := vault + "/credentials/" + red.made(vault+"/credentials", auth)
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"GET", vault, nil},
		{"POST", vault, object{"display_name": "x"}},
		{"POST", vault + "/archive", nil},
		{"DELETE", vault, nil},
		{"GET", vault + "/credentials", nil},
		{"POST", vault + "/credentials", auth},
		{"GET", one, nil},
		{"POST", one, object{"display_name": "x"}},
		{"POST", one + "/archive", nil},
		{"DELETE", one, nil},
	} {
		if status, message := blue.problem(tc.method, tc.path, tc.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
	if n := len(blue.must("GET", "/v1/vaults", nil)["data"].([]any)); n != 0 {
		t.Errorf("another tenant sees %d vaults", n)
	}
	for _, other := range []*house{blue, h} { // who sees all uses none of another tenant, either
		agent, env := other.made("/v1/agents", someAgent), other.made("/v1/environments", someEnv)
		status, message := other.problem("POST", "/v1/sessions", object{
			"agent": agent, "environment_id": env, "vault_ids": []any{strings.TrimPrefix(vault, "/v1/vaults/")},
		})
		if status != http.StatusNotFound {
			t.Errorf("a session with the vault of another tenant: %d %s", status, message)
		}
	}
}

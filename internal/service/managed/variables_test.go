package managed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

var someVariable = object{
	"type": "environment_variable", "secret_name": "API_KEY", "secret_value": "the-value-that-nobody-may-read-9f2c",
	"networking": object{"type": "limited", "allowed_hosts": []any{"api.example.org"}},
}

// TestVariables checks that commands of a session get placeholders for secrets, and that the secrets are stored nowhere
// else.
func TestVariables(t *testing.T) {
	t.Parallel()
	const first, second = "the-value-that-nobody-may-read-9f2c", "another-value-that-nobody-may-read-77ab"
	h := newHouse(t, nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	vaults := []any{h.made("/v1/vaults", object{"display_name": "a"}), h.made("/v1/vaults", object{"display_name": "b"})}
	at := func(i int) string { return "/v1/vaults/" + fmt.Sprint(vaults[i]) + "/credentials" }
	made := h.must("POST", at(0), object{"auth": someVariable})
	raw, _ := json.Marshal(made)
	has(t, string(raw), `"injection_location":{"body":false,"header":true}`, `"allowed_hosts":["api.example.org"]`, `"type":"limited"`)
	h.must("POST", at(1), object{"auth": with(someVariable, "secret_value", second)})
	h.must("POST", at(1), object{"auth": with(with(someVariable, "secret_value", second), "secret_name", "OTHER")})
	one := at(0) + "/" + fmt.Sprint(made["id"])
	status, message := h.problem("POST", at(0), object{"auth": someVariable})
	if status != http.StatusConflict || !strings.Contains(message, "for this variable") {
		t.Errorf("the same variable twice: %d %s", status, message)
	}
	for _, auth := range []object{
		{"secret_name": "X"},
		{"networking": object{"type": "limited"}},
		{"injection_location": object{"header": false}},
		// the secret would go where it does not go now
		{"networking": object{"type": "unrestricted"}},
		{"injection_location": object{"body": true}},
		{"networking": object{"type": "limited", "allowed_hosts": []any{"api.example.org", "evil.example.com"}}},
	} {
		body := object{"auth": with(auth, "type", "environment_variable")}
		if status, message := h.problem("POST", one, body); status != http.StatusBadRequest {
			t.Errorf("%v: %d %s", auth, status, message)
		}
	}
	h.must("POST", one, object{"auth": object{
		"type": "environment_variable", "networking": object{"type": "limited", "allowed_hosts": []any{"api.example.org"}},
	}})
	const standIn = "placeholder_"
	told := string(raw)
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "vault_ids": vaults})
	show := `bash: echo "is ${API_KEY:0:12} ${#API_KEY}, ${OTHER:0:12}"; env | sort; head -c 30 "$SSL_CERT_FILE"`
	ran := h.run(session, show)
	has(t, ran, "is "+standIn+" 38, "+standIn, "BEGIN CERTIFICATE")
	told += ran
	v := h.must("POST", one, object{"auth": object{
		"type": "environment_variable", "secret_value": second, "injection_location": object{"body": true},
		"networking": object{"type": "unrestricted"},
	}})
	raw, _ = json.Marshal(v)
	has(t, string(raw), `"injection_location":{"body":true,"header":true}`, `"networking":{"type":"unrestricted"}`)
	h.close()
	h.open()
	ran = h.run(session, show)
	has(t, ran, "is "+standIn+" 38")
	told += string(raw) + ran
	for _, path := range []string{one, at(0), "/v1/sessions/" + session + "/events", "/api/v1/audit"} {
		_, text := h.do("GET", path, nil)
		told += text
	}
	for _, secret := range []string{first, second} {
		if strings.Contains(told, secret) || h.leaks(secret) {
			t.Errorf("somebody was told the secret, or it is on the disk: %s", told)
		}
	}
	if h.onDisk(first) {
		t.Error("a secret that was replaced is still there")
	}
	bare := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	has(t, h.run(bare, show), "is  0, ")
	h.must("DELETE", "/v1/vaults/"+fmt.Sprint(vaults[0]), nil)
	h.must("DELETE", "/v1/vaults/"+fmt.Sprint(vaults[1]), nil)
	if h.onDisk(second) {
		t.Error("the secrets of a vault that is deleted are still there")
	}
}

// own is an address of this machine that its sandboxes take for one elsewhere.
func own(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr().String()
		}
	}
	t.Skip("NO NETWORK HERE")
	return ""
}

// TestVariablesAreSent has a command of a session send the placeholders of two secrets to a host that may get one of
// them. The host's echo of the secret does not enter the session.
func TestVariablesAreSent(t *testing.T) {
	t.Parallel()
	const value, other = "the-value-that-nobody-may-read-9f2c", "another-value-that-nobody-may-read-77ab"
	host := own(t)
	got := make(chan [2]string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- [2]string{r.Header.Get("X-Key"), r.Header.Get("X-Other")}
		fmt.Fprint(w, "you have sent "+r.Header.Get("X-Key"))
	}))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	h := newHouse(t, func(s *server.Server) { s.Options.Allow = []string{"network(" + host + ")"} })
	config := filepath.Join(h.dir, "config")
	local := []byte("[sandbox]\nlocal = [\"" + host + "/32\"]\n")
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "config.toml"), local, 0o600)); err != nil {
		t.Fatal(err)
	}
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	vault := h.made("/v1/vaults", object{"display_name": "a"})
	at := "/v1/vaults/" + vault + "/credentials"
	h.must("POST", at, object{"auth": with(someVariable, "networking", object{"type": "limited", "allowed_hosts": []any{host}})})
	h.must("POST", at, object{"auth": with(with(someVariable, "secret_name", "OTHER"), "secret_value", other)})
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env, "vault_ids": []any{vault}})
	told := h.run(session, `bash: curl -s -m 20 -H "X-Key: $API_KEY" -H "X-Other: $OTHER" `+s.URL)
	has(t, told, "you have sent [secret:")
	if keys := <-got; keys[0] != value || !strings.HasPrefix(keys[1], "placeholder_") {
		t.Errorf("the host has got %q", keys)
	}
	for _, secret := range []string{value, other} {
		if strings.Contains(told, secret) || h.leaks(secret) {
			t.Errorf("the secret has come out: %s", told)
		}
	}
}

// TestLimitedNetworks checks that a session reaches only the hosts of its environment among those that the server's
// rules allow.
func TestLimitedNetworks(t *testing.T) {
	t.Parallel()
	host := own(t)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "reached") }))
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Listener.Close()
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	h := newHouse(t, func(s *server.Server) { s.Options.Allow = []string{"network(" + host + ")"} })
	config := filepath.Join(h.dir, "config")
	local := []byte("[sandbox]\nlocal = [\"" + host + "/32\"]\n")
	if err := errors.Join(os.MkdirAll(config, 0o700), os.WriteFile(filepath.Join(config, "config.toml"), local, 0o600)); err != nil {
		t.Fatal(err)
	}
	agent := h.made("/v1/agents", someAgent)
	for name, c := range map[string]struct {
		networking object
		reached    bool
	}{
		"unrestricted":      {object{"type": "unrestricted"}, true},
		"its host":          {object{"type": "limited", "allowed_hosts": []any{"api.example.org", host}}, true},
		"another host":      {object{"type": "limited", "allowed_hosts": []any{"api.example.org"}}, false},
		"no host":           {object{"type": "limited"}, false},
		"package managers":  {object{"type": "limited", "allow_package_managers": true}, false},
		"what rules forbid": {object{"type": "limited", "allowed_hosts": []any{"127.0.0.9"}}, false},
	} {
		env := h.made("/v1/environments", object{"name": name, "config": object{"type": "cloud", "networking": c.networking}})
		told := h.run(h.made("/v1/sessions", object{"agent": agent, "environment_id": env}), "bash: curl -s -m 5 "+s.URL)
		if strings.Contains(told, "reached") != c.reached {
			t.Errorf("%s: reached must be %v: %s", name, c.reached, told)
		}
	}
}

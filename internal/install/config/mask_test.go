package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/install/config"
)

// TestShownWithoutSecrets checks what is hidden where settings are shown, and that the location of a secret stays
// visible.
func TestShownWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"[mcp.servers.x.headers]\nAuthorization = 'Bearer abc'": `mcp.servers.x.headers.Authorization = "***"`,
		"[mcp.servers.x.headers]\nX-Team = 'red'":               `mcp.servers.x.headers.X-Team = "***"`,
		"[mcp.servers.x]\nenv = { API_KEY = 'abc' }":            `mcp.servers.x.env.API_KEY = "***"`,
		"[mcp.servers.x]\nenv = { N = 3 }":                      `mcp.servers.x.env.N = "***"`,
		"[mcp.servers.x]\nenv = { API_KEY = '${API_KEY}' }":     `mcp.servers.x.env.API_KEY = "${API_KEY}"`,
		"[mcp.servers.x.headers]\nA = 'Bearer $TOKEN'":          `mcp.servers.x.headers.A = "Bearer $TOKEN"`,
		"[mcp.servers.x.headers]\nA = 'abc $TOKEN'":             `mcp.servers.x.headers.A = "***"`,
		"[mcp.servers.env]\ndir = '/x'":                         `mcp.servers.env.dir = "/x"`,
		"[[hook]]\nheaders = { X-Key = 'abc' }":                 `hook[0].headers.X-Key = "***"`,
		"hook = [{ headers = { X-Key = 'abc' } }]":              `hook = [{ headers = { X-Key = "***" } }]`,
		"[mcp.servers.x]\ncommand = ['srv', '--token', 'abc', '--api-key=abc', 'b']": `mcp.servers.x.command = ["srv", "--token", "***", ` +
			`"--api-key=***", "b"]`,
		"[mcp.servers.x]\ncommand = ['srv', '--token', '$T', '-e', 'API_KEY=abc']": `mcp.servers.x.command = ["srv", "--token", "$T", "-e", ` +
			`"API_KEY=***"]`,
		"[[hook]]\ncommand = 'say --token abc -v; PASSWORD=\"a b\" x'":     `hook[0].command = "say --token *** -v; PASSWORD=*** x"`,
		"[[hook]]\ncommand = \"curl -H 'Authorization: Bearer abc' x\"":    `hook[0].command = "curl -H 'Authorization: ***' x"`,
		"[[hook]]\ncommand = 'say glpat-Qw7eRt2yUi9oPa4sDf6g'":             `hook[0].command = "say ***"`,
		"[[hook]]\ncommand = 'say --token $T'":                             `hook[0].command = "say --token $T"`,
		"[providers.x]\nbase_url = 'https://user:pw@x/v1?api_key=abc&n=1'": `providers.x.base_url = "https://***@x/v1?api_key=***&n=1"`,
		"[providers.x]\nkey_env = 'X_KEY'\n":                               `providers.x.key_env = "X_KEY"`,
		"[providers.x]\napi_key = 'abc'\n":                                 `providers.x.api_key = "***"`,
		"token = 123":                                                      `token = "***"`,
		"max_tokens = 5":                                                   `max_tokens = 5`,
		"[keys]\nsubmit = ['enter']":                                       `keys.submit = ["enter"]`,
		"[mcp.secrets]\nx = ['API_KEY']":                                   `mcp.secrets.x = ["API_KEY"]`,
		"[sandbox]\nenvironment = ['DATABASE_KEY']":                        `sandbox.environment = ["DATABASE_KEY"]`,
	} {
		path := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := config.Settings(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list {
			got = append(got, s.Key+" = "+s.Value)
		}
		if diff := cmp.Diff(want, strings.Join(got, "\n")); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
	}
}

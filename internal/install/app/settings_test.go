package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
	"github.com/inspan/inspan/internal/install/connect"
	"github.com/inspan/inspan/internal/install/permission"
	"github.com/inspan/inspan/internal/safety/consent"
)

// TestSettingsAreChecked checks that settings that make no valid rule, server or login are an error when they are
// loaded, which names the file and the key.
func TestSettingsAreChecked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	for text, want := range map[string]string{
		"[providers.x]\nkind='openai'\n[providers.x.oauth]\nclient_id='i'":         "providers.x.oauth: it needs token_url",
		"[providers.x]\nkind='openai'\n[providers.x.oauth]\ntoken_url='https://x'": "client_id, and authorize_url or device_url",
		"[providers.x]\nkind='openai'\n[providers.x.oauth]\ntoken_url='https://x'\n" +
			"grant='client_credentials'": "needs a client_id, and client_secret_env or client_key_file",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='password'}":   `servers.x.oauth: unknown grant "password"; use client_credentials`,
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='jwt_bearer'}": "needs an assertion_file",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='jwt_bearer', " +
			"assertion_file='token'}": `"token" is not an absolute path`,
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='client_credentials', client_id='i', client_secret_env='S', " +
			"client_key_file='/key'}": "either client_secret_env or client_key_file",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='jwt_bearer', assertion_file='/t', " +
			"client_key_file='/key'}": "need a client_id",
		"[mcp.servers.x]\nurl='https://x'\noauth={client_key_file='/key'}": "need a grant",
		"[mcp.servers.x]\ncommand=['x']\ntimeout='-1s'":                    "mcp.servers.x.timeout: -1s can't be negative",
		"[[rule]]\naction='deny'\nrule='bash(git push *)'\nmatch=['git pull']": `rule "bash(git push *)" does not ` +
			`match its example "git pull"`,
		"[[rule]]\naction='deny'\nrule='bash(git push *)'\nnot_match=['true; git -C x push']": `matches "true; git -C x push", but ` +
			`should not`,
		"[[rule]]\naction='allow'\nrule='bash(go test *)'\nmatch=['go test ./... && rm x']":            `does not match its example`,
		"[[rule]]\naction='deny'\nrule='write(src/**)'\nmatch=['src/a/b','/workspace/src/c','other']":  `its example "other"`,
		"[[rule]]\naction='allow'\nrule='network(*.example.com)'\nmatch=['a.example.com:443','x.com']": `its example "x.com"`,
		"[[rule]]\naction='ask'\nrule='read(~/**)'\nmatch=['~/notes']\nnot_match=['~/a']":              `matches "~/a"`,
		"deny = ['network(exa*mple.com)']": "has a * elsewhere than as its first " +
			"part",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='id_jag', idp_issuer='https://i', " +
			"idp_client_id='i'}": "id_jag needs an assertion_file",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='id_jag', assertion_file='/t', " +
			"idp_issuer='https://i'}": "needs an idp_client_id",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='id_jag', assertion_file='/t', " +
			"idp_client_id='i'}": "either idp_issuer or idp_token_url",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='id_jag', assertion_file='/t', idp_client_id='i', idp_issuer='https://i', " +
			"idp_token_url='https://i/t'}": "either idp_issuer or idp_token_url",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='id_jag', assertion_file='/t', idp_client_id='i', idp_issuer='https://i', " +
			"client_secret_env='S'}": "need a client_id",
		"[mcp.servers.x]\nurl='https://x'\noauth={grant='jwt_bearer', assertion_file='/t', " +
			"idp_client_id='i'}": "need the grant id_jag",
		"[mcp.servers.x]\nurl='https://x'\noauth={idp_client_secret_env='S'}": "need the grant id_jag",
		"mode='plan'\n[providers.mine]\nkey_env='K'":                          ":2: providers.mine.base_url: it is missing",
		"[providers.anthropic]\nrequests_per_minute=-1":                       ":2: providers.anthropic.requests_per_minute: -1",
		"[providers.x]\nkind='openai'\n[providers.x.oauth]\ntoken_url='https://x'\ngrant='id_jag'\nassertion_file='/t'\nidp_client_id='i'\n" +
			"idp_issuer='https://i'": "the grant id_jag needs an issuer",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := app.Settings(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := app.Settings("../../../docs/config.sample.toml"); err != nil {
		t.Error(err)
	}
}

// TestOpenChecks checks that a command learns of a wrong rule before it does anything.
func TestOpenChecks(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("INSPAN_CONFIG_DIR", dir)
	t.Setenv("INSPAN_STATE_DIR", t.TempDir())
	path := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(path, []byte("[[rule]]\naction='deny'\nrule='bash(git push *)'\nmatch=['git pull']"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := app.Load("")
	want := path + `:1: rule[0]: rule "bash(git push *)" does not match its example "git pull"`
	if !errors.Is(err, config.ErrSettings) || err.Error() != want {
		t.Error(err)
	}
}

// TestRulesOfTheWorkspaceAreChecked checks that a rule of the workspace means what it says.
func TestRulesOfTheWorkspaceAreChecked(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, config.ProjectFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	s := &permission.Set{Installation: &config.Installation{}, Consent: &consent.Store{Dir: t.TempDir()}}
	for text, want := range map[string]string{
		"ask=['write']\n[[rule]]\naction='deny'\nrule='bash(make deploy)'\nmatch=['make deploy']": "",
		"[[rule]]\naction='deny'\nrule='bash(make deploy)'\nmatch=['make']":                       path + `:1: rule[0]: rule "bash(make `,
		"deny=['network(exa*mple.com)']":                                                          path + ":1: deny: ",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Rules(root); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestNoServerThatIsNone checks that nothing is written that could not be read again.
func TestNoServerThatIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.toml")
	h := &connect.Hubs{Installation: &config.Installation{ConfigPath: path}}
	if err := h.Add("three", config.MCPServer{}); err == nil {
		t.Error("a server that is none was written")
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made")
	}
	if err := h.Add("one", config.MCPServer{URL: "https://mcp.example.com/mcp"}); err != nil {
		t.Error(err)
	}
	if c, err := app.Settings(path); err != nil || len(c.MCP.Servers) != 1 {
		t.Error(c.MCP.Servers, err)
	}
}

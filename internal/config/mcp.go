package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/oauth"
)

// MCP says which servers of the Model Context Protocol sessions have, beside those
// of plugins and of workspaces.
type MCP struct {
	Off     bool                 `toml:"off"`     // no servers
	Servers map[string]MCPServer `toml:"servers"` // by a name of letters, digits, _ and -
	// Secrets are the variables that servers of a workspace or plugin get although they look
	// like secrets, if their files ask for ${NAME}. By server.
	Secrets map[string][]string `toml:"secrets"`
	// Document is the https address of a client id metadata document of yours, which
	// must list http://127.0.0.1/callback as a redirect. Servers that take one know
	// inspan by it; with others it registers itself.
	Document string `toml:"client_document"`
}

// MCPServer is one server: a program or an address. Texts may have ${NAME} in them,
// or ${NAME:-what is used without}.
type MCPServer struct {
	Command []string          `toml:"command"`    // a program and its arguments
	Env     map[string]string `toml:"env"`        // in addition to the environment of every command
	Dir     string            `toml:"dir"`        // working directory; empty: the workspace
	Hosts   []string          `toml:"hosts"`      // that the program may reach
	Read    []string          `toml:"read"`       // absolute paths that it may read beside the workspace
	Write   []string          `toml:"write"`      // absolute paths that it may change too
	Bare    bool              `toml:"no_sandbox"` // run it without the sandbox
	URL     string            `toml:"url"`        // http, https, ws or wss
	Kind    string            `toml:"kind"`       // stdio, http, sse or ws; empty: detected by command or url
	Headers map[string]string `toml:"headers"`    // of each request
	OAuth   OAuth             `toml:"oauth"`      // how to log in, if the server does not say
	Trust   bool              `toml:"trust"`      // its tools marked as read-only do not ask
	Timeout time.Duration     `toml:"timeout"`    // of one call, as "90s"; 0: 2 minutes
	Off     bool              `toml:"off"`        // do not use it
}

// OAuth is what a login needs beyond what servers say of themselves; for a provider,
// all there is.
type OAuth struct {
	ClientID  string   `toml:"client_id"`         // registered beforehand; empty: discovered or registered at the first login
	SecretEnv string   `toml:"client_secret_env"` // environment variable with its secret; empty: it has none
	Scopes    []string `toml:"scopes"`            // empty: those that the server asks for
	Issuer    string   `toml:"issuer"`            // of the tokens; empty: the one that the server names
	// Grant is how inspan logs in without a person: "client_credentials", with the id and
	// its secret or key, "jwt_bearer", with a token that says which workload this is, or
	// "id_jag", with an ID token that the identity provider of an organisation makes a
	// grant of. Empty: a person logs in.
	Grant         string `toml:"grant"`
	KeyFile       string `toml:"client_key_file"` // absolute path of a private key (PEM) instead of the secret
	AssertionFile string `toml:"assertion_file"`  // absolute path of the token for jwt_bearer or id_jag, read anew each time
	// The identity provider for id_jag: its name or its token endpoint, and who inspan is there.
	IDPIssuer    string `toml:"idp_issuer"`
	IDPToken     string `toml:"idp_token_url"`
	IDPClientID  string `toml:"idp_client_id"`
	IDPSecretEnv string `toml:"idp_client_secret_env"` // environment variable with its secret; empty: it has none
}

// check says what is missing, or makes no sense together.
func (o OAuth) check() error {
	for _, path := range []string{o.KeyFile, o.AssertionFile} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("oauth: %q is not an absolute path", path)
		}
	}
	if o.KeyFile != "" && o.SecretEnv != "" {
		return errors.New("oauth: either client_secret_env or client_key_file")
	}
	if oauth.Grant(o.Grant) != oauth.IDJAG && o.IDPIssuer+o.IDPToken+o.IDPClientID+o.IDPSecretEnv != "" {
		return errors.New("oauth: idp_issuer, idp_token_url, idp_client_id and idp_client_secret_env go with the grant id_jag")
	}
	switch oauth.Grant(o.Grant) {
	case "":
		if o.KeyFile != "" || o.AssertionFile != "" {
			return errors.New("oauth: client_key_file and assertion_file go with a grant")
		}
	case oauth.ClientCredentials:
		if o.ClientID == "" || o.SecretEnv == "" && o.KeyFile == "" || o.AssertionFile != "" {
			return errors.New("oauth: the grant client_credentials takes a client_id, and client_secret_env or client_key_file")
		}
	case oauth.JWTBearer, oauth.IDJAG:
		if o.ClientID == "" && (o.KeyFile != "" || o.SecretEnv != "") {
			return errors.New("oauth: client_key_file and client_secret_env go with a client_id")
		}
		if o.AssertionFile == "" {
			return fmt.Errorf("oauth: the grant %s takes an assertion_file", o.Grant)
		}
		if oauth.Grant(o.Grant) == oauth.IDJAG && (o.IDPClientID == "" || (o.IDPIssuer == "") == (o.IDPToken == "")) {
			return errors.New("oauth: the grant id_jag takes an idp_client_id, and either idp_issuer or idp_token_url")
		}
	default:
		return fmt.Errorf("oauth: unknown grant %q; use client_credentials, jwt_bearer or id_jag", o.Grant)
	}
	return nil
}

// List is the servers, by name.
func (m MCP) List() []mcp.Server {
	var out []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		s := m.Servers[name]
		out = append(out, mcp.Server{
			Name: name, Command: s.Command, Env: s.Env, Dir: s.Dir, Hosts: s.Hosts, Read: s.Read, Write: s.Write, Bare: s.Bare,
			URL: s.URL, Kind: s.Kind, Headers: s.Headers, Trust: s.Trust, Timeout: s.Timeout, Off: s.Off, Source: mcp.User,
		})
	}
	return out
}

func (m MCP) check() error {
	for _, s := range m.List() {
		if err := s.Check(); err != nil {
			return fmt.Errorf("servers.%s: %w", s.Name, err)
		}
		if s.Timeout < 0 {
			return fmt.Errorf("servers.%s: timeout can't be negative; 0 means the default", s.Name)
		}
		if err := m.Servers[s.Name].OAuth.check(); err != nil {
			return fmt.Errorf("servers.%s: %w", s.Name, err)
		}
	}
	return nil
}

// ProviderOAuth is how one logs in to a provider of models. An address that is empty is
// not there.
type ProviderOAuth struct {
	OAuth
	Authorize string `toml:"authorize_url"`
	Token     string `toml:"token_url"`
	Device    string `toml:"device_url"`
	Revoke    string `toml:"revoke_url"`
	Redirect  string `toml:"redirect_url"` // registered for the client; empty: a free port of this machine
}

func (o ProviderOAuth) check() error {
	switch {
	case o.Token == "":
		return errors.New("oauth: it needs token_url")
	case oauth.Grant(o.Grant) == oauth.IDJAG && o.Issuer == "":
		return errors.New("oauth: the grant id_jag takes an issuer")
	case o.Grant == "" && (o.ClientID == "" || o.Authorize == "" && o.Device == ""):
		return errors.New("oauth: it needs client_id, and authorize_url or device_url")
	}
	return o.OAuth.check()
}

package config

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/inspan/inspan/internal/mcp"
)

// MCP says which servers of the Model Context Protocol sessions have, beside those
// of plugins and of workspaces.
type MCP struct {
	Off     bool                 `toml:"off"`     // none at all
	Servers map[string]MCPServer `toml:"servers"` // by a name of letters, digits, _ and -
	// Secrets are the variables that look like secrets and that servers which are not
	// yours get all the same where their files ask for ${NAME}, by their names.
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
	Env     map[string]string `toml:"env"`        // beside what every command finds in its environment
	Dir     string            `toml:"dir"`        // working directory; empty: the workspace
	Hosts   []string          `toml:"hosts"`      // that the program may reach
	Read    []string          `toml:"read"`       // absolute paths that it may read beside the workspace
	Bare    bool              `toml:"no_sandbox"` // it runs without walls
	URL     string            `toml:"url"`        // http, https, ws or wss
	Kind    string            `toml:"kind"`       // stdio, http, sse or ws; empty: told by command or url
	Headers map[string]string `toml:"headers"`    // of each request
	OAuth   OAuth             `toml:"oauth"`      // how to log in where the server does not say
	Trust   bool              `toml:"trust"`      // what it says of its tools is believed: those that only read do not ask
	Timeout time.Duration     `toml:"timeout"`    // of one call, as "90s"; 0: 2 minutes
	Off     bool              `toml:"off"`        // it is not used
}

// OAuth is what a login needs beyond what servers say of themselves.
type OAuth struct {
	ClientID  string   `toml:"client_id"`         // registered beforehand; empty: found out or made at the first login
	SecretEnv string   `toml:"client_secret_env"` // environment variable with its secret; empty: it has none
	Scopes    []string `toml:"scopes"`            // empty: those that the server asks for
}

// List is the servers, by name.
func (m MCP) List() []mcp.Server {
	var out []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(m.Servers)) {
		s := m.Servers[name]
		out = append(out, mcp.Server{
			Name: name, Command: s.Command, Env: s.Env, Dir: s.Dir, Hosts: s.Hosts, Read: s.Read, Bare: s.Bare,
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
	}
	return nil
}

// ProviderOAuth is how one logs in to a provider of models. An address that is empty is
// not there.
type ProviderOAuth struct {
	ClientID  string   `toml:"client_id"`
	SecretEnv string   `toml:"client_secret_env"` // environment variable with its secret; empty: it has none
	Scopes    []string `toml:"scopes"`
	Issuer    string   `toml:"issuer"`
	Authorize string   `toml:"authorize_url"`
	Token     string   `toml:"token_url"`
	Device    string   `toml:"device_url"`
	Revoke    string   `toml:"revoke_url"`
	Redirect  string   `toml:"redirect_url"` // registered for the client; empty: a free port of this machine
}

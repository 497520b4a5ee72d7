package config

import "time"

// MCP configures the Model Context Protocol servers of sessions, in addition to those of plugins and
// workspaces.
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

// MCPServer is one server: a program or an address. Texts may contain ${NAME}, or ${NAME:-DEFAULT}.
type MCPServer struct {
	Command []string          `toml:"command"`       // a program and its arguments
	Env     map[string]string `toml:"env"`           // in addition to the environment of every command
	Dir     string            `toml:"dir"`           // working directory; empty: the workspace
	Hosts   []string          `toml:"hosts"`         // that the program may reach
	Read    []string          `toml:"read"`          // absolute paths that it may read beside the workspace
	Write   []string          `toml:"write"`         // absolute paths that it may change too
	Bare    bool              `toml:"no_sandbox"`    // run it without the sandbox
	URL     string            `toml:"url"`           // http, https, ws or wss
	Kind    string            `toml:"kind"`          // stdio, http, sse or ws; empty: detected by command or url
	Headers map[string]string `toml:"headers"`       // of each request
	OAuth   OAuth             `toml:"oauth"`         // how to log in, if the server does not say
	Trust   bool              `toml:"trust"`         // its tools marked as read-only do not ask
	Timeout time.Duration     `toml:"timeout"`       // of one call, as "90s"; 0: 2 minutes
	Only    []string          `toml:"only_tools"`    // its tools that are used; empty: all
	Without []string          `toml:"without_tools"` // its tools that are not used
	Off     bool              `toml:"off"`           // do not use it
}

// OAuth configures a login beyond the information that servers provide; for a provider, all of it.
type OAuth struct {
	ClientID  string   `toml:"client_id"`         // registered beforehand; empty: discovered or registered at the first login
	SecretEnv string   `toml:"client_secret_env"` // environment variable with its secret; empty: it has none
	Scopes    []string `toml:"scopes"`            // empty: those that the server asks for
	Issuer    string   `toml:"issuer"`            // of the tokens; empty: the one that the server names
	// Grant is how inspan logs in without a person: "client_credentials", with the id and its secret or key,
	// "jwt_bearer", with a token that says which workload this is, or "id_jag", with an ID token that the identity
	// provider of an organisation makes a grant of. Empty means a person logs in.
	Grant         string `toml:"grant"`
	KeyFile       string `toml:"client_key_file"` // absolute path of a private key (PEM) instead of the secret
	AssertionFile string `toml:"assertion_file"`  // absolute path of the token for jwt_bearer or id_jag, read anew each time
	// The identity provider for id_jag: its name or its token endpoint, and who inspan is there.
	IDPIssuer    string `toml:"idp_issuer"`
	IDPToken     string `toml:"idp_token_url"`
	IDPClientID  string `toml:"idp_client_id"`
	IDPSecretEnv string `toml:"idp_client_secret_env"` // environment variable with its secret; empty: it has none
}

// ProviderOAuth configures the login to a model provider. Empty addresses are unsupported.
type ProviderOAuth struct {
	OAuth
	Authorize string `toml:"authorize_url"`
	Token     string `toml:"token_url"`
	Device    string `toml:"device_url"`
	Revoke    string `toml:"revoke_url"`
	Redirect  string `toml:"redirect_url"` // registered for the client; empty: a free port of this machine
}

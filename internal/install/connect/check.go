package connect

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/install/config"
)

// Check returns the errors in the servers and the logins of settings; each begins with the key. Code that loads
// settings calls it.
func Check(c config.Config) error {
	var out []error
	for _, name := range slices.Sorted(maps.Keys(c.Providers)) {
		if p := c.Providers[name]; p.OAuth != nil {
			if err := checkProvider(*p.OAuth); err != nil {
				out = append(out, fmt.Errorf("providers.%s.%w", config.Key(name), err))
			}
		}
	}
	return errors.Join(append(out, checkServers(c.MCP))...)
}

func checkServers(m config.MCP) error {
	var out []error
	for _, s := range configured(m) {
		key := "mcp.servers." + config.Key(s.Name)
		if err := s.Check(); err != nil {
			out = append(out, fmt.Errorf("%s: %w", key, err))
		}
		if s.Timeout < 0 {
			out = append(out, fmt.Errorf("%s.timeout: %v can't be negative; 0 means the default", key, s.Timeout))
		}
		if err := checkOAuth(m.Servers[s.Name].OAuth); err != nil {
			out = append(out, fmt.Errorf("%s.%w", key, err))
		}
	}
	return errors.Join(out...)
}

func checkProvider(o config.ProviderOAuth) error {
	switch {
	case o.Token == "":
		return errors.New("oauth: it needs token_url")
	case oauth.Grant(o.Grant) == oauth.IDJAG && o.Issuer == "":
		return errors.New("oauth: the grant id_jag needs an issuer")
	case o.Grant == "" && (o.ClientID == "" || o.Authorize == "" && o.Device == ""):
		return errors.New("oauth: it needs client_id, and authorize_url or device_url")
	}
	return checkOAuth(o.OAuth)
}

// checkOAuth returns errors about missing or conflicting settings.
func checkOAuth(o config.OAuth) error {
	for _, path := range []string{o.KeyFile, o.AssertionFile} {
		if path != "" && !filepath.IsAbs(path) {
			return fmt.Errorf("oauth: %q is not an absolute path", path)
		}
	}
	if o.KeyFile != "" && o.SecretEnv != "" {
		return errors.New("oauth: either client_secret_env or client_key_file")
	}
	if oauth.Grant(o.Grant) != oauth.IDJAG && o.IDPIssuer+o.IDPToken+o.IDPClientID+o.IDPSecretEnv != "" {
		return errors.New("oauth: idp_issuer, idp_token_url, idp_client_id and idp_client_secret_env need the grant id_jag")
	}
	switch oauth.Grant(o.Grant) {
	case "":
		if o.KeyFile != "" || o.AssertionFile != "" {
			return errors.New("oauth: client_key_file and assertion_file need a grant")
		}
	case oauth.ClientCredentials:
		if o.ClientID == "" || o.SecretEnv == "" && o.KeyFile == "" || o.AssertionFile != "" {
			return errors.New("oauth: the grant client_credentials needs a client_id, and client_secret_env or client_key_file")
		}
	case oauth.JWTBearer, oauth.IDJAG:
		if o.ClientID == "" && (o.KeyFile != "" || o.SecretEnv != "") {
			return errors.New("oauth: client_key_file and client_secret_env need a client_id")
		}
		if o.AssertionFile == "" {
			return fmt.Errorf("oauth: the grant %s needs an assertion_file", o.Grant)
		}
		if oauth.Grant(o.Grant) == oauth.IDJAG && (o.IDPClientID == "" || (o.IDPIssuer == "") == (o.IDPToken == "")) {
			return errors.New("oauth: the grant id_jag needs an idp_client_id, and either idp_issuer or idp_token_url")
		}
	default:
		return fmt.Errorf("oauth: unknown grant %q; use client_credentials, jwt_bearer or id_jag", o.Grant)
	}
	return nil
}

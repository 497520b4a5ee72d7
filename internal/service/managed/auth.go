package managed

import (
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// credentialAuth is the secret part of a request about a credential.
type credentialAuth struct {
	Type        string             `json:"type"`
	Server      string             `json:"mcp_server_url"`
	Token       opt[string]        `json:"token"`
	AccessToken opt[string]        `json:"access_token"`
	Expires     opt[time.Time]     `json:"expires_at"`
	Refresh     opt[refreshFields] `json:"refresh"`
}

// newSecret is a new secret of a credential.
type newSecret struct {
	token string              // empty means unchanged
	onto  func(*oauth.Tokens) // changes the tokens of a refreshed one; nil means it is not refreshed
}

// onto is credentialFields.onto for the secret.
func (in credentialAuth) onto(tenant string, k *keptCredential) (secret newSecret, err error) {
	token, field, other := in.Token, "auth.token", in.AccessToken.said || in.Expires.said || in.Refresh.said
	switch in.Type {
	case staticBearer:
	case mcpOAuth:
		token, field, other = in.AccessToken, "auth.access_token", in.Token.said
	default:
		types := staticBearer + ", " + mcpOAuth + " or " + environmentVariable
		return secret, invalid("auth.type", fmt.Sprintf("it is %q", words.OneLine(in.Type, 40)), types)
	}
	switch {
	case k.Type != "" && k.Type != in.Type:
		return secret, invalid("auth.type", "the credential is of type "+k.Type, k.Type)
	case k.Type != "" && in.Server != "":
		return secret, invalid("auth.mcp_server_url", "it can't be changed", "another credential")
	case other:
		return secret, invalid("auth", "it has fields of another type", "those of "+in.Type)
	case k.Type == "" && !token.said:
		return secret, invalid(field, "it is missing", "the token")
	}
	if token.said {
		if err := checkToken(field, token.value); err != nil {
			return secret, err
		}
	}
	in.Expires.onto(&k.Expires)
	secret.token = token.value
	if in.Refresh.said && !in.Refresh.null || k.Refresh != nil {
		more := func(*oauth.Tokens) {}
		if in.Refresh.said && !in.Refresh.null {
			if more, err = in.Refresh.value.onto(tenant, k); err != nil {
				return secret, err
			}
		}
		k.Failed = time.Time{}
		secret.onto = func(t *oauth.Tokens) {
			token.onto(&t.Access)
			in.Expires.onto(&t.Expires)
			more(t)
		}
	}
	if k.Type == "" {
		k.Type, k.Server = in.Type, in.Server
		if err := checkTokenServer("auth.mcp_server_url", k.Server); err != nil {
			return secret, err
		}
	}
	return secret, nil
}

// checkToken reports what is wrong with a token: it is put into a header as it is, and variables of the server
// would be expanded there.
func checkToken(field, token string) error {
	if token == "" || len(token) > mostToken || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return invalid(field, "it is not valid in a header", "1 to 16384 printable ASCII characters without spaces")
	}
	if strings.Contains(token, "${") {
		return invalid(field, "it has ${ in it", "a token without that")
	}
	return nil
}

// checkTokenServer reports what is wrong with an address that gets a token.
func checkTokenServer(field, address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || text.Holds(address, text.Hidden):
		return invalid(field, "not the address of a server", "https://...")
	case u.Scheme != "https" && (u.Scheme != "http" || !netguard.IsHere(u.Hostname())):
		return invalid(field, "a token would be sent in the clear", "https://...")
	}
	return nil
}

// sameServer reports whether two addresses are of the same server.
func sameServer(a, b string) bool {
	plain := func(address string) string {
		u, err := url.Parse(address)
		if err != nil {
			return "?" + address
		}
		return strings.ToLower(u.Scheme+"://"+u.Host) + strings.TrimSuffix(u.EscapedPath(), "/")
	}
	return plain(a) == plain(b)
}

// keeping stores a secret under a new name, and removes it again if f fails or returns another name.
func (d *door) keeping(keep func(name string) error, f func(name string) (used string, err error)) error {
	name := strings.ToLower(rand.Text())
	if err := keep(secretOfCredential + name); err != nil {
		return err
	}
	used, err := f(name)
	if err != nil || used != name {
		d.ForgetSecret(secretOfCredential + name)
	}
	return err
}

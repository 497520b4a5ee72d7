// Package oauth gets and stores access tokens for servers that need a login: MCP servers, by their
// specification from 2025-03-26 to 2026-07-28, and model providers with known endpoints.
//
// Its rules:
//
//   - A token is stored for one account and bound to the resource it is for and the issuer that issued it. It is sent to no
//     other.
//   - If an MCP server and its authorization server support it, a token is bound to a key that is made at the login and
//     stored with it (DPoP, RFC 9449).
//   - One process at a time sends a refresh token: it holds a lock of the operating system and reads the stored tokens again
//     before it asks, so several processes can share a login with a server that accepts each refresh token once.
//   - No failure deletes stored tokens. Only the response invalid_grant marks an account as one that needs a login.
//   - Addresses are https, or http on this machine if the account's own address is on this machine too. Requests with a
//     credential follow no redirects.
//   - Errors and texts for people never contain a token, code or secret.
package oauth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ErrLogin says that a person has to log in: there is no token, or none that can be renewed.
var ErrLogin = errors.New("a login is needed")

// Account is something to log in to.
type Account struct {
	// Name is the account's name for people, such as "mcp:linear" or "provider:acme", and its key in the store:
	// at most 256 bytes without control characters.
	Name string
	// Resource is the address that the tokens are for, such as an MCP server's. Empty means a model provider, and
	// then Server must be complete.
	Resource string
	// Server has the known facts about the authorization server. Nil means they are discovered from Resource. With
	// only its Issuer set, the rest is discovered and the resource must name that issuer.
	Server *Endpoints
	// ClientID and ClientSecret were registered in advance. Without an id the client id metadata document is
	// used, and if the server does not support that, the client registers itself.
	ClientID, ClientSecret string
	// Redirect is the redirect address registered for ClientID. Empty means a free port at
	// http://127.0.0.1/callback. An address of another machine: the person pastes the response.
	Redirect string
	// Scopes to request. Empty means those that the challenge or the resource names.
	Scopes []string
	// Grant is how tokens are obtained without a person: then Token and Renew never need a login. Empty means a
	// person logs in.
	Grant Grant
	// KeyFile is the path of a private key (PEM; RSA, ECDSA or Ed25519) that authenticates ClientID instead of
	// ClientSecret. AssertionFile has the token for [JWTBearer], or the ID token for [IDJAG]. Both are read
	// again whenever they are needed.
	KeyFile, AssertionFile string
	// Identity is the identity provider for [IDJAG].
	Identity *IdentityProvider
}

// Endpoints are the addresses of an authorization server; empty means it has no such endpoint.
type Endpoints struct {
	Issuer    string `json:"issuer,omitempty"`
	Authorize string `json:"authorize,omitempty"`
	Token     string `json:"token,omitempty"`
	Device    string `json:"device,omitempty"`   // RFC 8628
	Revoke    string `json:"revoke,omitempty"`   // RFC 7009
	Register  string `json:"register,omitempty"` // RFC 7591
}

// Client gets tokens. Its methods are safe for concurrent use, even by several processes with one store.
type Client struct {
	// HTTP restricts what can be reached. Its redirect policy is also used, its cookies are not sent. Nil means
	// every method that has to reach a server fails.
	HTTP *http.Client
	// Store stores tokens. Nil means every method fails.
	Store Store
	// Document is the https address of our client id metadata document, which must list http://127.0.0.1/callback
	// as a redirect. Empty means there is none.
	Document string
	// Patience is how long a login may take. 0 means 5 minutes.
	Patience time.Duration
}

// Way is a way for a person to log in.
type Way string

// Ways to log in.
const (
	Browser Way = "browser" // the browser comes back to a port of this machine
	Paste   Way = "paste"   // the person pastes where the browser was led to
	Device  Way = "device"  // the person enters a code on any device (RFC 8628)
)

// Person is the user interface of a login. A nil field is something that the person can't do. The functions are
// called from the goroutine that called Login, one at a time.
type Person struct {
	// Open shows an http or https address in a browser, without a shell.
	Open func(url string) error
	// Tell shows a text. It contains no secret and no terminal control characters.
	Tell func(text string)
	// Paste waits until the person pastes something, or ctx is done.
	Paste func(ctx context.Context) (string, error)
}

// Info describes a stored account, without secrets.
type Info struct {
	Name     string
	Resource string
	Issuer   string
	Scopes   []string
	Expires  time.Time // of the access token; zero means not known
	Renews   bool      // without a person
	Kept     string    // where, for people
	Problem  string    // why a login is needed; empty means it is not
}

const (
	defaultPatience = 5 * time.Minute
	// requestTime bounds one request, and so how long a lock is held.
	requestTime = 30 * time.Second
)

func (c *Client) patience() time.Duration {
	if c.Patience <= 0 {
		return defaultPatience
	}
	return c.Patience
}

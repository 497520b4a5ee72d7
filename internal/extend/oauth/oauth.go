// Package oauth gets and keeps access tokens for servers that need a login: MCP
// servers, as their specification has it from 2025-03-26 to 2026-07-28, and model
// providers whose endpoints are known beforehand.
//
// The rules:
//
//   - A token is kept for one account and bound to the resource and to the issuer it
//     was given by and for. It goes to no other.
//   - Where an MCP server and its authorization server know how, a token is bound to a
//     key that is made at the login and kept with it (DPoP, RFC 9449).
//   - A refresh token is sent by one process at a time, which holds a lock of the
//     operating system and reads again what is kept before it asks. So several
//     processes can share a login with a server that takes each refresh token once.
//   - Nothing that goes wrong makes what is kept be forgotten. Only the answer
//     invalid_grant marks an account as one that needs a login.
//   - Addresses are https, or http on this machine if the account's own address is on
//     this machine too. Nothing that carries a credential follows a redirect.
//   - No token, code or secret is in an error or in a text for people.
package oauth

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// ErrLogin says that a person has to log in: there is no token, or none that can be
// renewed.
var ErrLogin = errors.New("a login is needed")

// Account is something to log in to.
type Account struct {
	// Name is what people call it, such as "mcp:linear" or "provider:acme". It is
	// the key of what is kept, at most 256 bytes without control characters.
	Name string
	// Resource is the address that the tokens are for, such as that of an MCP
	// server. Empty: a provider, and then Server has all it takes.
	Resource string
	// Server is what is known of the authorization server beforehand. Nil: it is
	// found out from Resource. With nothing but its Issuer set, the rest is found out
	// and the resource must name that issuer.
	Server *Endpoints
	// ClientID and ClientSecret are what was registered beforehand. Without an id the
	// client id metadata document is used, and where the server does not take that,
	// the client registers itself.
	ClientID, ClientSecret string
	// Redirect is the address registered for ClientID to lead back to. Empty: a free
	// port at http://127.0.0.1/callback. Not on this machine: only to be pasted.
	Redirect string
	// Scopes to ask for. Empty: those that the challenge or the resource names.
	Scopes []string
	// Grant is how tokens are got without a person: then Token and Renew never need a
	// login. Empty: a person logs in.
	Grant Grant
	// KeyFile is the path of a private key (PEM; RSA, ECDSA or Ed25519) that says who
	// ClientID is in the place of ClientSecret, AssertionFile that of the token for
	// [JWTBearer], or of the ID token for [IDJAG]. Both are read anew whenever they are
	// needed.
	KeyFile, AssertionFile string
	// Identity is who makes a grant of the ID token, for [IDJAG].
	Identity *IdentityProvider
}

// Endpoints are the addresses of an authorization server; an empty one is not there.
type Endpoints struct {
	Issuer    string `json:"issuer,omitempty"`
	Authorize string `json:"authorize,omitempty"`
	Token     string `json:"token,omitempty"`
	Device    string `json:"device,omitempty"`   // RFC 8628
	Revoke    string `json:"revoke,omitempty"`   // RFC 7009
	Register  string `json:"register,omitempty"` // RFC 7591
}

// Client gets tokens. Its methods can be called from several goroutines at once, and
// by several processes with one store.
type Client struct {
	// HTTP is held to what may be reached. Its redirect policy is asked too, its
	// cookies are not sent. Nil: every method that has to reach a server fails.
	HTTP *http.Client
	// Store keeps tokens. Nil: every method fails.
	Store Store
	// Document is the https address of our client id metadata document, which has to
	// list http://127.0.0.1/callback as a redirect. Empty: there is none.
	Document string
	// Patience is how long a login may take. 0: 5 minutes.
	Patience time.Duration
}

// Way is how a person logs in.
type Way string

// The ways to log in.
const (
	Browser Way = "browser" // the browser comes back to a port of this machine
	Paste   Way = "paste"   // the person pastes where the browser was led to
	Device  Way = "device"  // the person enters a code on any device (RFC 8628)
)

// Person is whoever logs in. A nil field is something that can't be done. The
// functions are called from the goroutine that called Login, one at a time.
type Person struct {
	// Open shows an http or https address in a browser, without a shell.
	Open func(url string) error
	// Tell shows a text. It holds no secret, and no character that drives a terminal.
	Tell func(text string)
	// Paste waits for what the person pastes, until ctx is done.
	Paste func(ctx context.Context) (string, error)
}

// Info is what a list says of an account that is kept. It has no secrets.
type Info struct {
	Name     string
	Resource string
	Issuer   string
	Scopes   []string
	Expires  time.Time // of the access token; zero: not known
	Renews   bool      // without a person
	Kept     string    // where, for people
	Problem  string    // why a login is needed; empty: it is not
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

package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// kept is an account in the store.
type kept struct {
	Name      string       `json:"name"`
	Resource  string       `json:"resource,omitempty"` // of the account
	Audience  string       `json:"audience,omitempty"` // the resource parameter
	Metadata  string       `json:"metadata,omitempty"` // where the resource described itself
	Endpoints Endpoints    `json:"endpoints"`
	Client    registration `json:"client"`
	Scopes    []string     `json:"scopes,omitempty"` // granted
	Scope     string       `json:"scope,omitempty"`  // that each refresh asks for
	Access    string       `json:"access"`
	Refresh   string       `json:"refresh,omitempty"`
	Got       time.Time    `json:"got"`              // zero: not known
	Expires   time.Time    `json:"expires,omitzero"` // zero: not known
	Dead      string       `json:"dead,omitempty"`   // why a login is needed

	Key      *key `json:"key,omitempty"`       // that requests for tokens are proven with (DPoP); nil: they are not
	DPoP     bool `json:"dpop,omitempty"`      // Access is bound to Key
	DPoPOnly bool `json:"dpop_only,omitempty"` // the resource takes no other tokens
}

// pass returns the access token for use.
func (k kept) pass() Pass {
	if k.DPoP {
		return Pass{k.Access, k.Key}
	}
	return Pass{Token: k.Access}
}

// prover returns the proof for the next token request. Nil means none.
func (k kept) prover() *prover {
	if k.Key == nil {
		return nil
	}
	return &prover{key: k.Key}
}

const (
	maxName  = 256      // bytes
	maxToken = 64 << 10 // bytes
)

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("oauth: the account has no name")
	case len(name) > maxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("oauth: %.80q can't be the name of an account", name)
	}
	return nil
}

// errNothing says that nothing is stored for an account, not even unreadable data.
var errNothing = fmt.Errorf("%w", ErrLogin)

// load reads a stored account. If there is none, the error is ErrLogin.
func (c *Client) load(ctx context.Context, name string) (kept, error) {
	if err := checkName(name); err != nil {
		return kept{}, err
	}
	if c.Store == nil {
		return kept{}, errors.New("oauth: no store is set")
	}
	data, _, err := c.Store.Get(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return kept{}, fmt.Errorf("%s: %w", name, errNothing)
	case errors.Is(err, ErrSealed):
		return kept{}, fmt.Errorf("%s: %w: %w", name, ErrLogin, err)
	case err != nil:
		return kept{}, fmt.Errorf("%s: %w", name, err)
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil || k.Name != name || k.DPoP && k.Key == nil {
		return kept{}, fmt.Errorf("%s: %w: the stored login is damaged", name, ErrLogin)
	}
	return k, nil
}

// save stores an account. It is on the disk when this returns.
func (c *Client) save(ctx context.Context, k kept) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := c.Store.Set(ctx, k.Name, data); err != nil {
		return fmt.Errorf("%s: store the login: %w", k.Name, err)
	}
	return nil
}

// account returns the account's binding: where a stored login may be used.
func (k kept) account() Account {
	return Account{Name: k.Name, Resource: k.Resource, Server: &k.Endpoints}
}

// bound refuses tokens that were issued for another resource, by another issuer or to another client.
func (k kept) bound(a Account) error {
	switch {
	case k.Resource != a.Resource && !same(k.Resource, a.Resource):
		return fmt.Errorf("%s: %w: the stored login is for %s", a.Name, ErrLogin, k.Resource)
	case a.Server != nil && a.Server.Issuer != "" && !same(a.Server.Issuer, k.Endpoints.Issuer),
		a.fixed() && a.Server.Token != k.Endpoints.Token:
		return fmt.Errorf("%s: %w: the stored login is from another authorization server", a.Name, ErrLogin)
	case a.ClientID != "" && a.ClientID != k.Client.ID:
		return fmt.Errorf("%s: %w: the stored login is for another client id", a.Name, ErrLogin)
	}
	return nil
}

// good reports whether the access token is valid for some time: a minute, or a tenth of its lifetime if that is
// known and shorter.
func (k kept) good(now time.Time) bool {
	margin := time.Minute
	if !k.Got.IsZero() {
		margin = min(margin, k.Expires.Sub(k.Got)/10)
	}
	return k.alive(now.Add(margin))
}

// alive reports whether the access token has not expired.
func (k kept) alive(now time.Time) bool {
	return k.Dead == "" && k.Access != "" && (k.Expires.IsZero() || now.Before(k.Expires))
}

// take adds a response of the token endpoint to a stored account. Missing fields keep their requested or
// earlier values.
func (k kept) take(f *fields, asked []string, now time.Time) (kept, error) {
	k.Access = f.text("access_token")
	if next := f.text("refresh_token"); next != "" {
		k.Refresh = next
	}
	if _, said := f.values["scope"]; said {
		k.Scopes = scopeList(strings.Fields(f.text("scope")))
	} else {
		k.Scopes = asked
	}
	k.Got, k.Expires, k.Dead = now.UTC(), time.Time{}, ""
	if life := f.seconds("expires_in"); life > 0 {
		k.Expires = k.Got.Add(life)
	}
	kind := f.text("token_type")
	k.DPoP = k.Key != nil && strings.EqualFold(kind, "dpop")
	switch {
	case f.err != nil:
		return kept{}, f.err
	case k.Access == "":
		return kept{}, errors.New("the answer has no access token")
	case kind != "" && !k.DPoP && !strings.EqualFold(kind, "bearer"):
		return kept{}, errors.New("the answer has a token of an unknown type")
	case k.DPoPOnly && !k.DPoP:
		return kept{}, errors.New("the answer has a token that is not bound to a key (DPoP), and the resource accepts only bound tokens")
	case !sendable(k.Access) || len(k.Refresh) > maxToken:
		return kept{}, errors.New("the answer has an invalid token")
	}
	return k, nil
}

// sendable reports whether a token can be sent in a header.
func sendable(token string) bool {
	return len(token) <= maxToken && !strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' })
}

// scopeList removes invalid scopes (RFC 6749, section 3.3) and duplicates.
func scopeList(lists ...[]string) []string {
	const most = 200
	var out []string
	for _, s := range slices.Concat(lists...) {
		bad := s == "" || len(s) > maxName || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' })
		if !bad && len(out) < most && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

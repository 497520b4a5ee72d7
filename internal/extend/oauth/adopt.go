package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tokens are the tokens of an account that another program has logged in to.
type Tokens struct {
	Access, Refresh string
	Expires         time.Time // of Access; zero means not known
	// Auth is how the client authenticates: client_secret_basic, client_secret_post or none.
	Auth string
	// Scope and Resource are sent with each refresh. Empty means not sent.
	Scope, Resource string
	Secret          string // of the client
}

// Adopt stores tokens of an account whose Server says where they are refreshed, instead of any earlier ones.
// Token and Renew then use them.
func (c *Client) Adopt(ctx context.Context, a Account, t Tokens) error {
	if err := checkName(a.Name); err != nil {
		return err
	}
	return c.settled(ctx, a, func(*kept) (kept, error) { return t.kept(a), nil })
}

// Amend changes the stored tokens of an account. No refresh happens in between.
func (c *Client) Amend(ctx context.Context, a Account, f func(*Tokens)) error {
	return c.settled(ctx, a, func(k *kept) (kept, error) {
		if k == nil {
			return kept{}, fmt.Errorf("%s: %w", a.Name, ErrLogin)
		}
		t := Tokens{k.Access, k.Refresh, k.Expires, k.Client.Auth, k.Scope, k.Audience, k.Client.Secret}
		f(&t)
		next := t.kept(a)
		if next.Access == k.Access && next.Expires.Equal(k.Expires) {
			next.Got = k.Got
		}
		return next, nil
	})
}

// Info describes a stored account. If there is none the error is fs.ErrNotExist.
func (c *Client) Info(ctx context.Context, name string) (Info, error) {
	if c.Store == nil {
		return Info{}, errors.New("oauth: no store is set")
	}
	return c.info(ctx, name)
}

// settled saves the result of f for a stored account, under the lock; f gets nil if there is none.
func (c *Client) settled(ctx context.Context, a Account, f func(*kept) (kept, error)) error {
	unlock, err := c.lock(ctx, a.Name)
	if err != nil {
		return err
	}
	defer unlock()
	before, err := c.load(ctx, a.Name)
	k := &before
	if errors.Is(err, errNothing) {
		k, err = nil, nil
	}
	if err != nil {
		return err
	}
	next, err := f(k)
	if err != nil {
		return err
	}
	return c.save(ctx, next)
}

// kept converts tokens for the store. Their age is unknown.
func (t Tokens) kept(a Account) kept {
	return kept{
		Name: a.Name, Resource: a.Resource, Audience: t.Resource, Endpoints: *a.Server, Client: registration{a.ClientID, t.Secret, t.Auth},
		Scopes: scopeList(strings.Fields(t.Scope)), Scope: t.Scope, Access: t.Access, Refresh: t.Refresh, Expires: t.Expires,
	}
}

// KnownAuth reports whether a client can authenticate in that way.
func KnownAuth(auth string) bool {
	return slices.Contains([]string{authNone, authBasic, authPost}, auth)
}

func (c *Client) info(ctx context.Context, name string) (Info, error) {
	data, where, err := c.Store.Get(ctx, name)
	if err != nil {
		return Info{}, err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return Info{}, errors.New("the stored login is damaged")
	}
	return Info{
		Name: k.Name, Resource: k.Resource, Issuer: k.Endpoints.Issuer, Scopes: k.Scopes,
		Expires: k.Expires, Renews: k.Refresh != "" && k.Dead == "", Kept: where, Problem: k.Dead,
	}, nil
}

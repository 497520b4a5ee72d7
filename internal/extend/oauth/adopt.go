package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Tokens are those of an account that somebody else has logged in to.
type Tokens struct {
	Access, Refresh string
	Expires         time.Time // of Access; zero: not known
	// Auth is how the client says who it is: client_secret_basic, client_secret_post or none.
	Auth string
	// Scope and Resource are what each refresh asks for. Empty: nothing is said.
	Scope, Resource string
	Secret          string // of the client
}

// Adopt keeps tokens of an account whose Server says where they are refreshed, in the place of those
// that it had. Then Token and Renew go on with them.
func (c *Client) Adopt(ctx context.Context, a Account, t Tokens) error {
	if err := checkName(a.Name); err != nil {
		return err
	}
	return c.settled(ctx, a, func(*kept) (kept, error) { return t.kept(a), nil })
}

// Amend changes the tokens that are kept of an account. No refresh comes between.
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

// Info says what is kept of an account. The error of nothing is fs.ErrNotExist.
func (c *Client) Info(ctx context.Context, name string) (Info, error) {
	if c.Store == nil {
		return Info{}, errors.New("oauth: there is no store")
	}
	return c.info(ctx, name)
}

// settled saves what f makes of what is kept, under the lock; nil: nothing is.
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

// kept is what is kept of the tokens of an account. Since when Access is good, nobody knows.
func (t Tokens) kept(a Account) kept {
	return kept{
		Name: a.Name, Resource: a.Resource, Audience: t.Resource, Endpoints: *a.Server, Client: registration{a.ClientID, t.Secret, t.Auth},
		Scopes: scopeList(strings.Fields(t.Scope)), Scope: t.Scope, Access: t.Access, Refresh: t.Refresh, Expires: t.Expires,
	}
}

// KnownAuth reports whether a client can say in that way who it is.
func KnownAuth(auth string) bool {
	return slices.Contains([]string{authNone, authBasic, authPost}, auth)
}

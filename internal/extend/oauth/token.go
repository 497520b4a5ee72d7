package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
)

// Token returns an access token that is good now, and refreshes it first if it ends
// soon. The error is [ErrLogin] if a person has to log in. If a token that ends soon
// can't be refreshed just now, it is returned while it lasts.
//
// A refresh that has begun is brought to its end, within a minute, also when ctx is
// done: what the server answers is the only copy there is.
func (c *Client) Token(ctx context.Context, a Account) (Pass, error) {
	good := func(k kept) bool { return k.good(time.Now()) }
	pass, err := c.token(ctx, a, good)
	return c.orAlone(ctx, a, good, challenge{}, pass, err)
}

// Renew returns another access token than the one that the server has just refused,
// as with a 401, whose WWW-Authenticate header says which kind it takes. If another
// process has got a newer one meanwhile, it is that. The error is [ErrLogin] if a person
// has to log in, also when the resource now names another authorization server. A 401
// for the sake of a nonce refuses no token.
func (c *Client) Renew(ctx context.Context, a Account, refused, header string) (Pass, error) {
	other := func(k kept) bool { return k.Access != refused && k.good(time.Now()) }
	pass, err := c.another(ctx, a, other)
	said := parseChallenge(header)
	return c.orAlone(ctx, a, other, challenge{bearer: said.bearer, dpop: said.dpop}, pass, err)
}

// another returns another token that is kept, else refreshes.
func (c *Client) another(ctx context.Context, a Account, other func(kept) bool) (Pass, error) {
	k, err := c.usable(ctx, a)
	if err != nil {
		return Pass{}, err
	}
	if other(k) {
		return k.pass(), nil
	}
	if err := c.stillIssuedBy(ctx, a, k); err != nil {
		return Pass{}, err
	}
	return c.renew(ctx, a, other)
}

// token returns what is kept if it will do, else refreshes.
func (c *Client) token(ctx context.Context, a Account, fine func(kept) bool) (Pass, error) {
	k, err := c.usable(ctx, a)
	if err != nil {
		return Pass{}, err
	}
	if fine(k) {
		return k.pass(), nil
	}
	pass, err := c.renew(ctx, a, fine)
	if err != nil && !errors.Is(err, ErrLogin) && k.alive(time.Now()) {
		return k.pass(), nil
	}
	return pass, err
}

// usable reads what is kept and may be used for the account.
func (c *Client) usable(ctx context.Context, a Account) (kept, error) {
	k, err := c.load(ctx, a.Name)
	if err != nil {
		return kept{}, err
	}
	if err := k.bound(a); err != nil {
		return kept{}, err
	}
	if k.Dead != "" {
		return kept{}, fmt.Errorf("%s: %w: %s", a.Name, ErrLogin, k.Dead)
	}
	return k, nil
}

// stillIssuedBy asks the resource again who its authorization server is, where it said
// so before. If it does not answer, nothing has changed.
func (c *Client) stillIssuedBy(ctx context.Context, a Account, k kept) error {
	if k.Metadata == "" {
		return nil
	}
	w, err := c.wire(a.local())
	if err != nil {
		return err
	}
	f, err := w.document(ctx, k.Metadata)
	if err != nil || f == nil {
		return ctx.Err()
	}
	r, err := readResource(f, place{k.Metadata, []string{k.Audience}})
	if err != nil {
		return nil //nolint:nilerr // it is broken just now, which is no reason to log in again
	}
	for _, issuer := range r.issuers {
		if same(issuer, k.Endpoints.Issuer) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w: it has another authorization server now", a.Name, ErrLogin)
}

// renew refreshes under the lock, unless somebody else has done so meanwhile.
func (c *Client) renew(ctx context.Context, a Account, fine func(kept) bool) (Pass, error) {
	unlock, err := c.lock(ctx, a.Name)
	if err != nil {
		return Pass{}, err
	}
	defer unlock()
	k, err := c.usable(ctx, a)
	if err != nil {
		return Pass{}, err
	}
	if fine(k) {
		return k.pass(), nil
	}
	if k.Refresh == "" {
		return Pass{}, fmt.Errorf("%s: %w: the token has ended and can't be refreshed", a.Name, ErrLogin)
	}
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*requestTime)
	defer cancel()
	return c.refresh(work, a, k)
}

// refresh trades the refresh token for new ones and keeps them at once.
func (c *Client) refresh(ctx context.Context, a Account, k kept) (Pass, error) {
	w, err := c.wire(a.local())
	if err != nil {
		return Pass{}, err
	}
	w.hide = []string{k.Access, k.Refresh}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {k.Refresh}}
	if k.Audience != "" {
		form.Set("resource", k.Audience)
	}
	if k.Scope != "" {
		form.Set("scope", k.Scope)
	}
	client := k.Client
	if a.ClientSecret != "" {
		client.Secret = a.ClientSecret
	}
	// The token is spent only if its successor can be kept.
	if err := c.save(ctx, k); err != nil {
		return Pass{}, err
	}
	p := k.prover()
	f, err := p.twice(func() (*fields, error) { return w.form(ctx, k.Endpoints.Token, client, p, form) })
	if err != nil {
		return Pass{}, c.failed(ctx, k, err)
	}
	next, err := k.take(f, k.Scopes, time.Now())
	if err != nil {
		return Pass{}, fmt.Errorf("%s: refresh: %w", a.Name, err)
	}
	if _, err := c.load(ctx, k.Name); errors.Is(err, errNothing) {
		return Pass{}, err // it was forgotten meanwhile, and stays so
	}
	if err := c.save(ctx, next); err != nil {
		return Pass{}, err
	}
	return next.pass(), nil
}

// failed says what a refresh that failed means. Only where the server says that the
// grant is over, the account is marked; nothing is forgotten.
func (c *Client) failed(ctx context.Context, k kept, err error) error {
	switch {
	case refused(err, "invalid_grant"):
		k.Dead = "the token could not be refreshed: " + err.Error()
		return errors.Join(fmt.Errorf("%s: %w: %s", k.Name, ErrLogin, k.Dead), c.save(ctx, k))
	case refused(err, "invalid_client", "unauthorized_client"):
		return fmt.Errorf("%s: %w: refresh: %w", k.Name, ErrLogin, err)
	}
	return fmt.Errorf("%s: refresh: %w", k.Name, err)
}

// lock keeps all others, in this process and elsewhere, from changing what is kept of
// an account. The system gives it back when this process dies.
func (c *Client) lock(ctx context.Context, name string) (unlock func(), err error) {
	if c.Store == nil {
		return nil, errors.New("oauth: there is no store")
	}
	dir := c.Store.Locks()
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	l, err := keep.LockFile(ctx, filepath.Join(dir, digest(name)+".lock"), 0)
	if err != nil {
		return nil, fmt.Errorf("%s: wait for another process: %w", name, err)
	}
	return func() { _ = l.Close() }, nil
}

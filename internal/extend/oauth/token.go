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

// Token returns a valid access token, and refreshes it first if it expires soon. The error is [ErrLogin] if a
// person has to log in. If a token that expires soon can't be refreshed right now, it is returned while it is
// valid.
//
// A refresh that has begun is completed, within a minute, even if ctx is done: the server's response is the
// only copy of the tokens.
func (c *Client) Token(ctx context.Context, a Account) (Pass, error) {
	good := func(k kept) bool { return k.good(time.Now()) }
	pass, err := c.token(ctx, a, good)
	return c.orAlone(ctx, a, good, challenge{}, pass, err)
}

// Renew returns an access token other than the one that the server has just refused, such as with a 401, whose
// WWW-Authenticate header says which kind it accepts. If another process has got a newer one meanwhile, it returns
// that. The error is [ErrLogin] if a person has to log in, even when the resource now names another authorization
// server. A 401 because of a nonce does not refuse a token.
func (c *Client) Renew(ctx context.Context, a Account, refused, header string) (Pass, error) {
	other := func(k kept) bool { return k.Access != refused && k.good(time.Now()) }
	pass, err := c.another(ctx, a, other)
	said := parseChallenge(header)
	return c.orAlone(ctx, a, other, challenge{bearer: said.bearer, dpop: said.dpop}, pass, err)
}

// another returns another stored token, or refreshes.
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

// token returns the stored token if it is fine, or refreshes.
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

// usable reads the stored token if it may be used for the account.
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

// stillIssuedBy asks the resource again for its authorization server, if it named one before. If it does not
// answer, nothing has changed.
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

// renew refreshes under the lock, unless another process has done so meanwhile.
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

// refresh exchanges the refresh token for new tokens and stores them at once.
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
	// The refresh token is only used if the new one can be stored.
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

// failed interprets a failed refresh. The account is marked only if the server says that the grant has ended;
// nothing is deleted.
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

// lock prevents changes to a stored account by others, in this process and elsewhere. The system releases it if
// this process dies.
func (c *Client) lock(ctx context.Context, name string) (unlock func(), err error) {
	if c.Store == nil {
		return nil, errors.New("oauth: no store is set")
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

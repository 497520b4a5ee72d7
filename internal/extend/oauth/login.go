package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// Login lets a person log in, and stores the tokens. The header is the WWW-Authenticate header of the 401 or
// 403 that asked for it, several joined by commas; it may be empty. If it says insufficient_scope, the request
// is for the granted scopes and the missing ones. Earlier tokens stay until the new ones are stored.
func (c *Client) Login(ctx context.Context, a Account, way Way, p Person, header string) error {
	limited, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	err := c.login(limited, a, way, p, parseChallenge(header))
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("log in to %s: not done within %s", a.Name, c.patience())
	}
	if err != nil {
		return fmt.Errorf("log in to %s: %w", a.Name, err)
	}
	return nil
}

// attempt is a login in progress.
type attempt struct {
	c      *Client
	w      wire
	a      Account
	p      Person
	s      server
	scopes []string
	prover *prover // of the key that the tokens get bound to; nil means they are not
}

func (c *Client) login(ctx context.Context, a Account, way Way, p Person, ch challenge) error {
	if err := p.can(way); err != nil && a.Grant == "" {
		return err
	}
	t, err := c.attempt(ctx, a, p, ch)
	if err != nil {
		return err
	}
	k, err := t.run(ctx, way)
	if err != nil {
		return err
	}
	// From here on the server's response is the only copy of the tokens.
	work, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*requestTime)
	defer cancel()
	unlock, err := c.lock(work, a.Name)
	if err != nil {
		return err
	}
	defer unlock()
	return c.save(work, k)
}

// attempt gathers what a login needs.
func (c *Client) attempt(ctx context.Context, a Account, p Person, ch challenge) (attempt, error) {
	if err := checkName(a.Name); err != nil {
		return attempt{}, err
	}
	if c.Store == nil {
		return attempt{}, errors.New("oauth: no store is set")
	}
	w, err := c.wire(a.local())
	if err != nil {
		return attempt{}, err
	}
	s, err := w.discover(ctx, a, ch)
	if err != nil {
		return attempt{}, err
	}
	old, err := c.load(ctx, a.Name) // what can't be read is replaced
	if err != nil && !errors.Is(err, errNothing) && a.secretive() {
		return attempt{}, fmt.Errorf("inspan can't tell which server got the secret of the client before (%s): log out first", err.Error())
	}
	if err := sameSecret(a, s, old); err != nil {
		return attempt{}, err
	}
	proves, err := a.prover(s, ch, old)
	if err != nil {
		return attempt{}, err
	}
	return attempt{c, w, a, p, s, wantedScopes(a, s, ch, old), proves}, nil
}

// can says which ability of the person a way of logging in lacks.
func (p Person) can(way Way) error {
	switch {
	case way != Browser && way != Paste && way != Device:
		return fmt.Errorf("unknown way to log in %q", way)
	case p.Tell == nil && (p.Open == nil || way == Device):
		return errors.New("no terminal to show the login address at")
	case way == Paste && p.Paste == nil:
		return errors.New("no terminal to paste the final address of the browser at")
	}
	return nil
}

// secretive reports whether a login reveals a secret.
func (a Account) secretive() bool {
	return (a.ClientSecret != "" || a.Grant != "") && a.Server == nil
}

// sameSecret refuses to send the client's secret, or its equivalent, to a server other than the last one that
// got it: the operator of the resource could name a server of their own.
func sameSecret(a Account, s server, old kept) error {
	if !a.secretive() || old.Name == "" || old.Client.ID != a.ClientID || same(old.Endpoints.Issuer, s.Issuer) {
		return nil
	}
	return fmt.Errorf("it names another authorization server now, %s, which would get the secret of the client: log out first if that is "+
		"right", s.Issuer)
}

// wantedScopes returns the scopes to request: the configured ones, else those of the challenge, else those of
// the resource; and the granted ones too, if the challenge asks for more.
func wantedScopes(a Account, s server, ch challenge, old kept) []string {
	named := scopeList(strings.Fields(ch.params["scope"]))
	out := a.Scopes
	if len(out) == 0 {
		out = named
	}
	if len(out) == 0 {
		out = s.wanted
	}
	if ch.stepUp() {
		var granted []string
		if (old.Endpoints.Issuer == s.Issuer || same(old.Endpoints.Issuer, s.Issuer)) && old.bound(a) == nil {
			granted = old.Scopes
		}
		out = slices.Concat(granted, out, named)
	}
	if len(out) > 0 && a.Grant == "" && slices.Contains(s.offered, offline) {
		out = slices.Concat(out, []string{offline})
	}
	return scopeList(out)
}

// offline is the scope that some servers require for a refresh token.
const offline = "offline_access"

// run gets tokens in one of the ways.
func (t attempt) run(ctx context.Context, way Way) (kept, error) {
	switch {
	case t.a.Grant != "":
		return t.alone(ctx)
	case way == Device:
		return t.byDevice(ctx)
	}
	if err := t.s.takesPKCE(); err != nil {
		return kept{}, err
	}
	if t.s.Authorize == "" {
		return kept{}, errors.New("the authorization server has no page to log in with a browser")
	}
	if way == Paste {
		redirect := t.a.Redirect
		if redirect == "" {
			redirect = nowhere(t.exact())
		}
		return t.byCode(ctx, redirect, t.pasted)
	}
	l, err := listen(t.a.Redirect, t.exact())
	if err != nil {
		return kept{}, err
	}
	defer l.close()
	return t.byCode(ctx, l.redirect, func(ctx context.Context, at, state string) (response, error) {
		return t.browsed(ctx, l, at, state)
	})
}

// exact reports whether the redirect address is registered as it is, so that it can be unguessable.
func (t attempt) exact() bool { return t.a.ClientID == "" && !t.c.documented(t.s) }

// response is the authorization server's response in the redirect (RFC 6749, section 4.1.2, and RFC 9207).
type response struct {
	code, state, iss, failure, text string
}

// byCode is the authorization code flow with PKCE. Ask shows the person an address and returns the response
// with the state.
func (t attempt) byCode(ctx context.Context, redirect string,
	ask func(ctx context.Context, at, state string) (response, error),
) (kept, error) {
	who, err := t.c.identity(ctx, t.w, t.a, t.s, redirect, t.scopes, Browser)
	if err != nil {
		return kept{}, err
	}
	verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	at, err := t.page(who, redirect, verifier, state)
	if err != nil {
		return kept{}, err
	}
	r, err := ask(ctx, at, state)
	if err != nil {
		return kept{}, err
	}
	if err := t.check(r); err != nil {
		return kept{}, err
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {r.code}, "redirect_uri": {redirect}, "code_verifier": {verifier}}
	return t.trade(ctx, who, form)
}

// page returns the address where the person logs in.
func (t attempt) page(who registration, redirect, verifier, state string) (string, error) {
	more := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	if t.s.audience != "" {
		more = append(more, oauth2.SetAuthURLParam("resource", t.s.audience))
	}
	if slices.Contains(t.scopes, offline) {
		more = append(more, oauth2.SetAuthURLParam("prompt", "consent")) // OpenID Connect, section 11
	}
	if t.prover != nil {
		name, err := t.prover.key.thumbprint()
		if err != nil {
			return "", err
		}
		more = append(more, oauth2.SetAuthURLParam("dpop_jkt", name)) // RFC 9449, section 10
	}
	conf := oauth2.Config{ClientID: who.ID, RedirectURL: redirect, Scopes: t.scopes, Endpoint: oauth2.Endpoint{AuthURL: t.s.Authorize}}
	u, err := address(conf.AuthCodeURL(state, more...), t.w.local)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

// check refuses an error response, or one from another server. The state has been checked before.
func (t attempt) check(r response) error {
	switch {
	case r.iss != "" && t.s.Issuer != "" && r.iss != t.s.Issuer, r.iss == "" && t.s.saysIss:
		return errors.New("the answer is not from the expected authorization server")
	case r.failure != "":
		return fmt.Errorf("the server refuses: %w", &refusal{code: cleaned(r.failure, nil), text: cleaned(r.text, nil)})
	case r.code == "":
		return errors.New("the answer has no code")
	}
	return nil
}

// trade exchanges a grant for tokens.
func (t attempt) trade(ctx context.Context, who registration, form url.Values) (kept, error) {
	if t.s.audience != "" {
		form.Set("resource", t.s.audience)
	}
	f, err := t.prover.twice(func() (*fields, error) {
		if err := t.vouch(form); err != nil {
			return nil, err
		}
		return t.w.form(ctx, t.s.Token, who, t.prover, form)
	})
	if err != nil {
		return kept{}, err
	}
	k := kept{
		Name: t.a.Name, Resource: t.a.Resource, Audience: t.s.audience, Metadata: t.s.metadata, Endpoints: t.s.Endpoints, Client: who,
		DPoPOnly: t.s.boundOnly,
	}
	if t.prover != nil {
		k.Key = t.prover.key
	}
	return k.take(f, t.scopes, time.Now())
}

package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// IdentityProvider is where people or workloads of an organisation log in, and which decides for [IDJAG] what
// they may use (enterprise-managed authorization).
type IdentityProvider struct {
	// Issuer is its identifier, used to look up its token endpoint. Token is the endpoint, if known.
	Issuer, Token string
	// ClientID and ClientSecret are our credentials there. An empty secret: none is needed.
	ClientID, ClientSecret string
}

const (
	exchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange"
	idToken       = "urn:ietf:params:oauth:token-type:id_token"
	idJAG         = "urn:ietf:params:oauth:token-type:id-jag"
)

// identityGrant lets the identity provider exchange an ID token for a grant for the resource's authorization
// server (RFC 8693; identity assertion JWT authorization grant). Only the provider gets the ID token.
func (t attempt) identityGrant(ctx context.Context, said string) (string, error) {
	idp := t.a.Identity
	switch {
	case idp == nil:
		return "", errors.New("no identity provider is set")
	case t.s.Issuer == "":
		return "", errors.New("the authorization server has no issuer to name to the identity provider")
	}
	s := server{Endpoints: Endpoints{Issuer: idp.Issuer, Token: idp.Token}}
	if idp.Token == "" {
		var err error
		if s, err = t.w.describe(ctx, idp.Issuer); err != nil {
			return "", fmt.Errorf("ask the identity provider: %w", err)
		}
		if s.Token == "" {
			return "", fmt.Errorf("the identity provider %s does not name its token endpoint", cleaned(idp.Issuer, nil))
		}
	}
	form := url.Values{
		"grant_type": {exchangeGrant}, "requested_token_type": {idJAG},
		"subject_token": {said}, "subject_token_type": {idToken}, "audience": {t.s.Issuer},
	}
	if t.s.audience != "" {
		form.Set("resource", t.s.audience)
	}
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	who := registration{idp.ClientID, idp.ClientSecret, givenAuth(Account{ClientSecret: idp.ClientSecret}, s)}
	f, err := t.w.form(ctx, s.Token, who, nil, form)
	if err != nil {
		return "", fmt.Errorf("ask the identity provider: %w", err)
	}
	grant, kind := f.text("access_token"), f.text("issued_token_type")
	switch {
	case f.err != nil:
		return "", fmt.Errorf("ask the identity provider: %w", f.err)
	case kind != idJAG || grant == "" || len(grant) > maxToken:
		return "", errors.New("the identity provider did not answer with the requested grant (ID-JAG)")
	}
	return grant, nil
}

// machine returns our identity at a server where no person logs in: the registered one. A grant of an identity
// provider names the client, so without an id it is our metadata document, if the server supports that.
func (t attempt) machine() registration {
	if t.a.Grant == IDJAG && t.a.ClientID == "" && t.c.documented(t.s) {
		return registration{ID: t.c.Document, Auth: authNone}
	}
	return registration{t.a.ClientID, t.a.ClientSecret, givenAuth(t.a, t.s)}
}

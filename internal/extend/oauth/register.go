package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Ways in which a client authenticates at the token endpoint (RFC 7591).
const (
	authNone  = "none"
	authPost  = "client_secret_post"
	authBasic = "client_secret_basic"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// registration is our identity at an authorization server.
type registration struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Auth   string `json:"auth"` // one of the above
}

// sign adds our credentials to a form or header.
func (r registration) sign(form url.Values, header http.Header) {
	switch r.Auth {
	case authBasic:
		req := http.Request{Header: header}
		req.SetBasicAuth(url.QueryEscape(r.ID), url.QueryEscape(r.Secret))
	case authPost:
		form.Set("client_id", r.ID)
		form.Set("client_secret", r.Secret)
	default:
		if r.ID != "" {
			form.Set("client_id", r.ID)
		}
	}
}

// identity returns our identity at a server: the registered one, else our metadata document, else a new
// registration. Registering for each login costs little, and never uses a registration that the server has
// forgotten.
func (c *Client) identity(ctx context.Context, w wire, a Account, s server,
	redirect string, scopes []string, way Way,
) (registration, error) {
	switch {
	case a.ClientID != "":
		return registration{a.ClientID, a.ClientSecret, givenAuth(a, s)}, nil
	case c.documented(s):
		return registration{ID: c.Document, Auth: authNone}, nil
	case s.Register == "":
		return registration{}, errors.New("the server accepts only registered clients; set a client id from its operator")
	}
	return register(ctx, w, s, redirect, scopes, way)
}

// documented reports whether a server supports our client id metadata document.
func (c *Client) documented(s server) bool { return c.Document != "" && s.documents }

// givenAuth returns how a registered client authenticates.
func givenAuth(a Account, s server) string {
	switch {
	case a.ClientSecret == "":
		return authNone
	case len(s.auths) > 0 && !slices.Contains(s.auths, authBasic):
		return authPost
	}
	return authBasic // what holds where nothing is said (RFC 8414)
}

// register registers us with a server (RFC 7591).
func register(ctx context.Context, w wire, s server, redirect string, scopes []string, way Way) (registration, error) {
	wanted := authNone
	if len(s.auths) > 0 && !slices.Contains(s.auths, authNone) {
		wanted = givenAuth(Account{ClientSecret: "to come"}, s)
	}
	grants := []string{"authorization_code", "refresh_token"}
	if way == Device { // servers want an address to come back to all the same
		grants = append(grants, deviceGrant)
	}
	about := map[string]any{
		"client_name":                "inspan",
		"application_type":           "native",
		"redirect_uris":              []string{redirect},
		"grant_types":                grants,
		"response_types":             []string{"code"},
		"token_endpoint_auth_method": wanted,
	}
	if len(scopes) > 0 {
		about["scope"] = strings.Join(scopes, " ")
	}
	f, err := w.object(ctx, s.Register, about)
	if err != nil {
		return registration{}, fmt.Errorf("register: %w", err)
	}
	r := registration{ID: f.text("client_id"), Secret: f.text("client_secret"), Auth: f.text("token_endpoint_auth_method")}
	if r.Auth == "" && r.Secret == "" {
		r.Auth = authNone
	} else if r.Auth == "" {
		r.Auth = givenAuth(Account{ClientSecret: r.Secret}, s)
	}
	if f.err != nil {
		return registration{}, fmt.Errorf("register: %w", f.err)
	}
	return r, r.check()
}

// check refuses an unusable registration.
func (r registration) check() error {
	switch {
	case r.ID == "":
		return errors.New("register: the server gave no client id")
	case r.Auth != authNone && r.Auth != authPost && r.Auth != authBasic:
		return errors.New("register: the server requires an unsupported way of client authentication")
	case r.Auth != authNone && r.Secret == "":
		return errors.New("register: the server gave no client secret")
	}
	return nil
}

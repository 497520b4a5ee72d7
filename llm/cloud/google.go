package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/inspan/inspan/internal/base/keep"
)

// early is how long before its end a token is renewed. Google's metadata server returns the old one until four
// minutes before.
const early = 225 * time.Second

// tokenTimeout bounds the exchange for one token.
const tokenTimeout = 30 * time.Second

// Google gets access tokens for Google Cloud and keeps each until shortly before it expires. Its Key method serves
// as Key of an [llm.Endpoint], with Bearer set. The zero value uses the application default credentials: the file
// that GOOGLE_APPLICATION_CREDENTIALS names, that of "gcloud auth application-default login", or the metadata
// server of the machine. Safe for concurrent use; do not copy.
type Google struct {
	// File holds the credentials, as a service account's or a person's JSON; empty means the application default
	// credentials.
	File string
	// Scope of the tokens; empty means the cloud platform.
	Scope string
	// HTTP sends the requests for tokens, except those to the metadata server; nil means [http.DefaultTransport].
	HTTP http.RoundTripper

	once  sync.Once
	turn  chan struct{} // holds one value while no token is being fetched
	token *oauth2.Token
}

// Key returns an access token. Callers that come while one is being fetched wait for it, each until its ctx ends.
// If no new one is available, the old one is used while it is valid.
func (g *Google) Key(ctx context.Context) (string, error) {
	g.once.Do(func() {
		g.turn = make(chan struct{}, 1)
		g.turn <- struct{}{}
	})
	select {
	case <-g.turn:
		defer func() { g.turn <- struct{}{} }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if g.lasts(early) {
		return g.token.AccessToken, nil
	}
	token, err := g.fetch(ctx)
	switch {
	case err == nil:
		g.token = token
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !g.lasts(early / 10):
		return "", fmt.Errorf("get access token: %w", err)
	}
	return g.token.AccessToken, nil
}

// lasts reports whether there is a token that stays valid for this long.
func (g *Google) lasts(d time.Duration) bool {
	return g.token != nil && (g.token.Expiry.IsZero() || time.Until(g.token.Expiry) > d)
}

// fetch gets a token. It reads the credentials again: they may have been changed.
func (g *Google) fetch(ctx context.Context) (*oauth2.Token, error) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	tripper := g.HTTP
	if tripper == nil {
		tripper = http.DefaultTransport
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: bound{ctx, tripper}})
	scope := cmp.Or(g.Scope, "https://www.googleapis.com/auth/cloud-platform")
	credentials, err := g.credentials(ctx, scope)
	if err != nil {
		return nil, err
	}
	return credentials.TokenSource.Token()
}

func (g *Google) credentials(ctx context.Context, scope string) (*google.Credentials, error) {
	if g.File == "" {
		return google.FindDefaultCredentials(ctx, scope)
	}
	text, err := keep.Read(g.File)
	if err != nil {
		return nil, err
	}
	return google.CredentialsFromJSON(ctx, text, scope) //nolint:staticcheck // the file is the user's own
}

// bound is a transport that ends its requests with ctx: some requests for tokens carry none.
type bound struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (b bound) RoundTrip(r *http.Request) (*http.Response, error) {
	return b.next.RoundTrip(r.WithContext(b.ctx))
}

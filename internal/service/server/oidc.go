package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/view/words"
)

// OIDC lets in holders of a token of an OpenID Connect identity provider: a JWT that the issuer has signed for
// the audience, whose claims match an identity. The provider's keys are fetched when needed, and at most a few
// times a minute. The zero value lets no one in.
type OIDC struct {
	Issuer   string // its address, under which it publishes its documents
	Audience string // the audience that tokens must have
}

// provider is the state of the provider. The zero value is ready, and safe for concurrent use.
type provider struct {
	mu       sync.Mutex
	verifier *oidc.IDTokenVerifier // nil means the provider has not responded yet
	ctx      context.Context       //nolint:containedctx // carries the HTTP client for every fetch
}

const (
	providerTimeout = 10 * time.Second // for each of the provider's answers
	maxDocument     = 1 << 20          // bytes of one of its documents
	maxClaims       = 16               // of an identity
	maxConfines     = 100              // agents, or environments, of an identity
)

// Check reports what is wrong with the settings.
func (o OIDC) Check() error {
	u, err := url.Parse(o.Issuer)
	switch {
	case o.Issuer == "" && o.Audience == "":
		return nil
	case o.Issuer == "" || o.Audience == "":
		return errors.New("set both --oidc-issuer and --oidc-audience")
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("--oidc-issuer: %q is not the address of an issuer, such as https://accounts.example.org", words.OneLine(o.Issuer, 80))
	case u.Scheme != "https" && (u.Scheme != "http" || !netguard.IsHere(u.Hostname())):
		return errors.New("--oidc-issuer: keys would be sent unencrypted; use https")
	}
	return nil
}

// throttled is a transport that sends at most a few requests a minute, however many tokens come in.
type throttled struct {
	next http.RoundTripper
	rate *rate.Limiter
}

// RoundTrip implements [http.RoundTripper].
func (s *throttled) RoundTrip(r *http.Request) (*http.Response, error) {
	if !s.rate.Allow() {
		return nil, errors.New("too many requests to the identity provider; try again later")
	}
	return s.next.RoundTrip(r)
}

// verified returns the claims of a token, if the issuer has signed it for the audience and it is valid now.
func (p *provider) verified(o OIDC, token string) (claims map[string]any, expires time.Time, err error) {
	p.mu.Lock()
	if p.verifier == nil {
		if p.ctx == nil {
			client := (&netguard.Guard{MaxBytes: maxDocument, Timeout: providerTimeout, Local: netguard.Anywhere()}).Unredirected()
			client.Transport = &throttled{client.Transport, rate.NewLimiter(rate.Every(10*time.Second), 6)}
			p.ctx = oidc.ClientContext(context.Background(), client)
		}
		var provider *oidc.Provider
		if provider, err = oidc.NewProvider(p.ctx, o.Issuer); err == nil {
			p.verifier = provider.Verifier(&oidc.Config{ClientID: o.Audience})
		}
	}
	verifier := p.verifier
	p.mu.Unlock()
	if err != nil {
		return nil, expires, err
	}
	t, err := verifier.Verify(p.ctx, token)
	if err != nil {
		return nil, expires, err
	}
	return claims, t.Expiry, errors.Join(err, t.Claims(&claims))
}

// claimed returns the principal for a token of the provider: the identity whose claims the token has. If several
// match, the one with the most claims counts; if two of them have the most, no one is let in.
func (s *Server) claimed(token string) (principal string, ok bool) {
	claims, expires, err := s.provider.verified(s.OIDC, token)
	if err != nil {
		return "", false
	}
	s.book.mu.Lock()
	defer s.book.mu.Unlock()
	best, most, tie := "", 0, false
	for id, i := range s.book.identities {
		if n := len(i.Claims); n > 0 && n >= most && i.claimedBy(claims) {
			best, most, tie = id, n, n == most
		}
	}
	if best == "" || tie {
		return "", false
	}
	subject, _ := claims["sub"].(string)
	return strings.Join([]string{best, strconv.FormatInt(expires.Unix(), 10), url.QueryEscape(subject)}, " "), true
}

// claimedBy reports whether claims match the identity: each is equal, or in a list.
func (i *Identity) claimedBy(claims map[string]any) bool {
	for name, want := range i.Claims {
		switch got := claims[name].(type) {
		case string:
			if got != want {
				return false
			}
		case []any:
			if !slices.Contains(got, any(want)) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// subject splits a principal into the identity, the provider's subject and the expiry. The subject of an identity
// with a token of its own is empty.
func subject(principal string) (id, name string, expires time.Time) {
	parts := strings.Split(principal, " ")
	if len(parts) != 3 {
		return principal, "", expires
	}
	unix, _ := strconv.ParseInt(parts[1], 10, 64)
	name, _ = url.QueryUnescape(parts[2])
	return parts[0], words.OneLine(name, 128), time.Unix(unix, 0)
}

// checkClaims reports what is wrong with the claims of an identity.
func (s *Server) checkClaims(claims map[string]string) error {
	switch {
	case len(claims) == 0:
		return nil
	case s.OIDC.Issuer == "":
		return Wrong("claims", "this server has no identity provider", "--oidc-issuer and --oidc-audience of inspan serve")
	case len(claims) > maxClaims:
		return Wrong("claims", fmt.Sprintf("there are %d", len(claims)), fmt.Sprintf("at most %d", maxClaims))
	}
	for name, value := range claims {
		of := []string{"iss", "aud", "exp", "iat", "nbf"} // of the token, not of its holder
		if name == "" || strings.TrimSpace(value) == "" || len(name) > 256 || len(value) > 1024 || slices.Contains(of, name) {
			why := fmt.Sprintf("%q does not identify anyone", words.OneLine(name, 40))
			return Wrong("claims", why, "claims such as sub, email or groups, with a value each")
		}
	}
	return nil
}

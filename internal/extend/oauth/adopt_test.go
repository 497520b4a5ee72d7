package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestAdopt takes over tokens of another program from a real server, which accepts each refresh token once, and has
// many callers ask for a new one at the same time.
func TestAdopt(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	guard := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	first, ctx := newClient(t), t.Context()
	first.HTTP = guard.Client()
	a := oauth.Account{
		Name: "provider:acme", ClientID: "given", ClientSecret: "known-to-both-0123456789", Scopes: []string{"openid", "offline_access"},
		Server: &oauth.Endpoints{Issuer: p.origin, Authorize: p.origin + "/auth", Token: p.origin + "/token"},
	}
	must(t, first.Login(ctx, a, oauth.Browser, oauth.Person{Open: newVisits(t).open(p.origin)}, ""))
	data, _, err := first.Store.Get(ctx, a.Name)
	must(t, err)
	var has struct {
		Access, Refresh string
		Client          struct{ Auth string }
	}
	must(t, json.Unmarshal(data, &has))

	c := newClient(t)
	c.HTTP = guard.Client()
	b := oauth.Account{Name: "credential", Server: &oauth.Endpoints{Token: a.Server.Token}, ClientID: a.ClientID}
	if err := c.Amend(ctx, b, func(*oauth.Tokens) {}); !errors.Is(err, oauth.ErrLogin) {
		t.Error("nothing can be amended:", err)
	}
	must(t, c.Adopt(ctx, b, oauth.Tokens{
		Access: has.Access, Refresh: has.Refresh, Expires: time.Now().Add(-time.Minute), Auth: has.Client.Auth, Secret: a.ClientSecret,
		Scope: "openid",
	}))
	var wg sync.WaitGroup
	tokens, errs := make([]string, 8), make([]error, 8)
	for i := range tokens {
		wg.Go(func() { tokens[i], errs[i] = access(ctx, c, b) })
	}
	wg.Wait()
	for _, token := range tokens {
		if token != tokens[0] || token == has.Access || token == "" {
			t.Errorf("%v %v", tokens, errs)
		}
	}
	if s := p.seen(t); s.Granted["refresh_token"] != 1 {
		t.Errorf("the server saw %+v", s)
	}
	if info, err := c.Info(ctx, b.Name); err != nil || !info.Renews || !info.Expires.After(time.Now()) {
		t.Errorf("%+v %v", info, err)
	}
	if again, err := renewed(ctx, c, b, tokens[0]); err != nil || again == tokens[0] {
		t.Error("the rotated token was not kept:", err)
	}
	must(t, c.Amend(ctx, b, func(k *oauth.Tokens) { k.Refresh, k.Expires = has.Refresh, time.Now().Add(-time.Minute) }))
	if _, err := access(ctx, c, b); !errors.Is(err, oauth.ErrLogin) {
		t.Error("a refresh token that is spent:", err)
	}
	must(t, c.Store.Delete(ctx, b.Name))
	if _, err := c.Info(ctx, b.Name); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestAdoptedEndsSoon checks that another program's token is refreshed in the last minute before it ends, however long
// ago it was taken over, and that a new one with a short life is not.
func TestAdoptedEndsSoon(t *testing.T) {
	for _, tt := range []struct {
		left      time.Duration
		refreshes int
	}{{2 * time.Minute, 0}, {50 * time.Second, 1}, {3 * time.Second, 1}, {0, 1}} {
		s, c := startRotating(t), newClient(t)
		a := oauth.Account{Name: "credential", Resource: s.URL + "/mcp", Server: &oauth.Endpoints{Token: s.URL + "/token"}, ClientID: "us"}
		must(t, c.Adopt(t.Context(), a, oauth.Tokens{
			Access: "access-0000000", Refresh: "refresh-0000000", Auth: "none", Expires: time.Now().Add(tt.left),
		}))
		if token, err := access(t.Context(), c, a); err != nil || s.count() != tt.refreshes {
			t.Errorf("%s left: %s %v, %d refreshes", tt.left, token, err, s.count())
		}
		lasts(t, c, a.Name, 0, 30*time.Second)
		must(t, c.Amend(t.Context(), a, func(k *oauth.Tokens) { k.Scope = "more" }))
		if _, err := access(t.Context(), c, a); err != nil || s.count() != tt.refreshes {
			t.Errorf("with another scope: %v, %d refreshes", err, s.count())
		}
		must(t, c.Amend(t.Context(), a, func(k *oauth.Tokens) { k.Access, k.Expires = "other", time.Now().Add(30*time.Second) }))
		if _, err := access(t.Context(), c, a); err != nil || s.count() != tt.refreshes+1 {
			t.Errorf("with another token: %v, %d refreshes", err, s.count())
		}
	}
}

// TestForgottenMeanwhile checks that a refresh does not bring back a login that was removed meanwhile.
func TestForgottenMeanwhile(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	lasts(t, c, a.Name, time.Hour, -time.Minute)
	s.instead(func(w http.ResponseWriter, _ *http.Request) {
		must(t, c.Store.Delete(t.Context(), a.Name))
		fmt.Fprint(w, `{"access_token":"new","refresh_token":"next","token_type":"Bearer"}`)
	})
	if token, err := access(t.Context(), c, a); !errors.Is(err, oauth.ErrLogin) {
		t.Error(token, err)
	}
	if _, _, err := c.Store.Get(t.Context(), a.Name); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it is back:", err)
	}
}

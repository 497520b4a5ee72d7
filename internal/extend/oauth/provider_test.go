package oauth_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestBrowser logs in through a port of this machine, at a server that we register with, and uses, renews and revokes
// the tokens.
func TestBrowser(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	c, a, ctx := newClient(t), account(p), t.Context()
	guard := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	c.HTTP = guard.Client()
	if _, err := access(ctx, c, a); !errors.Is(err, oauth.ErrLogin) {
		t.Fatal("a token before the login:", err)
	}
	status, challenge, _ := p.use(t, "none")
	if status != 401 {
		t.Fatal(status)
	}
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: newVisits(t).open(p.origin)}, challenge))
	first, err := access(ctx, c, a)
	must(t, err)
	if status, _, scope := p.use(t, first); status != 200 || scope != "read" {
		t.Fatal("the token is not taken:", status, scope)
	}
	second, err := renewed(ctx, c, a, first)
	must(t, err)
	if status, _, _ := p.use(t, second); status != 200 || second == first {
		t.Fatal("the new token is not taken:", status)
	}
	if again, err := renewed(ctx, c, a, first); err != nil || again != second {
		t.Error("the token that another got was not used:", err)
	}
	if s := p.seen(t); s.Registered != 1 || s.Granted["refresh_token"] != 1 {
		t.Errorf("the server saw %+v", s)
	}
	list, err := c.Accounts(ctx)
	if err != nil || len(list) != 1 || list[0].Issuer != p.origin || !list[0].Renews || list[0].Problem != "" {
		t.Errorf("%+v %v", list, err)
	}
	must(t, c.Logout(ctx, a.Name))
	if status, _, _ := p.use(t, second); status != 401 {
		t.Error("the token is taken after the logout:", status)
	}
	if _, err := access(ctx, c, a); !errors.Is(err, oauth.ErrLogin) {
		t.Error("a token after the logout:", err)
	}
}

// TestProvider logs in to a server whose addresses are known beforehand, as providers of
// models are, by a browser and by a device.
func TestProvider(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	v := newVisits(t)
	for way, person := range map[oauth.Way]oauth.Person{oauth.Browser: {Open: v.open(p.origin)}, oauth.Device: {Tell: v.enter(p.origin)}} {
		c := newClient(t)
		a := oauth.Account{
			Name: "provider:acme", ClientID: "given", ClientSecret: "known-to-both-0123456789", Scopes: []string{"openid", "offline_access"},
			Server: &oauth.Endpoints{Issuer: p.origin, Authorize: p.origin + "/auth", Token: p.origin +
				"/token", Device: p.origin + "/device/auth", Revoke: p.origin + "/token/revocation"},
		}
		must(t, c.Login(t.Context(), a, way, person, ""))
		first, err := access(t.Context(), c, a)
		must(t, err)
		second, err := renewed(t.Context(), c, a, first)
		if must(t, err); second == first || second == "" {
			t.Errorf("%s: %q, %q", way, first, second)
		}
		must(t, c.Logout(t.Context(), a.Name))
		if _, err := access(t.Context(), c, a); !errors.Is(err, oauth.ErrLogin) {
			t.Error(way, err)
		}
	}
	if s := p.seen(t); s.Granted["refresh_token"] != 2 || s.Registered != 0 || s.Revoked == 0 {
		t.Errorf("%+v", s)
	}
}

// TestStepUp asks for more scopes, and keeps those granted before.
func TestStepUp(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	c, a, ctx, v := newClient(t), account(p), t.Context(), newVisits(t)
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: v.open(p.origin)}, ""))
	more := `Bearer error="insufficient_scope", scope="write"`
	if !oauth.StepUp(more) || oauth.StepUp(`Bearer error="invalid_token", scope="write"`) || oauth.StepUp("") {
		t.Error("what asks for more is not known")
	}
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: v.open(p.origin)}, more))
	token, err := access(ctx, c, a)
	must(t, err)
	if _, _, scope := p.use(t, token); scope != "read write" && scope != "write read" {
		t.Errorf("granted: %q", scope)
	}
}

// TestPaste has the person bring the address of a page that the browser can't show.
func TestPaste(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	c, a, ctx := newClient(t), account(p), t.Context()
	b := newBrowser(p.origin)
	var told strings.Builder
	pastes := 0
	person := oauth.Person{
		Open: b.walk,
		Tell: func(text string) { told.WriteString(text + "\n") },
		Paste: func(context.Context) (string, error) {
			if pastes++; pastes == 1 {
				return "http://127.0.0.1/callback?code=theirs&state=theirs", nil
			}
			return "  " + b.left[:40] + "\n" + b.left[40:] + "\n", nil
		},
	}
	must(t, c.Login(ctx, a, oauth.Paste, person, ""))
	token, err := access(ctx, c, a)
	must(t, err)
	if status, _, _ := p.use(t, token); status != 200 || pastes != 2 {
		t.Error(status, pastes)
	}
	if !strings.Contains(told.String(), "another login") {
		t.Error("the foreign address was not refused:", told.String())
	}
}

// TestDevice enters a code on another device.
func TestDevice(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	c, a, ctx, v := newClient(t), account(p), t.Context(), newVisits(t)
	must(t, c.Login(ctx, a, oauth.Device, oauth.Person{Tell: v.enter(p.origin)}, ""))
	first, err := access(ctx, c, a)
	must(t, err)
	second, err := renewed(ctx, c, a, first)
	must(t, err)
	if status, _, _ := p.use(t, second); status != 200 {
		t.Error(status)
	}
}

// TestGivenClient logs in with a client and a secret that were registered beforehand.
func TestGivenClient(t *testing.T) {
	t.Parallel()
	p := startProvider(t, `{}`)
	c, a, ctx := newClient(t), account(p), t.Context()
	a.ClientID, a.ClientSecret = "given", "known-to-both-0123456789"
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: newVisits(t).open(p.origin)}, ""))
	first, err := access(ctx, c, a)
	must(t, err)
	_, err = renewed(ctx, c, a, first)
	must(t, err)
	if s := p.seen(t); s.Registered != 0 {
		t.Errorf("registered %d times", s.Registered)
	}
	other := a
	other.ClientID = "another"
	if _, err := access(ctx, c, other); !errors.Is(err, oauth.ErrLogin) {
		t.Error("a token of one client was given to another:", err)
	}
	must(t, c.Logout(ctx, a.Name))
	if s := p.seen(t); s.Revoked == 0 {
		t.Errorf("nothing was revoked: %+v", s)
	}
}

// TestClientDocument logs in with the address of our document as client id.
func TestClientDocument(t *testing.T) {
	t.Parallel()
	const document = "https://client.example/inspan.json"
	p := startProvider(t, `{"document": "`+document+`"}`)
	c, a, ctx := newClient(t), account(p), t.Context()
	c.Document = document
	must(t, c.Login(ctx, a, oauth.Browser, oauth.Person{Open: newVisits(t).open(p.origin)}, ""))
	token, err := access(ctx, c, a)
	must(t, err)
	if status, _, _ := p.use(t, token); status != 200 {
		t.Error(status)
	}
	if s := p.seen(t); s.Registered != 0 {
		t.Errorf("registered %d times", s.Registered)
	}
}

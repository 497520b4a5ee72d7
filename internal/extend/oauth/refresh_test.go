package oauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// change edits the stored data of an account.
func change(t *testing.T, c *oauth.Client, name string, edit func(map[string]any)) {
	t.Helper()
	data, _, err := c.Store.Get(t.Context(), name)
	must(t, err)
	var kept map[string]any
	must(t, json.Unmarshal(data, &kept))
	edit(kept)
	data, err = json.Marshal(kept)
	must(t, err)
	must(t, c.Store.Set(t.Context(), name, data))
}

// lasts sets how long the access token has been there and still lasts.
func lasts(t *testing.T, c *oauth.Client, name string, since, left time.Duration) {
	t.Helper()
	change(t, c, name, func(kept map[string]any) {
		kept["got"], kept["expires"] = time.Now().Add(-since), time.Now().Add(left)
	})
}

// TestWhenToRefresh checks that tokens are refreshed in time, and no sooner.
func TestWhenToRefresh(t *testing.T) {
	for _, tt := range []struct {
		name        string
		since, left time.Duration
		refreshes   int
	}{
		{"fresh", 0, time.Hour, 0},
		{"two minutes left of an hour", 58 * time.Minute, 2 * time.Minute, 0},
		{"half a minute left of an hour", time.Hour, 30 * time.Second, 1},
		{"half of a minute left", 30 * time.Second, 30 * time.Second, 0},
		{"three seconds left of a minute", 57 * time.Second, 3 * time.Second, 1},
		{"ended", 2 * time.Hour, -time.Hour, 1},
		{"the clock was set back", -24 * time.Hour, 25 * time.Hour, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRotating(t)
			c, a := s.loggedIn(t)
			lasts(t, c, a.Name, tt.since, tt.left)
			token, err := access(t.Context(), c, a)
			if err != nil || s.count() != tt.refreshes || (token == "access-0000000") != (tt.refreshes == 0) {
				t.Error(token, err, s.count())
			}
		})
	}
}

// TestLifeOfTokens checks how statements of servers about the life of tokens are read.
func TestLifeOfTokens(t *testing.T) {
	for _, tt := range []struct {
		said string
		want time.Duration // 0 means unknown
	}{
		{`3600`, time.Hour},
		{`"3600"`, time.Hour},
		{`1799.5`, 1799500 * time.Millisecond},
		{`null`, 0},
		{`0`, 0},
		{`-5`, 0},
		{`""`, 0},
		{`"soon"`, 0},
		{`1e300`, 10 * 365 * 24 * time.Hour},
		{`9223372036854775807`, 10 * 365 * 24 * time.Hour},
	} {
		w, c := newWorld(t), newClient(t)
		w.token["expires_in"] = json.RawMessage(tt.said)
		must(t, w.login(t, c, w.account(), ""))
		list, err := c.Accounts(t.Context())
		must(t, err)
		got := time.Until(list[0].Expires)
		if tt.want == 0 && !list[0].Expires.IsZero() || tt.want != 0 && (got > tt.want || got < tt.want-time.Minute) {
			t.Errorf("%s: %s", tt.said, list[0].Expires)
		}
		if token, err := access(t.Context(), c, w.account()); err != nil || token != "access-secret-1" {
			t.Error(tt.said, err)
		}
	}
}

// TestFailedRefresh checks that no failure loses a login, and that no error contains a secret.
func TestFailedRefresh(t *testing.T) {
	fails := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	cut := func(w http.ResponseWriter, _ *http.Request) {
		conn, _, _ := http.NewResponseController(w).Hijack()
		_ = conn.Close()
	}
	for _, tt := range []struct {
		name  string
		on    http.HandlerFunc
		login bool // a person is needed
		marks bool // and it is kept that one is
	}{
		{"overloaded", fails(503, "later"), false, false},
		{"broken", fails(500, `{"error":"invalid_grant"}`), false, false},
		{"limited", fails(429, `{"error":"too_many"}`), false, false},
		{"cut off", cut, false, false},
		{"nothing", fails(200, ""), false, false},
		{"a page", fails(200, "<html>"), false, false},
		{"led elsewhere", fails(302, ""), false, false},
		{"asked wrongly", fails(400, `{"error":"invalid_request"}`), false, false},
		{"client not known", fails(401, `{"error":"invalid_client","error_description":"refresh-0000000"}`), true, false},
		{"grant over", fails(400, `{"error":"invalid_grant","error_description":"refresh-0000000 is over"}`), true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := startRotating(t)
			c, a := s.loggedIn(t)
			other := a
			other.Name = "mcp:other"
			must(t, c.Store.Set(t.Context(), other.Name, []byte(fmt.Sprintf(`{"name":"mcp:other","resource":%q,"access":"theirs"}`, a.Resource))))
			s.instead(tt.on)
			_, err := renewed(t.Context(), c, a, "access-0000000")
			if err == nil || errors.Is(err, oauth.ErrLogin) != tt.login {
				t.Fatal(err)
			}
			noSecrets(t, err.Error(), "refresh-0000000", "access-0000000")
			list, _ := c.Accounts(t.Context())
			if len(list) != 2 || (list[1].Problem != "") != tt.marks {
				t.Errorf("%+v", list)
			}
			noSecrets(t, fmt.Sprintf("%+v", list), "refresh-0000000", "access-0000000")
			if token, err := access(t.Context(), c, other); err != nil || token != "theirs" {
				t.Error("another account was touched:", err)
			}
			s.instead(nil)
			_, err = renewed(t.Context(), c, a, "access-0000000")
			if tt.marks != errors.Is(err, oauth.ErrLogin) || !tt.marks && err != nil {
				t.Error("later:", err)
			}
		})
	}
}

// TestTokenOutlastsTheServer uses a token that ends soon while its server is away.
func TestTokenOutlastsTheServer(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	lasts(t, c, a.Name, time.Hour, 30*time.Second)
	s.Close()
	if token, err := access(t.Context(), c, a); err != nil || token != "access-0000000" {
		t.Error(token, err)
	}
	lasts(t, c, a.Name, time.Hour, -time.Second)
	if _, err := access(t.Context(), c, a); err == nil || errors.Is(err, oauth.ErrLogin) {
		t.Error(err)
	}
}

// TestRefreshIsBroughtToItsEnd has the caller go away while the server answers.
func TestRefreshIsBroughtToItsEnd(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.instead(func(w http.ResponseWriter, _ *http.Request) {
		cancel()
		fmt.Fprint(w, `{"access_token":"new","refresh_token":"newer"}`)
	})
	if token, err := renewed(ctx, c, a, "access-0000000"); err != nil || token != "new" {
		t.Error(token, err)
	}
	if _, err := renewed(ctx, c, a, "new"); !errors.Is(err, context.Canceled) {
		t.Error("a refresh began for nobody:", err)
	}
}

// TestKeptForItsOwn checks that a stored login is used for its own account alone.
func TestKeptForItsOwn(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	for name, edit := range map[string]func(*oauth.Account){
		"another resource": func(a *oauth.Account) { a.Resource = "https://elsewhere.test/mcp" },
		"another path":     func(a *oauth.Account) { a.Resource = s.URL + "/other" },
		"escaped path":     func(a *oauth.Account) { a.Resource = s.URL + "/%6dcp%2f" },
		"another port":     func(a *oauth.Account) { a.Resource = "http://127.0.0.1:1/mcp" },
		"no resource":      func(a *oauth.Account) { a.Resource = "" },
		"another issuer":   func(a *oauth.Account) { a.Server = &oauth.Endpoints{Issuer: "https://elsewhere.test"} },
		"another endpoint": func(a *oauth.Account) { a.Server = &oauth.Endpoints{Token: "https://elsewhere.test"} },
		"another client":   func(a *oauth.Account) { a.ClientID = "them" },
	} {
		mine := a
		edit(&mine)
		if _, err := access(t.Context(), c, mine); !errors.Is(err, oauth.ErrLogin) {
			t.Error(name, err)
		}
		if _, err := renewed(t.Context(), c, mine, "access-0000000"); !errors.Is(err, oauth.ErrLogin) {
			t.Error(name, err)
		}
	}
	slash := a
	slash.Resource += "/"
	if _, err := access(t.Context(), c, slash); err != nil {
		t.Error("a slash makes no other resource:", err)
	}
	if s.count() != 0 {
		t.Error("the server was asked")
	}
}

// TestAnotherIssuer has a resource change its authorization server: the stored login is sent nowhere, and a new login
// is needed. While the resource does not answer, nothing changes.
func TestAnotherIssuer(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	a := w.account()
	must(t, w.login(t, c, a, ""))
	w.token["access_token"], w.token["refresh_token"] = "access-secret-2", ""
	said := w.resource
	w.resource = nil
	token, err := renewed(t.Context(), c, a, "access-secret-1")
	if err != nil || token != "access-secret-2" {
		t.Fatal(token, err)
	}
	if w.form().Get("resource") != a.Resource {
		t.Error("the refresh names no resource")
	}
	list, _ := c.Accounts(t.Context())
	if !list[0].Renews || len(list[0].Scopes) != 1 {
		t.Errorf("what the answer did not name is gone: %+v", list)
	}
	thief := newWorld(t)
	said["authorization_servers"] = []string{thief.URL}
	w.resource = said
	n := len(w.forms)
	if _, err := renewed(t.Context(), c, a, "access-secret-2"); !errors.Is(err, oauth.ErrLogin) {
		t.Error(err)
	}
	if len(w.forms) != n || len(thief.paths) != 0 {
		t.Error("somebody was shown the refresh token")
	}
}

// TestWithoutRefreshToken needs a person once the token has ended.
func TestWithoutRefreshToken(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	delete(w.token, "refresh_token")
	a := w.account()
	must(t, w.login(t, c, a, ""))
	if list, _ := c.Accounts(t.Context()); list[0].Renews {
		t.Errorf("%+v", list)
	}
	if _, err := renewed(t.Context(), c, a, "access-secret-1"); !errors.Is(err, oauth.ErrLogin) {
		t.Error(err)
	}
	if token, err := access(t.Context(), c, a); err != nil || token == "" {
		t.Error("a token that lasts is gone:", err)
	}
	lasts(t, c, a.Name, time.Hour, -time.Second)
	if _, err := access(t.Context(), c, a); !errors.Is(err, oauth.ErrLogin) {
		t.Error(err)
	}
}

// TestFullDisk checks that a refresh token is not spent if its successor can't be kept.
func TestFullDisk(t *testing.T) {
	s := startRotating(t)
	c, a := s.loggedIn(t)
	full := &oauth.Client{HTTP: c.HTTP, Store: fullDisk{c.Store}}
	if _, err := renewed(t.Context(), full, a, "access-0000000"); err == nil || errors.Is(err, oauth.ErrLogin) {
		t.Error(err)
	}
	if s.count() != 0 {
		t.Error("the refresh token was spent")
	}
	if _, err := renewed(t.Context(), c, a, "access-0000000"); err != nil {
		t.Error("later:", err)
	}
}

type fullDisk struct{ oauth.Store }

func (fullDisk) Set(context.Context, string, []byte) error { return os.ErrPermission }

// TestLogout gives tokens back where that is possible, and forgets them in any case.
func TestLogout(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   http.HandlerFunc
		want string // the error
		asks bool
	}{
		{"given back", func(http.ResponseWriter, *http.Request) {}, "", true},
		{"answered with a page", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>ok") }, "", true},
		{"not given back", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":"x","error_description":"refresh-secret-1"}`)
		}, "removed here", true},
		{"led elsewhere", func(w http.ResponseWriter, req *http.Request) {
			http.Redirect(w, req, "/elsewhere", http.StatusPermanentRedirect)
		}, "removed here", true},
		{"can't be given back", nil, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			var given []string
			if tt.on == nil {
				delete(w.server, "revocation_endpoint")
			}
			w.on["/revoke"] = func(rw http.ResponseWriter, req *http.Request) {
				given = append(given, req.FormValue("token_type_hint")+" "+req.FormValue("token"))
				tt.on(rw, req)
			}
			must(t, w.login(t, c, w.account(), ""))
			err := c.Logout(t.Context(), "mcp:world")
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil {
				noSecrets(t, err.Error(), "refresh-secret-1", "access-secret-1")
			}
			want := ""
			if tt.asks {
				want = "refresh_token refresh-secret-1, access_token access-secret-1"
			}
			if got := strings.Join(given, ", "); got != want || w.asked("/elsewhere") {
				t.Errorf("given back: %q", got)
			}
			if list, err := c.Accounts(t.Context()); err != nil || len(list) != 0 {
				t.Error(list, err)
			}
			must(t, c.Logout(t.Context(), "mcp:world"))
		})
	}
}

// TestChangedSecret refreshes with the secret that is set now, which may be newer than
// the one that was logged in with.
func TestChangedSecret(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	a := w.account()
	a.ClientID, a.ClientSecret = "set", "old-secret"
	must(t, w.login(t, c, a, ""))
	got := ""
	w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
		_, got, _ = req.BasicAuth()
		reply(rw, w.token)
	}
	a.ClientSecret = "new-secret"
	if _, err := renewed(t.Context(), c, a, "access-secret-1"); err != nil || got != "new-secret" {
		t.Error(err, got)
	}
}

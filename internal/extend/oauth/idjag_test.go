package oauth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
)

const (
	idToken = "id-token-secret"
	idJAG   = "urn:ietf:params:oauth:token-type:id-jag"
)

// idp is an identity provider that makes a grant of an ID token.
type idp struct {
	*httptest.Server
	about map[string]any
	reply map[string]any
	token http.HandlerFunc // in the place of the answer; nil means the answer

	mu    sync.Mutex
	forms []url.Values
	heads []http.Header
}

func newIDP(t *testing.T) *idp {
	p := &idp{}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	p.about = map[string]any{"issuer": p.URL, "token_endpoint": p.URL + "/trade"}
	p.reply = map[string]any{"access_token": "the-grant", "issued_token_type": idJAG, "token_type": "N_A", "expires_in": 300}
	return p
}

func (p *idp) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	switch req.URL.Path {
	case "/.well-known/openid-configuration":
		reply(w, p.about)
	case "/trade":
		_ = req.ParseForm()
		p.mu.Lock()
		p.forms, p.heads = append(p.forms, req.PostForm), append(p.heads, req.Header)
		p.mu.Unlock()
		if p.token != nil {
			p.token(w, req)
			return
		}
		reply(w, p.reply)
	default:
		http.NotFound(w, req)
	}
}

func (p *idp) asked() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.forms)
}

// employee is an account that the identity provider lets in.
func (w *world) employee(t *testing.T, p *idp) oauth.Account {
	a := w.account()
	a.Grant, a.AssertionFile = oauth.IDJAG, filepath.Join(t.TempDir(), "id_token")
	a.ClientID, a.ClientSecret = "at-the-server", "server secret"
	a.Identity = &oauth.IdentityProvider{Issuer: p.URL, ClientID: "at-the-idp", ClientSecret: "idp secret"}
	must(t, os.WriteFile(a.AssertionFile, []byte(idToken+"-1\n"), 0o600))
	return a
}

// TestIdentityProvider gets a grant there and a token for it, and shows each only to who
// has to see it.
func TestIdentityProvider(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world, p *idp, a *oauth.Account, c *oauth.Client){
		"by its name": func(*world, *idp, *oauth.Account, *oauth.Client) {},
		"by its address": func(_ *world, p *idp, a *oauth.Account, _ *oauth.Client) {
			a.Identity.Issuer, a.Identity.Token = "", p.URL+"/trade"
		},
		"without a secret": func(_ *world, _ *idp, a *oauth.Account, _ *oauth.Client) { a.Identity.ClientSecret = "" },
		"with the secret in form": func(_ *world, p *idp, _ *oauth.Account, _ *oauth.Client) {
			p.about["token_endpoint_auth_methods_supported"] = []string{"client_secret_post"}
		},
		"by our document": func(w *world, _ *idp, a *oauth.Account, c *oauth.Client) {
			w.server["client_id_metadata_document_supported"] = true
			a.ClientID, a.ClientSecret, c.Document = "", "", "https://client.example/inspan.json"
		},
		"with a key": func(w *world, _ *idp, _ *oauth.Account, _ *oauth.Client) { w.bound() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, c := newWorld(t), newIDP(t), newClient(t)
			a := w.employee(t, p)
			change(w, p, &a, c)
			for i, text := range []string{idToken + "-1", idToken + "-2"} {
				must(t, os.WriteFile(a.AssertionFile, []byte(text+"\n"), 0o600))
				token, err := access(t.Context(), c, a)
				if must(t, err); token != "access-secret-1" {
					t.Error(token)
				}
				if f := p.forms[i]; f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:token-exchange" ||
					f.Get("requested_token_type") != idJAG ||
					f.Get("subject_token") != text || f.Get("subject_token_type") != "urn:ietf:params:oauth:token-type:id_token" ||
					f.Get("audience") != w.URL || f.Get("resource") != a.Resource || f.Get("scope") != "read" || f.Has("assertion") {
					t.Errorf("%+v", f)
				}
				if f := w.form(); f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || f.Get("assertion") != "the-grant" ||
					f.Get("resource") != a.Resource || f.Has("subject_token") {
					t.Errorf("%+v", f)
				}
				must(t, c.Logout(t.Context(), a.Name))
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			noSecrets(t, fmt.Sprintf("%+v %+v %+v", w.forms, w.heads, w.paths), idToken, "idp secret", "idp+secret", "at-the-idp")
			noSecrets(t, fmt.Sprintf("%+v %+v", p.forms, p.heads), "server secret", "server+secret", "the-grant")
			who, secret, _ := (&http.Request{Header: p.heads[0]}).BasicAuth()
			form := p.forms[0]
			if form.Has("client_id") {
				who, secret = form.Get("client_id"), form.Get("client_secret")
			}
			if secret, _ = url.QueryUnescape(secret); who != "at-the-idp" || secret != a.Identity.ClientSecret ||
				form.Has("client_secret") != strings.Contains(name, "form") {
				t.Errorf("%q, %q, %+v", who, secret, form)
			}
			who, _, basic := (&http.Request{Header: w.heads[0]}).BasicAuth()
			if a.ClientID == "" && w.forms[0].Get("client_id") != c.Document || basic != (a.ClientSecret != "") || who != a.ClientID {
				t.Errorf("%q, %+v", who, w.forms[0])
			}
			if bound := w.heads[0].Get("DPoP") != ""; bound != (name == "with a key") || p.heads[0].Get("DPoP") != "" {
				t.Error("proven:", bound)
			}
		})
	}
}

// TestIdentityProviderFails checks that the error gives the reason once, never asks for a login by a person, and that
// no further request is sent.
func TestIdentityProviderFails(t *testing.T) {
	t.Parallel()
	says := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			fmt.Fprintf(w, body, req.FormValue("subject_token"))
		}
	}
	for name, tt := range map[string]struct {
		change func(w *world, p *idp, a *oauth.Account)
		asked  int // whether with the ID token
		want   string
	}{
		"refused": {func(_ *world, p *idp, _ *oauth.Account) {
			p.token = says(400, `{"error":"invalid_grant","error_description":"%s has ended"}`)
		}, 1, "ask the identity provider: the server answered 400 invalid_grant"},
		"led elsewhere": {func(_ *world, p *idp, _ *oauth.Account) { p.token = says(307, `%s`) }, 1, "which inspan does not follow"},
		"broken":        {func(_ *world, p *idp, _ *oauth.Account) { p.token = says(200, `<%s>`) }, 1, "can't be read"},
		"another kind": {func(_ *world, p *idp, _ *oauth.Account) {
			p.reply["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
		}, 1, "did not answer with the requested grant"},
		"no kind":  {func(_ *world, p *idp, _ *oauth.Account) { delete(p.reply, "issued_token_type") }, 1, "did not answer with the requested grant"},
		"no grant": {func(_ *world, p *idp, _ *oauth.Account) { delete(p.reply, "access_token") }, 1, "did not answer with the requested grant"},
		"endless grant": {
			func(_ *world, p *idp, _ *oauth.Account) { p.reply["access_token"] = strings.Repeat("x", 1<<17) },
			1, "did not answer with the requested grant",
		},
		"odd grant":      {func(_ *world, p *idp, _ *oauth.Account) { p.reply["access_token"] = 5 }, 1, "has the wrong type"},
		"silent":         {func(_ *world, p *idp, _ *oauth.Account) { p.about = nil }, 0, "does not name its token"},
		"no endpoint":    {func(_ *world, p *idp, _ *oauth.Account) { delete(p.about, "token_endpoint") }, 0, "does not name its token"},
		"another's name": {func(_ *world, p *idp, _ *oauth.Account) { p.about["issuer"] = "https://idp.test" }, 0, "speaks for another issuer"},
		"not https":      {func(_ *world, p *idp, _ *oauth.Account) { p.about["token_endpoint"] = "http://idp.test/trade" }, 0, "is not https"},
		"issuer not https": {func(_ *world, _ *idp, a *oauth.Account) {
			a.Identity.Issuer = "http://idp.test"
		}, 0, "is not https"},
		"here, but the server is not": {func(_ *world, p *idp, a *oauth.Account) {
			a.Resource, a.Server = "https://x.test/mcp", &oauth.Endpoints{Issuer: "https://x.test", Token: "https://x.test/token"}
			a.Identity.Issuer, a.Identity.Token = "", p.URL+"/trade"
		}, 0, "names an address of this machine"},
		"no name of the server": {func(_ *world, p *idp, a *oauth.Account) {
			a.Server = &oauth.Endpoints{Token: p.URL + "/token"}
		}, 0, "no issuer to name"},
		"none":        {func(_ *world, _ *idp, a *oauth.Account) { a.Identity = nil }, 0, "no identity provider is set"},
		"no ID token": {func(_ *world, _ *idp, a *oauth.Account) { a.AssertionFile += "-missing" }, 0, "no such file"},
		"token at fault": {func(w *world, _ *idp, _ *oauth.Account) {
			w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
				rw.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(rw, `{"error":"invalid_grant","error_description":"not %s"}`, req.FormValue("assertion"))
			}
		}, 1, "the server answered 400 invalid_grant: not …"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p, c := newWorld(t), newIDP(t), newClient(t)
			a := w.employee(t, p)
			tt.change(w, p, &a)
			_, err := access(t.Context(), c, a)
			if err == nil || errors.Is(err, oauth.ErrLogin) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			noSecrets(t, err.Error(), idToken, "the-grant", "idp secret")
			if p.asked() != tt.asked || w.asked("/token") != (name == "token at fault") {
				t.Errorf("asked %d times, then %v", p.asked(), w.paths)
			}
		})
	}
}

// TestIdentityProviderForAnother asks for no grant for another server than before.
func TestIdentityProviderForAnother(t *testing.T) {
	t.Parallel()
	w, p, c := newWorld(t), newIDP(t), newClient(t)
	a := w.employee(t, p)
	first, err := access(t.Context(), c, a)
	must(t, err)
	w.resource["authorization_servers"] = []string{newWorld(t).URL}
	if _, err := renewed(t.Context(), c, a, first); err == nil || !strings.Contains(err.Error(), "another authorization server") {
		t.Error(err)
	}
	if p.asked() != 1 {
		t.Errorf("asked %d times", p.asked())
	}
}

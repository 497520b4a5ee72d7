package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/safety/netguard"
)

// TestServersThatAreRefused has servers that are broken or hostile. None of them gets a code, and no error contains a
// secret.
func TestServersThatAreRefused(t *testing.T) {
	redirect := func(to string) http.HandlerFunc {
		return func(rw http.ResponseWriter, req *http.Request) {
			http.Redirect(rw, req, to, http.StatusTemporaryRedirect)
		}
	}
	huge := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(rw, `{"issuer":"%s"}`, strings.Repeat("x", 1<<20))
	}
	status := func(code int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	const asPath = "/.well-known/oauth-authorization-server"
	for _, tt := range []struct {
		name string
		evil func(w *world)
		want string
	}{
		{"resource of somebody else", func(w *world) { w.resource["resource"] = "https://elsewhere.test/mcp" }, "another resource"},
		{"resource that is wider", func(w *world) { w.resource["resource"] = w.URL }, "another resource"},
		{"resource not said", func(w *world) { delete(w.resource, "resource") }, "another resource"},
		{"resource in another case of letters", func(w *world) {
			w.resource["Resource"] = w.resource["resource"]
			delete(w.resource,
				"resource")
		}, "another resource"},
		{"no authorization server", func(w *world) { w.resource["authorization_servers"] = []string{} }, "names no authorization server"},
		{
			"authorization server without encryption", func(w *world) { w.resource["authorization_servers"] = []string{"http://192.0.2.1"} },
			"is not https",
		},
		{"authorization server as a script", func(w *world) { w.resource["authorization_servers"] = []string{"javascript:alert(1)"} }, "scheme"},
		{"authorization server that says nothing", func(w *world) { w.server = nil }, "does not describe itself"},
		{"issuer of somebody else", func(w *world) { w.server["issuer"] = "https://elsewhere.test" }, "another issuer"},
		{"issuer not said", func(w *world) { delete(w.server, "issuer") }, "another issuer"},
		{"no PKCE", func(w *world) { delete(w.server, "code_challenge_methods_supported") }, "PKCE"},
		{"plain PKCE", func(w *world) { w.server["code_challenge_methods_supported"] = []string{"plain"} }, "PKCE"},
		{"page that is a script", func(w *world) { w.server["authorization_endpoint"] = "javascript:alert(document.cookie)" }, "scheme"},
		{"page that is a file", func(w *world) { w.server["authorization_endpoint"] = "file:///etc/passwd" }, "scheme"},
		{"page with a fragment", func(w *world) { w.server["authorization_endpoint"] = w.URL + "/authorize#x" }, "fragment"},
		{"page without encryption", func(w *world) { w.server["authorization_endpoint"] = "http://192.0.2.1/" }, "is not https"},
		{"token endpoint without encryption", func(w *world) { w.server["token_endpoint"] = "http://192.0.2.1/" }, "is not https"},
		{"registration without encryption", func(w *world) { w.server["registration_endpoint"] = "http://192.0.2.1/" }, "is not https"},
		{"revocation without encryption", func(w *world) { w.server["revocation_endpoint"] = "http://192.0.2.1/" }, "is not https"},
		{"devices without encryption", func(w *world) { w.server["device_authorization_endpoint"] = "http://192.0.2.1/" }, "is not https"},
		{"no token endpoint", func(w *world) { delete(w.server, "token_endpoint") }, "no token endpoint"},
		{"no page", func(w *world) { delete(w.server, "authorization_endpoint") }, "no page"},
		{"no registration", func(w *world) { delete(w.server, "registration_endpoint") }, "client id"},
		{"description that is broken", func(w *world) { w.server["issuer"] = 7 }, "has the wrong type"},
		{"description twice", func(w *world) { w.on[asPath] = raw(`{"issuer":"a","issuer":"b"}`) }, "twice"},
		{"description with a tail", func(w *world) { w.on[asPath] = raw(`{"issuer":"a"}{}`) }, "follows"},
		{"description that is huge", func(w *world) { w.on[asPath] = huge }, "longer than"},
		{"description that fails", func(w *world) { w.on[asPath] = status(500) }, "500"},
		{"resource that fails", func(w *world) { w.on[prmPath+"/mcp"] = status(503) }, "503"},
		{"resource that is limited", func(w *world) { w.on[prmPath+"/mcp"] = status(429) }, "429"},
		{"endless redirects", func(w *world) { w.on[asPath] = redirect(asPath) }, "more than 5 redirects"},
		{"redirect without encryption", func(w *world) { w.on[asPath] = redirect("http://192.0.2.1/") }, "is not https"},
		{"registration led elsewhere", func(w *world) { w.on["/register"] = redirect("/elsewhere") }, "does not follow"},
		{"registration that is huge", func(w *world) { w.on["/register"] = huge }, "longer than"},
		{"registration without a client", func(w *world) { w.on["/register"] = raw(`{}`) }, "no client id"},
		{"registration without a secret", func(w *world) {
			w.on["/register"] = raw(`{"client_id":"x","token_endpoint_auth_method":"client_secret_post"}`)
		}, "no client secret"},
		{"registration with a key", func(w *world) {
			w.on["/register"] = raw(`{"client_id":"x","token_endpoint_auth_method":"private_key_jwt"}`)
		}, "an unsupported way"},
		{"issuer of the answer is another", func(w *world) { w.back.Set("iss", "https://elsewhere.test") }, "not from the expected"},
		{"issuer of the answer has a slash more", func(w *world) { w.back.Set("iss", w.URL+"/") }, "not from the expected"},
		{
			"issuer of the answer is missing", func(w *world) { w.server["authorization_response_iss_parameter_supported"] = true },
			"not from the expected",
		},
		{"no code", func(w *world) { w.back.Set("code", "") }, "no code"},
		{"refused by the person", func(w *world) {
			w.back.Set("error", "access_denied")
			w.back.Set("error_description", "no\x1b[31m thanks")
		}, `access_denied: no\x1b[31m thanks`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			tt.evil(w)
			err := w.login(t, c, w.account(), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if w.asked("/token") || w.asked("/elsewhere") || len(w.paths) > 12 {
				t.Error("the server was shown more than it may see:", w.paths)
			}
			if list, err := c.Accounts(t.Context()); err != nil || len(list) != 0 {
				t.Error("something is kept:", list, err)
			}
		})
	}
}

func raw(body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		fmt.Fprint(rw, body)
	}
}

// TestAnswersWithTokensThatAreRefused has the token endpoint send unusable answers.
func TestAnswersWithTokensThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		on   http.HandlerFunc
		want string
	}{
		{"none", raw(`{}`), "no access token"},
		{"empty", raw(``), "no access token"},
		{"in another case of letters", raw(`{"Access_Token":"x"}`), "no access token"},
		{"twice", raw(`{"access_token":"x","access_token":"y"}`), "twice"},
		{"with a newline", raw(`{"access_token":"x\ny"}`), "an invalid token"},
		{"too long", raw(`{"access_token":"` + strings.Repeat("x", 70_000) + `"}`), "an invalid token"},
		{"of another type", raw(`{"access_token":"x","token_type":"DPoP"}`), "type"},
		{"no JSON", raw(`access_token=access-secret-9`), "can't be read"},
		{"failure with a good status", raw(`{"error":"invalid_grant","error_description":"code-secret-1 was used"}`), "invalid_grant"},
		{"led elsewhere", func(rw http.ResponseWriter, req *http.Request) {
			http.Redirect(rw, req, "/elsewhere", http.StatusTemporaryRedirect)
		}, "does not follow"},
		{"cut off", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Length", "100")
			fmt.Fprint(rw, `{"access_token":"access-secret-9"`)
		}, "can't be reached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			w.on["/token"] = tt.on
			err := w.login(t, c, w.account(), "")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			noSecrets(t, err.Error(), "code-secret-1", "access-secret-9")
			if w.asked("/elsewhere") {
				t.Error("the redirect was followed")
			}
		})
	}
}

// TestWhatIsSent checks the requests to servers, for each way of finding them.
func TestWhatIsSent(t *testing.T) {
	for _, tt := range []struct {
		name      string
		set       func(w *world, c *oauth.Client, a *oauth.Account)
		challenge string
		resource  string // below the address of the server
		scope     string
		client    string
		paths     []string // that were asked for
		not       []string // that were not
	}{
		{name: "all is described", resource: "/mcp", scope: "read", client: "registered", paths: []string{"/register"}},
		{name: "the challenge names scopes", challenge: `Bearer scope="a b"`, resource: "/mcp", scope: "a b", client: "registered"},
		{
			name: "scopes are set", set: func(_ *world, _ *oauth.Client, a *oauth.Account) { a.Scopes = []string{"mine"} },
			challenge: `Bearer scope="a"`, resource: "/mcp", scope: "mine", client: "registered",
		},
		{name: "offline access is offered", set: func(w *world, _ *oauth.Client, _ *oauth.Account) {
			w.server["scopes_supported"] = []string{"offline_access"}
		}, resource: "/mcp", scope: "read offline_access", client: "registered"},
		{
			name: "no scopes at all", set: func(w *world, _ *oauth.Client, _ *oauth.Account) { delete(w.resource, "scopes_supported") },
			resource: "/mcp", client: "registered",
		},
		{
			name: "the challenge says where", set: func(w *world, _ *oauth.Client, _ *oauth.Account) {
				said := w.resource
				w.on["/about"] = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, said) }
				w.resource = nil
			}, challenge: `Bearer resource_metadata="WORLD/about"`, resource: "/mcp",
			scope: "read", client: "registered", not: []string{prmPath + "/mcp"},
		},
		{name: "at the root, for all of the host", set: func(w *world, _ *oauth.Client, _ *oauth.Account) {
			said := w.resource
			said["resource"] = w.URL
			w.on[prmPath] = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, said) }
			w.resource = nil
		}, resource: "", scope: "read", client: "registered", paths: []string{prmPath + "/mcp", prmPath}},
		{
			name: "nothing is described (2025-03-26)", set: func(w *world, _ *oauth.Client, _ *oauth.Account) { w.resource, w.server = nil, nil },
			resource: "/mcp", client: "registered", paths: []string{"/.well-known/openid-configuration", "/register", "/authorize"},
		},
		{
			name: "only the server is described", set: func(w *world, _ *oauth.Client, _ *oauth.Account) { w.resource = nil },
			resource: "/mcp", client: "registered",
		},
		{name: "one page for all addresses", set: func(w *world, _ *oauth.Client, _ *oauth.Account) {
			w.on[prmPath+"/mcp"] = func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "<html>") }
		}, resource: "/mcp", client: "registered"},
		{name: "issuer with a path", set: func(w *world, _ *oauth.Client, _ *oauth.Account) {
			w.resource["authorization_servers"] = []string{w.URL + "/tenant"}
			w.server["issuer"] = w.URL + "/tenant"
			w.on["/tenant/.well-known/openid-configuration"] = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, w.server) }
		}, resource: "/mcp", scope: "read", client: "registered", paths: []string{
			"/.well-known/oauth-authorization-server/tenant",
			"/.well-known/openid-configuration/tenant",
		}, not: []string{"/.well-known/oauth-authorization-server"}},
		{name: "client set", set: func(_ *world, c *oauth.Client, a *oauth.Account) {
			a.ClientID, c.Document = "set", "https://client.test/doc"
		}, resource: "/mcp", scope: "read", client: "set", not: []string{"/register"}},
		{name: "document taken", set: func(w *world, c *oauth.Client, _ *oauth.Account) {
			c.Document, w.server["client_id_metadata_document_supported"] = "https://client.test/doc", true
		}, resource: "/mcp", scope: "read", client: "https://client.test/doc", not: []string{"/register"}},
		{
			name: "document not taken", set: func(_ *world, c *oauth.Client, _ *oauth.Account) { c.Document = "https://client.test/doc" },
			resource: "/mcp", scope: "read", client: "registered",
		},
		{
			name: "issuer set", set: func(w *world, _ *oauth.Client, a *oauth.Account) { a.Server = &oauth.Endpoints{Issuer: w.URL} },
			resource: "/mcp", scope: "read", client: "registered",
		},
		{name: "everything set", set: func(w *world, _ *oauth.Client, a *oauth.Account) {
			a.Server = &oauth.Endpoints{Authorize: w.URL + "/authorize", Token: w.URL + "/token"}
			a.ClientID, a.Scopes, a.Resource = "set", []string{"s"}, ""
		}, resource: "none", scope: "s", client: "set", not: []string{prmPath + "/mcp", prmPath, "/register"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			a := w.account()
			if tt.set != nil {
				tt.set(w, c, &a)
			}
			must(t, w.login(t, c, a, strings.ReplaceAll(tt.challenge, "WORLD", w.URL)))
			page, form := w.page(), w.form()
			resource := w.URL + tt.resource
			if tt.resource == "none" {
				resource = ""
			}
			for _, got := range []struct{ what, got, want string }{
				{"resource of the page", page.Get("resource"), resource},
				{"resource of the form", form.Get("resource"), resource},
				{"scope", page.Get("scope"), tt.scope},
				{"client", page.Get("client_id"), tt.client},
				{"client of the form", form.Get("client_id"), tt.client},
				{"method", page.Get("code_challenge_method"), "S256"},
				{"redirect", form.Get("redirect_uri"), page.Get("redirect_uri")},
				{"code", form.Get("code"), "code-secret-1"},
			} {
				if got.got != got.want {
					t.Errorf("%s: got %q, want %q", got.what, got.got, got.want)
				}
			}
			if len(page.Get("state")) < 20 || len(form.Get("code_verifier")) < 43 || page.Get("state") == form.Get("code_verifier") {
				t.Error("state or verifier are weak")
			}
			if consent := page.Get("prompt") == "consent"; consent != strings.Contains(tt.scope, "offline_access") {
				t.Errorf("prompt %q for %q", page.Get("prompt"), tt.scope)
			}
			for _, path := range tt.paths {
				if !w.asked(path) {
					t.Error("not asked:", path)
				}
			}
			for _, path := range tt.not {
				if w.asked(path) {
					t.Error("asked:", path)
				}
			}
			if token, err := access(t.Context(), c, a); err != nil || token != "access-secret-1" {
				t.Error(token, err)
			}
		})
	}
}

// TestElsewhereNamesThisMachine has a server elsewhere name addresses of this machine.
func TestElsewhereNamesThisMachine(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	a := oauth.Account{Name: "provider:x", ClientID: "x", Server: &oauth.Endpoints{
		Authorize: w.URL + "/authorize", Token: "https://elsewhere.test/token",
	}}
	err := w.login(t, c, a, "")
	if err == nil || !strings.Contains(err.Error(), "this machine") || w.asked("/authorize") {
		t.Error(err)
	}
}

// TestGuarded reaches no more than its HTTP client may, whatever servers name.
func TestGuarded(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	c.HTTP = new(netguard.Guard).Client()
	err := w.login(t, c, w.account(), "")
	var refused *netguard.RefusedError
	if !errors.As(err, &refused) || len(w.paths) != 0 {
		t.Error(err, w.paths)
	}
}

// TestPartOfAHost has a resource say, where its challenge leads, that it speaks for the whole host: the owner of a part
// of a host could get tokens for all of it.
func TestPartOfAHost(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	said := map[string]any{"resource": w.URL, "authorization_servers": []string{w.URL}}
	w.on["/about"] = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, said) }
	w.resource = nil
	err := w.login(t, c, w.account(), `Bearer resource_metadata="`+w.URL+`/about"`)
	if err == nil || !strings.Contains(err.Error(), "another resource") || w.asked("/authorize") {
		t.Error(err)
	}
}

// TestSecretStaysWithItsServer has a resource name another authorization server than
// the one that was shown the client's secret.
func TestSecretStaysWithItsServer(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	a := w.account()
	a.ClientID, a.ClientSecret = "set", "client-secret"
	must(t, w.login(t, c, a, ""))
	thief := newWorld(t)
	w.resource["authorization_servers"] = []string{thief.URL}
	if err := w.login(t, c, a, ""); err == nil || !strings.Contains(err.Error(), "log out first") {
		t.Error(err)
	}
	pinned := a
	pinned.Server = &oauth.Endpoints{Issuer: w.URL}
	if err := w.login(t, c, pinned, ""); err == nil || !strings.Contains(err.Error(), "does not name") {
		t.Error(err)
	}
	if thief.asked("/token") {
		t.Error("the other server was shown the secret")
	}
}

// TestLoginEnds has a person who does not log in.
func TestLoginEnds(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	c.Patience = 200 * time.Millisecond
	idle := oauth.Person{Tell: func(string) {}}
	if err := c.Login(t.Context(), w.account(), oauth.Browser, idle, ""); err == nil || !strings.Contains(err.Error(), "within 200ms") {
		t.Error(err)
	}
	c.Patience = 0
	ctx, cancel := context.WithCancel(t.Context())
	stop := oauth.Person{Tell: func(string) { cancel() }}
	if err := c.Login(ctx, w.account(), oauth.Browser, stop, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPersonsWhoCant have no means for a way of logging in.
func TestPersonsWhoCant(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	tell := func(string) {}
	for _, tt := range []struct {
		way oauth.Way
		p   oauth.Person
	}{
		{oauth.Browser, oauth.Person{}},
		{oauth.Device, oauth.Person{Open: func(string) error { return nil }}},
		{oauth.Paste, oauth.Person{Tell: tell}},
		{"carrier pigeon", oauth.Person{Tell: tell}},
	} {
		if err := c.Login(t.Context(), w.account(), tt.way, tt.p, ""); err == nil || w.asked("/token") || w.asked("/register") {
			t.Error(tt.way, err)
		}
	}
	broken := errors.New("no browser")
	lonely := oauth.Person{Open: func(string) error { return broken }, Paste: func(context.Context) (string, error) { return "", nil }}
	for _, way := range []oauth.Way{oauth.Browser, oauth.Paste} {
		if err := c.Login(t.Context(), w.account(), way, lonely, ""); !errors.Is(err, broken) {
			t.Error(way, err)
		}
	}
	for _, c := range []*oauth.Client{{}, {HTTP: &http.Client{}}, {Store: c.Store}} {
		if err := c.Login(t.Context(), w.account(), oauth.Browser, oauth.Person{Tell: tell}, ""); err == nil {
			t.Error("logged in with half a client")
		}
		if _, err := access(t.Context(), c, w.account()); err == nil {
			t.Error("a token from half a client")
		}
	}
	for _, name := range []string{"", "a\nb", strings.Repeat("x", 300), "\xff"} {
		a := w.account()
		a.Name = name
		if err := c.Login(t.Context(), a, oauth.Browser, oauth.Person{Tell: tell}, ""); err == nil {
			t.Errorf("logged in as %q", name)
		}
	}
}

// TestPasting checks which texts may be pasted.
func TestPasting(t *testing.T) {
	for _, tt := range []struct {
		name, text string // STATE stands for the state
		says       bool   // the server says who it is
		want       string // the error; empty means a login
	}{
		{name: "the address", text: "http://127.0.0.1:1/callback?code=c&state=STATE"},
		{name: "the query", text: "code=c&state=STATE"},
		{name: "in quotes", text: ` "http://x/?code=c&state=STATE" `},
		{name: "code and state", text: "c#STATE"},
		{name: "the code", text: "c"},
		{name: "the code, where more is needed", text: "c", says: true, want: "not the address or code"},
		{name: "another state", text: "code=c&state=x", want: "not the address or code"},
		{name: "no state", text: "http://x/?code=c", want: "not the address or code"},
		{name: "code and another state", text: "c#x", want: "not the address or code"},
		{name: "nothing", text: " \n", want: "not the address or code"},
		{name: "something else", text: "https://x.test/", want: "not the address or code"},
		{name: "a code twice", text: "code=c&code=d&state=STATE", want: "not the address or code"},
		{name: "another issuer", text: "code=c&state=STATE&iss=https://x.test", want: "not from the expected"},
		{name: "a refusal", text: "http://x/?error=access_denied&state=STATE", want: "access_denied"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c := newWorld(t), newClient(t)
			w.server["authorization_response_iss_parameter_supported"] = tt.says
			state, told := "", ""
			p := oauth.Person{
				Open: func(at string) error {
					u, err := url.Parse(at)
					state = u.Query().Get("state")
					return err
				},
				Tell:  func(text string) { told += text },
				Paste: func(context.Context) (string, error) { return strings.ReplaceAll(tt.text, "STATE", state), nil },
			}
			err := c.Login(t.Context(), w.account(), oauth.Paste, p, "")
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q; told %s", err, tt.want, told)
			}
			if tt.want == "" && w.form().Get("code") != "c" {
				t.Error(w.form())
			}
		})
	}
}

// TestPasteFails has a person who goes away.
func TestPasteFails(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	gone := errors.New("gone")
	p := oauth.Person{Tell: func(string) {}, Paste: func(context.Context) (string, error) { return "", gone }}
	if err := c.Login(t.Context(), w.account(), oauth.Paste, p, ""); !errors.Is(err, gone) {
		t.Error(err)
	}
}

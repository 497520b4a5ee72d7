package oauth_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// show asks a resource with a pass, and once more with the nonce that it gave.
func show(t *testing.T, at string, pass oauth.Pass) (status int, sent *http.Request) {
	t.Helper()
	for nonce, tries := "", 0; ; tries++ {
		sent, _ = http.NewRequest(http.MethodGet, at, nil)
		must(t, pass.Apply(sent, nonce))
		resp, err := http.DefaultClient.Do(sent)
		must(t, err)
		resp.Body.Close()
		nonce = resp.Header.Get("DPoP-Nonce")
		if tries > 0 || !strings.Contains(resp.Header.Get("WWW-Authenticate"), "use_dpop_nonce") {
			return resp.StatusCode, sent
		}
	}
}

// read takes a proof apart: its header and its claims.
func read(t *testing.T, proof string) (header map[string]any, claims jwt.MapClaims) {
	t.Helper()
	claims = jwt.MapClaims{}
	token, _, err := jwt.NewParser().ParseUnverified(proof, claims)
	if err != nil {
		t.Fatalf("%q is no proof: %v", proof, err)
	}
	return token.Header, claims
}

// keyOf is the public key of a request's proof; empty means it has none.
func keyOf(t *testing.T, req *http.Request) string {
	t.Helper()
	proof := req.Header.Get("DPoP")
	if proof == "" {
		return ""
	}
	header, _ := read(t, proof)
	return fmt.Sprint(header["jwk"])
}

// TestBoundTokens logs in to a server that checks, at the login and at its resource, that
// who shows a token has its key: with nonces of its own and without.
func TestBoundTokens(t *testing.T) {
	t.Parallel()
	for _, dpop := range []string{"plain", "nonce"} {
		t.Run(dpop, func(t *testing.T) {
			t.Parallel()
			p := startProvider(t, `{"dpop": "`+dpop+`"}`)
			c, ctx, v := newClient(t), t.Context(), newVisits(t)
			a := oauth.Account{Name: "mcp:peer", Resource: p.origin + "/me"}
			resp, err := http.Get(a.Resource)
			must(t, err)
			resp.Body.Close()
			challenge := strings.Join(resp.Header.Values("WWW-Authenticate"), ", ")
			var keys []string
			for way, person := range map[oauth.Way]oauth.Person{oauth.Browser: {Open: v.open(p.origin)}, oauth.Device: {Tell: v.enter(p.origin)}} {
				must(t, c.Login(ctx, a, way, person, challenge))
				first, err := c.Token(ctx, a)
				must(t, err)
				status, sent := show(t, a.Resource, first)
				if status != http.StatusOK {
					t.Fatalf("%s: %d; the server saw %+v", way, status, p.seen(t))
				}
				replayed, err := http.DefaultClient.Do(sent)
				must(t, err)
				replayed.Body.Close()
				if replayed.StatusCode == http.StatusOK {
					t.Error("the server takes a proof twice, so it checks nothing")
				}
				if status, _ := show(t, a.Resource, oauth.Pass{Token: first.Token}); status != http.StatusUnauthorized {
					t.Error("the token is not bound:", status)
				}
				other := startProcess(t, dirOf(c), a.Resource)
				other.ask(first.Token)
				kind, second := other.answer()
				pass, err := c.Token(ctx, a)
				if must(t, err); kind != "token" || pass.Token != second || second == first.Token {
					t.Fatalf("%s %s, here %v; the server saw %+v", kind, second, pass.Token, p.seen(t))
				}
				status, again := show(t, a.Resource, pass)
				if status != http.StatusOK || keyOf(t, again) != keyOf(t, sent) {
					t.Error("after a refresh elsewhere:", status)
				}
				keys = append(keys, keyOf(t, sent))
			}
			if keys[0] == keys[1] || keys[0] == "" {
				t.Error("the keys of two logins:", keys)
			}
			for _, r := range p.seen(t).Requests {
				if !strings.HasPrefix(r, "use_dpop_nonce") && !strings.HasPrefix(r, "authorization_pending") {
					t.Error("refused:", r)
				}
			}
		})
	}
}

// TestBoundAlone has a client without a person identify itself again when the server wants a nonce first: a signed
// assertion is accepted only once.
func TestBoundAlone(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	m := machine{id: "by-key", key: key, form: "PRIVATE KEY", der: der}
	settings, err := json.Marshal(map[string]any{"machines": []any{m.about()}, "dpop": "nonce"})
	must(t, err)
	p := startProvider(t, string(settings))
	a := m.account(t, p)
	a.Resource, a.Scopes = p.origin+"/me", []string{"read"}
	pass, err := newClient(t).Token(t.Context(), a)
	if err != nil {
		t.Fatalf("%v; the server saw %+v", err, p.seen(t))
	}
	if _, sent := show(t, a.Resource, pass); keyOf(t, sent) == "" {
		t.Error("the token is not bound")
	}
	if s := p.seen(t); s.Granted["client_credentials"] != 1 || s.Refused["client_credentials"] != 1 {
		t.Errorf("the server saw %+v", s)
	}
}

// bound has the authorization server of a world give bound tokens.
func (w *world) bound() *world {
	w.server["dpop_signing_alg_values_supported"] = []string{"RS256", "ES256"}
	w.token["token_type"] = "DPoP"
	return w
}

// TestProofs checks the content of a proof, and that no two are alike.
func TestProofs(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t).bound(), newClient(t)
	a := w.account()
	w.server["token_endpoint"] = w.URL + "/token?tenant=a%2Fb"
	must(t, w.login(t, c, a, ""))
	header, claims := read(t, w.proof())
	jwk, _ := header["jwk"].(map[string]any)
	if len(header) != 3 || header["typ"] != "dpop+jwt" || header["alg"] != "ES256" ||
		len(jwk) != 4 || jwk["kty"] != "EC" || jwk["crv"] != "P-256" || jwk["d"] != nil {
		t.Errorf("%+v", header)
	}
	if len(claims) != 4 || claims["htm"] != "POST" || claims["htu"] != w.URL+"/token" || claims["iat"] == nil {
		t.Errorf("%+v", claims)
	}
	if w.page().Get("dpop_jkt") == "" {
		t.Error("the code is not bound")
	}
	pass, err := c.Token(t.Context(), a)
	must(t, err)
	seen := map[any]bool{}
	for _, tt := range []struct{ method, at, want string }{
		{http.MethodPost, "https://x.test/mcp?a=b#c", "https://x.test/mcp"},
		{http.MethodGet, "https://us:pw@x.test:8443", "https://x.test:8443/"},
		{"", "https://x.test/a%2Fb/%20", "https://x.test/a%2Fb/%20"},
	} {
		req, err := http.NewRequest(http.MethodGet, tt.at, nil)
		must(t, err)
		req.Method = tt.method
		must(t, pass.Apply(req, "from-the-server"))
		_, claims := read(t, req.Header.Get("DPoP"))
		if claims["htu"] != tt.want || claims["htm"] != req.Method && tt.method != "" || tt.method == "" && claims["htm"] != "GET" {
			t.Errorf("%+v", claims)
		}
		// SHA-256 of the token, as sha256sum and base64 have it.
		if claims["ath"] != "ncWqlq_wYnSzrJg8fLcEjRuJDZmoBrsOQLj0O3j5ddU" || claims["nonce"] != "from-the-server" ||
			req.Header.Get("Authorization") != "DPoP access-secret-1" {
			t.Errorf("%+v, %v", claims, req.Header)
		}
		seen[claims["jti"]] = true
	}
	if len(seen) != 3 {
		t.Error("a proof came twice")
	}
	req, err := http.NewRequest(http.MethodGet, a.Resource, nil)
	must(t, err)
	must(t, pass.Apply(req, strings.Repeat("n", 1<<20)))
	if _, claims := read(t, req.Header.Get("DPoP")); claims["nonce"] != nil {
		t.Error("a nonce without end was signed")
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%x"} {
		noSecrets(t, fmt.Sprintf(form+form, pass, &pass), "access-secret-1", "6163636573732d", "private")
	}
}

// TestWhatIsBound checks which tokens are asked to be bound to a key, and how they are used then.
func TestWhatIsBound(t *testing.T) {
	t.Parallel()
	const never = "-" // the login fails before anything is asked for
	for name, tt := range map[string]struct {
		set       func(w *world)
		challenge string
		asked     bool   // for a bound one
		scheme    string // of the token; else the error
	}{
		"offered":              {func(*world) {}, "", true, "DPoP"},
		"in other letters":     {func(w *world) { w.token["token_type"] = "dpop" }, "", true, "DPoP"},
		"but a bearer came":    {func(w *world) { w.token["token_type"] = "Bearer" }, "", true, "Bearer"},
		"but nothing was said": {func(w *world) { delete(w.token, "token_type") }, "", true, "Bearer"},
		"of another type":      {func(w *world) { w.token["token_type"] = "mac" }, "", true, "an unknown type"},
		"not offered":          {func(w *world) { delete(w.server, "dpop_signing_alg_values_supported") }, "", false, "an unknown type"},
		"not as we sign": {
			func(w *world) { w.server["dpop_signing_alg_values_supported"] = []string{"RS256"} },
			"", false, "an unknown type",
		},
		"offered by a liar": {
			func(w *world) { w.server["dpop_signing_alg_values_supported"] = "ES256" },
			"", false, never + "has the wrong type",
		},
		"resource wants a bearer": {func(w *world) { w.token["token_type"] = "Bearer" }, `Bearer scope="read"`, false, "Bearer"},
		"resource wants either":   {func(*world) {}, `Bearer realm="x", DPoP algs="ES256 RS256"`, true, "DPoP"},
		"resource can't read it":  {func(w *world) { w.token["token_type"] = "Bearer" }, `Bearer realm="x", DPoP algs="RS256"`, false, "Bearer"},
		"resource knows it": {func(w *world) {
			w.resource["dpop_signing_alg_values_supported"] = []string{"ES256"}
		}, `Bearer scope="read"`, true, "DPoP"},
		"resource knows another": {func(w *world) {
			w.token["token_type"] = "Bearer"
			w.resource["dpop_signing_alg_values_supported"] = []string{"EdDSA"}
		}, "", false, "Bearer"},
		"resource takes no other": {func(w *world) {
			w.resource["dpop_bound_access_tokens_required"] = true
		}, `Bearer scope="read"`, true, "DPoP"},
		"but it can't be had": {func(w *world) {
			w.resource["dpop_bound_access_tokens_required"] = true
			delete(w.server, "dpop_signing_alg_values_supported")
		}, "", false, never + "which its authorization server does not give"},
		"but it did not come": {func(w *world) {
			w.resource["dpop_bound_access_tokens_required"] = true
			w.token["token_type"] = "Bearer"
		}, "", true, "not bound to a key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newWorld(t).bound(), newClient(t)
			tt.set(w)
			err := w.login(t, c, w.account(), tt.challenge)
			if want, early := strings.CutPrefix(tt.scheme, never); early {
				if err == nil || !strings.Contains(err.Error(), want) || w.asked("/register") || w.asked("/authorize") {
					t.Errorf("%v, asked for %v", err, w.paths)
				}
				return
			}
			if asked := w.proof() != ""; asked != tt.asked || (w.page().Get("dpop_jkt") != "") != tt.asked {
				t.Errorf("asked for a bound token: %t", asked)
			}
			if strings.Contains(tt.scheme, " ") {
				if err == nil || !strings.Contains(err.Error(), tt.scheme) {
					t.Error(err)
				}
				return
			}
			must(t, err)
			pass, err := c.Token(t.Context(), w.account())
			must(t, err)
			req, err := http.NewRequest(http.MethodGet, w.URL, nil)
			must(t, err)
			must(t, pass.Apply(req, ""))
			if req.Header.Get("Authorization") != tt.scheme+" access-secret-1" || (req.Header.Get("DPoP") != "") != (tt.scheme == "DPoP") {
				t.Error(req.Header)
			}
		})
	}
}

// TestNoncesOfATokenEndpoint checks when a request is made again.
func TestNoncesOfATokenEndpoint(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		nonces []string // that refusals come with
		code   string
		asked  int
		want   string // of the error; empty means none
	}{
		"one":       {[]string{"a"}, "use_dpop_nonce", 2, ""},
		"two":       {[]string{"a", "b"}, "use_dpop_nonce", 2, "use_dpop_nonce"},
		"replayed":  {[]string{"a", "a"}, "use_dpop_nonce", 2, "use_dpop_nonce"},
		"none":      {[]string{""}, "use_dpop_nonce", 1, "use_dpop_nonce"},
		"no nonces": {[]string{"a"}, "invalid_dpop_proof", 1, "invalid_dpop_proof"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c := newWorld(t).bound(), newClient(t)
			a, n := w.account(), 0
			must(t, w.login(t, c, a, ""))
			var proofs []string
			w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
				proofs = append(proofs, req.Header.Get("DPoP"))
				if n >= len(tt.nonces) {
					reply(rw, map[string]any{"access_token": "access-secret-2", "token_type": "DPoP"})
					return
				}
				rw.Header().Set("DPoP-Nonce", tt.nonces[n])
				rw.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(rw, `{"error":%q}`, tt.code)
				n++
			}
			pass, err := c.Renew(t.Context(), a, "access-secret-1", "")
			if tt.want == "" && (err != nil || pass.Token != "access-secret-2") || tt.want != "" &&
				(err == nil || !strings.Contains(err.Error(), tt.want)) || errors.Is(err, oauth.ErrLogin) {
				t.Errorf("%v, %q", err, pass.Token)
			}
			if len(proofs) != tt.asked {
				t.Fatalf("asked %d times", len(proofs))
			}
			_, first := read(t, proofs[0])
			_, last := read(t, proofs[len(proofs)-1])
			if tt.asked == 2 && (last["nonce"] != tt.nonces[0] || last["jti"] == first["jti"]) || first["nonce"] != nil {
				t.Errorf("%+v, %+v", first, last)
			}
			if list, err := c.Accounts(t.Context()); err != nil || list[0].Problem != "" {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// TestKeysThatAreKept checks logins with and without a key.
func TestKeysThatAreKept(t *testing.T) {
	t.Parallel()
	fresh := map[string]any{"access_token": "access-secret-2", "token_type": "DPoP"}
	t.Run("none", func(t *testing.T) { // as before there were any
		w, c := newWorld(t).bound(), newClient(t)
		a := w.account()
		must(t, w.login(t, c, a, ""))
		change(t, c, a.Name, func(kept map[string]any) { delete(kept, "key"); delete(kept, "dpop") })
		w.token = map[string]any{"access_token": "access-secret-2", "token_type": "Bearer"}
		if got, err := renewed(t.Context(), c, a, "access-secret-1"); err != nil || got != "access-secret-2" || w.proof() != "" {
			t.Error(got, err, w.proof())
		}
	})
	t.Run("damaged", func(t *testing.T) {
		key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		must(t, err)
		odd, err := x509.MarshalPKCS8PrivateKey(key)
		must(t, err)
		for _, damage := range []any{nil, "", "AAAA", "!", 5, odd} {
			w, c := newWorld(t).bound(), newClient(t)
			must(t, w.login(t, c, w.account(), ""))
			change(t, c, w.account().Name, func(kept map[string]any) { kept["key"] = damage })
			if _, err := c.Token(t.Context(), w.account()); !errors.Is(err, oauth.ErrLogin) {
				t.Errorf("%v: %v", damage, err)
			}
		}
	})
	t.Run("no longer bound", func(t *testing.T) {
		for _, only := range []bool{true, false} {
			w, c := newWorld(t).bound(), newClient(t)
			a := w.account()
			w.resource["dpop_bound_access_tokens_required"] = only
			must(t, w.login(t, c, a, ""))
			w.token = map[string]any{"access_token": "access-secret-2", "token_type": "Bearer"}
			got, err := renewed(t.Context(), c, a, "access-secret-1")
			if only && (err == nil || errors.Is(err, oauth.ErrLogin) || !strings.Contains(err.Error(), "not bound to a key")) ||
				!only && (err != nil || got != "access-secret-2") {
				t.Error(only, got, err)
			}
			if w.proof() == "" {
				t.Error("the key was not used")
			}
		}
	})
	t.Run("without a person", func(t *testing.T) {
		w, c := newWorld(t).bound(), newClient(t)
		a := w.machine()
		first, err := access(t.Context(), c, a)
		if must(t, err); w.proof() == "" {
			t.Error("the key was not used")
		}
		w.token = map[string]any{"access_token": "access-secret-2", "token_type": "Bearer"}
		// The resource can't do anything with it, and is believed from then on.
		for i, said := range []string{`Bearer realm="x"`, ""} {
			pass, err := c.Renew(t.Context(), a, first, said)
			if must(t, err); w.proof() != "" {
				t.Errorf("%d: asked for a bound token again", i)
			}
			w.token["access_token"], first = "access-secret-1", pass.Token
		}
		w.token = fresh
		pass, err := c.Renew(t.Context(), a, first, `DPoP algs="ES256"`)
		if must(t, err); w.proof() == "" || pass.Token != "access-secret-2" {
			t.Error("it can by now")
		}
	})
	t.Run("a code for a device", func(t *testing.T) { // is no token, so nothing is proven for it
		w, c := newWorld(t).bound(), newClient(t)
		asked, proven := false, ""
		w.on["/device"] = func(rw http.ResponseWriter, req *http.Request) {
			asked, proven = true, req.Header.Get("DPoP")
			rw.WriteHeader(http.StatusBadRequest)
		}
		if err := c.Login(t.Context(), w.account(), oauth.Device, oauth.Person{Tell: func(string) {}}, ""); err == nil || !asked || proven != "" {
			t.Error(err, asked, proven)
		}
	})
	t.Run("provider", func(t *testing.T) {
		w, c := newWorld(t).bound(), newClient(t)
		w.token["token_type"] = "Bearer"
		a := oauth.Account{Name: "provider:x", ClientID: "us", Server: &oauth.Endpoints{Issuer: w.URL}}
		if must(t, w.login(t, c, a, "")); w.proof() != "" {
			t.Error("a proof for a provider")
		}
	})
	t.Run("never shown", func(t *testing.T) {
		w, c := newWorld(t).bound(), newClient(t)
		must(t, w.login(t, c, w.account(), ""))
		data, err := os.ReadFile(only(t, filepath.Join(dirOf(c), "*.json")))
		must(t, err)
		var file struct{ Data struct{ Key string } }
		if must(t, json.Unmarshal(data, &file)); len(file.Data.Key) < 100 {
			t.Fatalf("%s", data)
		}
		list, err := c.Accounts(t.Context())
		must(t, err)
		noSecrets(t, fmt.Sprintf("%+v", list), file.Data.Key)
		w.on["/token"] = func(rw http.ResponseWriter, req *http.Request) {
			rw.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(rw, `{"error":"invalid_grant","error_description":%q}`, req.FormValue("refresh_token")+req.Header.Get("DPoP"))
		}
		_, err = c.Renew(t.Context(), w.account(), "access-secret-1", "")
		if err == nil {
			t.Fatal("no error")
		}
		noSecrets(t, err.Error(), file.Data.Key, "refresh-secret-1")
	})
}

// only is the one file of a pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return found[0]
}

package server_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/inspan/inspan/internal/service/server"
)

// issuer is an identity provider that publishes its keys.
type issuer struct {
	t     *testing.T
	h     *httptest.Server
	key   *rsa.PrivateKey
	asked atomic.Int32
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key}
	i.h = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.asked.Add(1)
		var answer any
		switch r.URL.Path {
		case "/.well-known/openid-configuration":
			answer = map[string]any{
				"issuer": i.h.URL, "jwks_uri": i.h.URL + "/keys", "authorization_endpoint": i.h.URL, "token_endpoint": i.h.URL,
				"id_token_signing_alg_values_supported": []string{"RS256"},
			}
		case "/keys":
			n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
			e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
			answer = map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1", "n": n, "e": e}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(i.h.Close)
	return i
}

// token is a token with claims, in addition to those of all tokens.
func (i *issuer) token(more jwt.MapClaims) string {
	i.t.Helper()
	claims := jwt.MapClaims{"iss": i.h.URL, "aud": "inspan", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for name, value := range more {
		claims[name] = value
	}
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["kid"] = "1"
	text, err := t.SignedString(i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return text
}

// TestOIDC checks that tokens of the provider are those of the identities whose claims they make, and that all others
// are refused.
func TestOIDC(t *testing.T) {
	t.Parallel()
	provider := newIssuer(t)
	h := newHouse(t, func(s *server.Server) { s.OIDC.Issuer, s.OIDC.Audience = provider.h.URL, "inspan" })
	for _, identity := range []map[string]any{
		{"name": "all", "tenant": "red", "role": "viewer", "claims": map[string]string{"groups": "people"}},
		{"name": "builders", "tenant": "red", "role": "operator", "claims": map[string]string{"groups": "people", "team": "build"}},
		{"name": "ci", "tenant": "blue", "role": "operator", "claims": map[string]string{"sub": "repo:ann/shop:ref:refs/heads/main"}},
	} {
		var made struct{ Token string }
		if h.call("POST", "/api/v1/identities", identity, http.StatusCreated, &made); made.Token != "" {
			t.Errorf("%s has the token %s", identity["name"], made.Token)
		}
	}
	viewer := h.as(provider.token(jwt.MapClaims{"groups": []string{"x", "people"}}))
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)
	viewer.call("POST", "/api/v1/tasks", server.Spec{Prompt: "say: x"}, http.StatusForbidden, nil)
	builder := h.as(provider.token(jwt.MapClaims{"groups": []string{"people"}, "team": "build"}))
	task := builder.until(builder.submit(server.Spec{Prompt: "say: x"}).ID, server.StageCompleted)
	if task.Tenant != "red" || task.By != "red/builders:ann" {
		t.Errorf("by %s of %s", task.By, task.Tenant)
	}
	ci := h.as(provider.token(jwt.MapClaims{"sub": "repo:ann/shop:ref:refs/heads/main"}))
	ci.call("GET", "/api/v1/tasks/"+task.ID, nil, http.StatusNotFound, nil)
	viewer.call("GET", "/api/v1/tasks/"+task.ID, nil, http.StatusOK, nil)

	// Two people of one identity can use the same key for their requests.
	for _, name := range []string{"ann", "bob"} {
		who := h.as(provider.token(jwt.MapClaims{"groups": []string{"people"}, "team": "build", "sub": name}))
		req := who.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{Prompt: "say: " + name})
		req.Header.Set("Idempotency-Key", "same")
		if status, text := who.do(req); status != http.StatusCreated {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}

	// A token that fits two identities equally well is refused, and only the operator decides who fits one.
	steal := map[string]any{"name": "steal", "role": "operator", "claims": map[string]string{"sub": "repo:ann/shop:ref:refs/heads/main"}}
	h.identity("boss", "green", server.Admin).call("POST", "/api/v1/identities", steal, http.StatusForbidden, nil)
	ci.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)
	var double struct{ ID string }
	h.call("POST", "/api/v1/identities", steal, http.StatusCreated, &double)
	ci.call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)
	h.call("DELETE", "/api/v1/identities/"+double.ID, nil, http.StatusNoContent, nil)
	ci.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)

	other := newIssuer(t)
	forged := provider.token(jwt.MapClaims{"groups": "people"})
	plain := jwt.NewWithClaims(jwt.SigningMethodNone, jwt.MapClaims{
		"iss": provider.h.URL, "aud": "inspan", "groups": "people", "exp": time.Now().Add(time.Hour).Unix(),
	})
	unsigned, err := plain.SignedString(jwt.UnsafeAllowNoneSignatureType)
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"no identity's claims": provider.token(nil),
		"a part of the claims": provider.token(jwt.MapClaims{"team": "build"}),
		"another audience":     provider.token(jwt.MapClaims{"groups": "people", "aud": "other"}),
		"expired":              provider.token(jwt.MapClaims{"groups": "people", "exp": time.Now().Add(-time.Minute).Unix()}),
		"not yet":              provider.token(jwt.MapClaims{"groups": "people", "nbf": time.Now().Add(time.Hour).Unix()}),
		"another issuer":       other.token(jwt.MapClaims{"groups": "people"}),
		"another's key":        other.token(jwt.MapClaims{"groups": "people", "iss": provider.h.URL}),
		"unsigned":             unsigned,
		"changed":              forged[:strings.LastIndex(forged, ".")-2] + "xx" + forged[strings.LastIndex(forged, "."):],
		"a claim that is none": provider.token(jwt.MapClaims{"groups": map[string]string{"people": "people"}}),
		"three parts":          "a.b.c",
		"dots":                 "..",
	} {
		who := h.as(token)
		if status, text := who.do(who.request(t.Context(), "GET", "/api/v1/tasks", nil)); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}

	// Whoever sends tokens with unknown keys does not have the provider asked each time.
	before := provider.asked.Load()
	for range 50 {
		h.as(other.token(jwt.MapClaims{"iss": provider.h.URL})).call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)
	}
	if asked := provider.asked.Load() - before; asked > 6 {
		t.Errorf("the provider was asked %d times", asked)
	}
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)

	// A removed identity gives no access.
	var list struct{ Identities []struct{ ID, Name string } }
	h.call("GET", "/api/v1/identities", nil, http.StatusOK, &list)
	for _, i := range list.Identities {
		if i.Name != "ci" {
			h.call("DELETE", "/api/v1/identities/"+i.ID, nil, http.StatusNoContent, nil)
		}
	}
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)
}

// TestOIDCWithout checks that identities with claims need a provider, and the valid forms of claims.
func TestOIDCWithout(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	made := func(claims map[string]string) (int, string) {
		return h.do(h.request(t.Context(), "POST", "/api/v1/identities", map[string]any{"name": "a", "role": "viewer", "claims": claims}))
	}
	if status, text := made(map[string]string{"sub": "x"}); status != http.StatusBadRequest || !strings.Contains(text, "--oidc-issuer") {
		t.Errorf("without a provider: %d %s", status, text)
	}
	h.as("a.b.c").call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)
	h.s.OIDC.Issuer = "https://accounts.example.org"
	for name, claims := range map[string]map[string]string{
		"the audience": {"aud": "inspan"}, "no value": {"sub": ""}, "no name": {"": "x"},
	} {
		if status, text := made(claims); status != http.StatusBadRequest || !strings.Contains(text, `"field":"claims"`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for _, o := range []*server.OIDC{
		{Issuer: "https://a.example"},
		{Audience: "x"},
		{Issuer: "http://a.example", Audience: "x"},
		{Issuer: "a.example", Audience: "x"},
		{Issuer: "https://a.example/?x=y", Audience: "x"},
	} {
		if o.Check() == nil {
			t.Errorf("issuer %q for %q can be", o.Issuer, o.Audience)
		}
	}
}

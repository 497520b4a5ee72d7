package oauth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// machine is a client that the provider knows, with its credentials.
type machine struct {
	id, secret string
	key        crypto.Signer
	form       string // of the PEM
	der        []byte
}

// about is the provider's knowledge of a machine.
func (m machine) about() map[string]any {
	if m.key == nil {
		return map[string]any{"client_id": m.id, "client_secret": m.secret, "token_endpoint_auth_method": "client_secret_basic"}
	}
	b64 := base64.RawURLEncoding.EncodeToString
	jwk, alg := map[string]any{}, ""
	switch key := m.key.Public().(type) {
	case *ecdsa.PublicKey:
		point, _ := key.Bytes() // 4, x, y
		jwk, alg = map[string]any{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}, "ES256"
	case *rsa.PublicKey:
		jwk, alg = map[string]any{"kty": "RSA", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes())}, "RS256"
	case ed25519.PublicKey:
		jwk, alg = map[string]any{"kty": "OKP", "crv": "Ed25519", "x": b64(key)}, "EdDSA"
	}
	return map[string]any{
		"client_id": m.id, "token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": alg,
		"jwks": map[string]any{"keys": []any{jwk}},
	}
}

func (m machine) account(t *testing.T, p *provider) oauth.Account {
	a := oauth.Account{Name: m.id, Resource: p.resource(), ClientID: m.id, ClientSecret: m.secret, Grant: oauth.ClientCredentials}
	if m.key != nil {
		a.KeyFile = filepath.Join(t.TempDir(), "key.pem")
		must(t, os.WriteFile(a.KeyFile, pem.EncodeToMemory(&pem.Block{Type: m.form, Bytes: m.der}), 0o600))
	}
	return a
}

// TestAlone has a provider give tokens to clients that no person logs in for, by each
// form of a key.
func TestAlone(t *testing.T) {
	t.Parallel()
	machines := []machine{{id: "by-secret", secret: "known to both: 0123456789 & more"}}
	for id, form := range map[string]string{
		"by-ec":  "EC PRIVATE KEY",
		"by-ec8": "PRIVATE KEY", "by-rsa": "RSA PRIVATE KEY", "by-ed": "PRIVATE KEY",
	} {
		m := machine{id: id, form: form}
		var err error
		switch id {
		case "by-rsa":
			var key *rsa.PrivateKey
			key, err = rsa.GenerateKey(rand.Reader, 2048)
			m.key, m.der = key, x509.MarshalPKCS1PrivateKey(key)
		case "by-ed":
			_, m.key, err = ed25519.GenerateKey(rand.Reader)
		default:
			m.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		}
		must(t, err)
		switch {
		case form == "PRIVATE KEY":
			m.der, err = x509.MarshalPKCS8PrivateKey(m.key)
		case id == "by-ec":
			m.der, err = x509.MarshalECPrivateKey(m.key.(*ecdsa.PrivateKey))
		}
		must(t, err)
		machines = append(machines, m)
	}
	known := []any{}
	for _, m := range machines {
		known = append(known, m.about())
	}
	settings, err := json.Marshal(map[string]any{"machines": known})
	must(t, err)
	p := startProvider(t, string(settings))
	for _, m := range machines {
		c, a := newClient(t), m.account(t, p)
		first, err := access(t.Context(), c, a)
		must(t, err)
		again, err := access(t.Context(), c, a)
		if must(t, err); again != first {
			t.Error(m.id, "a token that is good was thrown away")
		}
		second, err := renewed(t.Context(), c, a, first)
		must(t, err)
		if status, _, _ := p.use(t, second); status != 200 || second == first {
			t.Error(m.id, status)
		}
		must(t, c.Login(t.Context(), a, oauth.Browser, oauth.Person{}, "")) // no one is needed
		list, err := c.Accounts(t.Context())
		if err != nil || len(list) != 1 || list[0].Issuer != p.origin || list[0].Problem != "" {
			t.Errorf("%s: %+v, %v", m.id, list, err)
		}
	}
	if s := p.seen(t); s.Granted["client_credentials"] != 3*len(machines) || len(s.Refused) > 0 {
		t.Errorf("the server saw %+v", s)
	}
}

// machine is an account that needs no person.
func (w *world) machine() oauth.Account {
	a := w.account()
	a.ClientID, a.ClientSecret, a.Grant = "machine", "known to both", oauth.ClientCredentials
	return a
}

// TestAloneAtOnce asks once for all who need a token at the same time.
func TestAloneAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.machine()
	c := newClient(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := access(t.Context(), c, a); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.count("/token"); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// TestWorkload shows the token of a workload as it is now, and nothing else.
func TestWorkload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.account()
	a.Grant, a.AssertionFile = oauth.JWTBearer, filepath.Join(t.TempDir(), "token")
	c := newClient(t)
	for _, vouch := range []string{"first", "second"} {
		must(t, os.WriteFile(a.AssertionFile, []byte(vouch+"\n"), 0o600))
		must(t, c.Login(t.Context(), a, oauth.Device, oauth.Person{}, ""))
		if f := w.form(); f.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || f.Get("assertion") != vouch ||
			f.Has("client_id") || f.Get("resource") != a.Resource {
			t.Errorf("%+v", f)
		}
	}
}

// TestAloneFails checks that the error gives the reason once, and never asks for a login by a person.
func TestAloneFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	key, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	must(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	must(t, err)
	odd, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	for name, tc := range map[string]struct {
		change func(*oauth.Account)
		want   string
	}{
		"refused": {func(a *oauth.Account) { a.ClientSecret = "wrong-secret" }, "invalid_client"},
		"no key":  {func(a *oauth.Account) { a.KeyFile = filepath.Join(dir, "missing") }, "no such file"},
		"no PEM":  {func(a *oauth.Account) { a.KeyFile = put("text", "key") }, "not a key in PEM format"},
		"public key": {func(a *oauth.Account) {
			a.KeyFile = put("pub", string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
		}, "not a private key that can sign"},
		"other curve": {func(a *oauth.Account) {
			a.KeyFile = put("odd", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: odd})))
		}, "not a private key that can sign"},
		"empty token": {func(a *oauth.Account) { a.Grant, a.AssertionFile = oauth.JWTBearer, put("empty", " \n") }, "empty or too big"},
		"endless file": {func(a *oauth.Account) {
			a.Grant, a.AssertionFile = oauth.JWTBearer, put("big", strings.Repeat("x", 1<<20))
		}, "empty or too big"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.on["/token"] = func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(rw, `{"error":"invalid_client","error_description":"not wrong-secret"}`)
			}
			a := w.machine()
			tc.change(&a)
			_, err := access(t.Context(), newClient(t), a)
			if err == nil || errors.Is(err, oauth.ErrLogin) || !strings.Contains(err.Error(), tc.want) ||
				strings.Contains(err.Error(), "wrong-secret") {
				t.Errorf("%v, want %q", err, tc.want)
			}
			if n := w.count("/token"); n > 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

// TestAloneWithoutMemory sends the credentials to no server if the record of earlier receivers can't be read.
func TestAloneWithoutMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.machine()
	c := newClient(t)
	must(t, c.Store.Set(t.Context(), a.Name, []byte("[]")))
	if _, err := access(t.Context(), c, a); err == nil || errors.Is(err, oauth.ErrLogin) ||
		!strings.Contains(err.Error(), "log out first") || w.count("/token") > 0 {
		t.Errorf("%v, asked %d times", err, w.count("/token"))
	}
	if err := c.Logout(t.Context(), a.Name); err == nil || !strings.Contains(err.Error(), "was removed here") {
		t.Error(err)
	}
	if _, err := access(t.Context(), c, a); err != nil {
		t.Error(err)
	}
}

// TestAloneElsewhere sends the credentials to no other server than before.
func TestAloneElsewhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.account()
	a.Grant, a.AssertionFile = oauth.JWTBearer, filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(a.AssertionFile, []byte("vouched"), 0o600))
	c := newClient(t)
	first, err := access(t.Context(), c, a)
	must(t, err)
	other := newWorld(t)
	w.resource["authorization_servers"] = []string{other.URL}
	if _, err := renewed(t.Context(), c, a, first); err == nil || !strings.Contains(err.Error(), "another authorization server") {
		t.Error(err)
	}
	if other.asked("/token") {
		t.Error("the other server was shown the token of the workload")
	}
}

package cloud

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tokens is Google's token endpoint. It issues numbered tokens that last an hour for every accepted grant.
type tokens struct {
	key *rsa.PublicKey

	mu    sync.Mutex
	given int
	down  bool
	hold  chan struct{}
}

const tokenURL = "https://oauth2.example/token"

// RoundTrip makes the endpoint its own transport, so that it can be used in a
// synctest bubble.
func (k *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	k.mu.Lock()
	hold := k.hold
	k.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	return w.Result(), nil
}

func (k *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.down {
		http.Error(w, "try later", http.StatusServiceUnavailable)
		return
	}
	if err := k.check(r); err != nil {
		http.Error(w, `{"error":"invalid_grant","error_description":"`+err.Error()+`"}`, http.StatusBadRequest)
		return
	}
	k.given++
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":3600,"token_type":"Bearer"}`, k.given)
}

func (k *tokens) check(r *http.Request) error {
	if r.Method != http.MethodPost || r.URL.String() != tokenURL {
		return errors.New("not the token endpoint: " + r.URL.String())
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	switch r.PostFormValue("grant_type") {
	case "refresh_token":
		if r.PostFormValue("refresh_token") != "refresh" || r.PostFormValue("client_id") != "id" || r.PostFormValue("client_secret") != "secret" {
			return errors.New("unknown refresh token")
		}
		return nil
	case "urn:ietf:params:oauth:grant-type:jwt-bearer":
		return k.verify(r.PostFormValue("assertion"))
	}
	return errors.New("unsupported grant type")
}

// verify checks the signature and the claims of a service account's assertion.
func (k *tokens) verify(assertion string) error {
	parts := strings.Split(assertion, ".")
	if len(parts) != 3 {
		return errors.New("not a JWT")
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err := rsa.VerifyPKCS1v15(k.key, crypto.SHA256, sum[:], signature); err != nil {
		return err
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return err
	}
	var claims struct {
		Iss, Aud, Scope string
		Exp, Iat        int64
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		return err
	}
	now := time.Now().Unix()
	if claims.Iss != "robot@example" || claims.Aud != tokenURL || claims.Scope != "https://www.googleapis.com/auth/cloud-platform" ||
		claims.Exp <= now || claims.Iat > now+60 {
		return fmt.Errorf("wrong claims: %s", raw)
	}
	return nil
}

func saved(t *testing.T, credentials map[string]string) string {
	t.Helper()
	text, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// account returns the file of a service account and the endpoint that knows it.
func account(t *testing.T) (string, *tokens) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := saved(t, map[string]string{
		"type": "service_account", "client_email": "robot@example", "private_key_id": "k1", "token_uri": tokenURL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	return file, &tokens{key: &key.PublicKey}
}

func TestGoogleFiles(t *testing.T) {
	robot, endpoint := account(t)
	person := saved(t, map[string]string{
		"type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "refresh", "token_uri": tokenURL,
	})
	revoked := saved(t, map[string]string{
		"type": "authorized_user", "client_id": "id", "client_secret": "secret", "refresh_token": "old", "token_uri": tokenURL,
	})
	_, other := account(t)
	for name, c := range map[string]struct {
		google *Google
		want   string
	}{
		"service account": {&Google{File: robot, HTTP: endpoint}, "token-"},
		"person":          {&Google{File: person, HTTP: endpoint}, "token-"},
		"wrong signature": {&Google{File: robot, HTTP: other}, ""},
		"wrong scope":     {&Google{File: robot, HTTP: endpoint, Scope: "mail"}, ""},
		"revoked":         {&Google{File: revoked, HTTP: endpoint}, ""},
		"no file":         {&Google{File: robot + "x", HTTP: endpoint}, ""},
		"other file":      {&Google{File: saved(t, map[string]string{"type": "pet"}), HTTP: endpoint}, ""},
	} {
		got, err := c.google.Key(t.Context())
		if (err == nil) != (c.want != "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("%s: the error holds a secret: %v", name, err)
		}
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", robot)
	if got, err := (&Google{HTTP: endpoint}).Key(t.Context()); err != nil || !strings.HasPrefix(got, "token-") {
		t.Errorf("from the environment: %q, %v", got, err)
	}
}

// TestGoogleRenews follows one token through its life: kept, renewed before its
// end, and used on while no new one is to be had, but not beyond its end.
func TestGoogleRenews(t *testing.T) {
	file, endpoint := account(t)
	synctest.Test(t, func(t *testing.T) {
		g := &Google{File: file, HTTP: endpoint}
		want := func(what, token string) {
			t.Helper()
			if got, err := g.Key(t.Context()); got != token || (err == nil) != (token != "") {
				t.Errorf("%s: %q, %v, want %q", what, got, err, token)
			}
		}
		want("first", "token-1")
		time.Sleep(55 * time.Minute)
		want("five minutes before its end", "token-1")
		time.Sleep(2 * time.Minute)
		want("three minutes before its end", "token-2")
		endpoint.down = true
		time.Sleep(58 * time.Minute)
		want("none to be had", "token-2")
		time.Sleep(3 * time.Minute)
		want("ended", "")
		endpoint.down = false
		want("again", "token-3")
	})
}

// TestGoogleOnce lets many ask at once: one exchange serves all, and who gives up
// does not wait for it.
func TestGoogleOnce(t *testing.T) {
	file, endpoint := account(t)
	synctest.Test(t, func(t *testing.T) {
		g := &Google{File: file, HTTP: endpoint}
		endpoint.hold = make(chan struct{})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if got, err := g.Key(t.Context()); err != nil || got != "token-1" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := g.Key(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		close(endpoint.hold)
		all.Wait()
		if endpoint.given != 1 {
			t.Errorf("%d tokens were fetched, want 1", endpoint.given)
		}
	})
}

// TestGoogleEndsWithItsCaller checks that an exchange ends when its caller does, and that the next caller tries again.
func TestGoogleEndsWithItsCaller(t *testing.T) {
	file, endpoint := account(t)
	synctest.Test(t, func(t *testing.T) {
		g := &Google{File: file, HTTP: endpoint}
		endpoint.hold = make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := g.Key(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if _, err := g.Key(t.Context()); err == nil || time.Since(start) != time.Second+tokenTimeout {
			t.Errorf("after %v: %v, want the timeout", time.Since(start), err)
		}
		close(endpoint.hold)
		if got, err := g.Key(t.Context()); err != nil || got != "token-1" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestGoogleMetadataServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Metadata-Flavor", "Google")
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "forbidden", http.StatusForbidden)
			return
		}
		if r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" {
			fmt.Fprint(w, `{"access_token":"from-metadata","expires_in":3600,"token_type":"Bearer"}`)
			return
		}
		fmt.Fprint(w, "project")
	}))
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("HOME", t.TempDir())
	if got, err := new(Google).Key(t.Context()); err != nil || got != "from-metadata" {
		t.Errorf("got %q, %v", got, err)
	}
}

package forge_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/forge"
)

const token = "a-token-of-ann"

// site is a stand-in, and how it is asked.
type site struct {
	*testkit.Stand
	forge.Site
	waits *[]time.Duration
}

// sites are a GitHub and a GitLab that hold each request to the published description.
func sites(t *testing.T) map[string]site {
	t.Helper()
	hub := &testkit.GitHub{Stand: testkit.Stand{T: t, Token: token}}
	lab := &testkit.GitLab{Stand: testkit.Stand{T: t, Token: token}}
	return map[string]site{
		"GitHub": serve(t, hub, &hub.Stand, forge.Site{Kind: forge.GitHub, Token: token}, ""),
		"GitLab": serve(t, lab, &lab.Stand, forge.Site{Kind: forge.GitLab, Token: token}, "/api/v4"),
	}
}

func serve(t *testing.T, h http.Handler, stand *testkit.Stand, s forge.Site, below string) site {
	t.Helper()
	at := httptest.NewServer(h)
	t.Cleanup(at.Close)
	waits := new([]time.Duration)
	s.API = at.URL + below
	s.Wait = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return site{stand, s, waits}
}

// name is that of an issue, or of a pull or merge request.
func name(t *testing.T, s site, number string) forge.Name {
	t.Helper()
	sign := "#"
	if s.Kind == forge.GitLab && number == "13" {
		sign = "!"
	}
	n, err := forge.Parse("ann/shop" + sign + number)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRead(t *testing.T) {
	for kind, s := range sites(t) {
		issue, err := s.Read(t.Context(), name(t, s, "12"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			kind + " issue ann/shop#12, open", ", by bob: Wrong sum\nLabels: bug, sums\n\nThe sum is off by one.",
			"--- dan, 2026-11-01 09:30:\ncomment 1 of 130\n", "comment 130 of 130",
		} {
			if !strings.Contains(issue, want) {
				t.Errorf("%s: %q is missing in %.400s", kind, want, issue)
			}
		}
		change, err := s.Read(t.Context(), name(t, s, "13"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			", by carol: Mend the sum\nBranch: sums\nCheck build: passed\nCheck lint: pending\n",
			"--- erin, 2026-11-01 09:30, on sum.go:1:\nWhy not before?",
			"diff --git a/sum.go b/sum.go\n--- a/sum.go\n+++ b/sum.go\n@@ -1 +1 @@\n-a-b\n+a+b\n",
		} {
			if !strings.Contains(change, want) {
				t.Errorf("%s: %q is missing in %s", kind, want, change)
			}
		}
		if strings.ContainsAny(issue+change, "\x1b") || strings.Contains(change, "changed the description") {
			t.Errorf("%s: %q", kind, change)
		}
	}
}

// TestCommentOnce checks that a comment is there once, however often it is asked for, also where the site failed after
// it had made it.
func TestCommentOnce(t *testing.T) {
	for kind, s := range sites(t) {
		lost := true
		s.Fault = func(r *http.Request) *testkit.Fault {
			if r.Method != http.MethodPost || !lost {
				return nil
			}
			lost = false
			return &testkit.Fault{Status: http.StatusBadGateway, Done: true}
		}
		n := name(t, s, "12")
		body := "Mended.\x1b[2J <!-- inspan:s1/other --> ![a](//h/?K) <Img src=//h/?K>"
		first, err := s.Comment(t.Context(), n, "s1/step", body)
		if err != nil || first == "" {
			t.Fatal(kind, first, err)
		}
		again, err := s.Comment(t.Context(), n, "s1/step", body)
		if err != nil || again != first {
			t.Error(kind, again, err)
		}
		made := s.Made()
		if len(made) != 1 || strings.Contains(made[0].Body["body"].(string), "inspan:s1/other") ||
			!strings.Contains(made[0].Body["body"].(string), `!\[a](//h/?K) &lt;Img src=//h/?K>`) ||
			!strings.HasSuffix(made[0].Body["body"].(string), "\n\n<!-- inspan:s1/step -->") {
			t.Errorf("%s: %+v", kind, made)
		}
		if other, err := s.Comment(t.Context(), n, "s1/other", body); err != nil || len(s.Made()) != 2 {
			t.Error(kind, other, err, s.Made())
		}
	}
}

func TestProposeOnce(t *testing.T) {
	for kind, s := range sites(t) {
		p := forge.Proposal{Branch: "fix/12", Title: "Mend the\nsum", Body: "It was off."}
		first, err := s.Propose(t.Context(), "ann/shop", p)
		if err != nil {
			t.Fatal(kind, err)
		}
		again, err := s.Propose(t.Context(), "ann/shop", p)
		if made := s.Made(); err != nil || len(made) != 1 || made[0].Body["title"] != "Mend the sum" || again == "" || first == "" {
			t.Error(kind, first, again, err, made)
		}
		p.Base = "next"
		if _, err := s.Propose(t.Context(), "ann/shop", p); err != nil || len(s.Made()) != 2 {
			t.Error(kind, err, s.Made())
		}
		for _, bad := range []string{"", "-f", "a..b", "a b", "+a", "a:b", "refs\n", "a@{1}", "x.lock", "next"} {
			p.Branch = bad
			if _, err := s.Propose(t.Context(), "ann/shop", p); err == nil || len(s.Made()) != 2 {
				t.Errorf("%s: %q is taken", kind, bad)
			}
		}
	}
}

func TestChecks(t *testing.T) {
	commit := strings.Repeat("ab", 20)
	for kind, s := range sites(t) {
		for name, state := range map[string]forge.State{"review": forge.Failed} {
			if err := s.SetStatus(t.Context(), "ann/shop", commit, forge.Status{Name: name, State: state, Text: "2 findings"}); err != nil {
				t.Fatal(kind, err)
			}
		}
		is, err := s.Checks(t.Context(), "ann/shop", commit)
		want := []forge.Check{{Name: "build", State: forge.Passed}, {Name: "lint", State: forge.Pending}, {Name: "review", State: forge.Failed}}
		if diff := cmp.Diff(want, is); err != nil || diff != "" {
			t.Error(kind, err, diff)
		}
		if err := s.SetStatus(t.Context(), "ann/shop", "main", forge.Status{Name: "x", State: forge.Passed}); err == nil {
			t.Error(kind, "a branch is taken for a commit")
		}
	}
}

// TestLimits checks how long a request waits for a site that asks for a pause, and when it is not repeated.
func TestLimits(t *testing.T) {
	reset := func(d time.Duration) string { return fmt.Sprint(time.Now().Add(d).Unix()) }
	for _, c := range []struct {
		what     string
		fault    testkit.Fault
		from, to time.Duration // of the one wait; both 0: there is none, and it fails
		says     string
	}{
		{"failure", testkit.Fault{Status: 503}, time.Second, time.Second, ""},
		{"retry after", testkit.Fault{Status: 503, Header: map[string]string{"Retry-After": "7"}}, 7 * time.Second, 7 * time.Second, ""},
		{"too many", testkit.Fault{Status: 429, Header: map[string]string{"Retry-After": "30"}}, 30 * time.Second, 30 * time.Second, ""},
		{"secondary limit", testkit.Fault{Status: 403, Header: map[string]string{"Retry-After": "0"}}, 0, 1, ""},
		{"primary limit", testkit.Fault{
			Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": reset(4 * time.Minute)},
		}, 3 * time.Minute, 5 * time.Minute, ""},
		{"limit of GitLab", testkit.Fault{
			Status: 429, Header: map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": reset(2 * time.Minute)},
		}, time.Minute, 3 * time.Minute, ""},
		{"without a time", testkit.Fault{Status: 429}, time.Minute, time.Minute, ""},
		{"too long", testkit.Fault{Status: 429, Header: map[string]string{"Retry-After": "7200"}}, 0, 0, "used up for another 2h0m0s"},
		{"forbidden", testkit.Fault{Status: 403, Header: map[string]string{"X-RateLimit-Remaining": "60"}}, 0, 0, "answers 403"},
		{"gone", testkit.Fault{Status: 410}, 0, 0, "answers 410 for GET /"},
	} {
		for kind, s := range sites(t) {
			first := true
			s.Fault = func(*http.Request) *testkit.Fault {
				if !first {
					return nil
				}
				first = false
				return &c.fault
			}
			_, err := s.Read(t.Context(), name(t, s, "12"))
			switch waits := *s.waits; {
			case c.from == 0 && c.to == 0:
				if err == nil || len(waits) != 0 || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), token) {
					t.Errorf("%s, %s: %v after %v", c.what, kind, err, waits)
				}
			case err != nil || len(waits) != 1 || waits[0] < c.from || waits[0] > c.to:
				t.Errorf("%s, %s: %v after %v", c.what, kind, err, waits)
			}
		}
	}
}

// TestGivesUp checks that a failing site gets three requests, and the error after that.
func TestGivesUp(t *testing.T) {
	for kind, s := range sites(t) {
		asked := 0
		s.Fault = func(*http.Request) *testkit.Fault { asked++; return &testkit.Fault{Status: 500} }
		_, err := s.Comment(t.Context(), name(t, s, "12"), "k", "x")
		if err == nil || !strings.Contains(err.Error(), kind+" answers 500 for GET ") || asked != 3 {
			t.Error(kind, asked, err)
		}
	}
}

func TestNoToken(t *testing.T) {
	for kind, s := range sites(t) {
		s.Site.Token = ""
		_, err := s.Read(t.Context(), name(t, s, "12"))
		if err == nil || !strings.Contains(err.Error(), strings.ToUpper(kind)+"_TOKEN") {
			t.Error(kind, err)
		}
		if _, _, err := s.PushAs(t.Context(), "ann/shop"); err == nil || !strings.Contains(err.Error(), strings.ToUpper(kind)+"_TOKEN") {
			t.Error(kind, err)
		}
	}
}

// TestApp checks that an app proves that it has its key, gets a token for a project once, and does the rest with that.
func TestApp(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	hub := &testkit.GitHub{Stand: testkit.Stand{T: t, Token: token}, App: func(proof string) error {
		var claims jwt.RegisteredClaims
		_, err := jwt.ParseWithClaims(proof, &claims, func(*jwt.Token) (any, error) { return &key.PublicKey, nil },
			jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer("123"), jwt.WithIssuedAt(), jwt.WithExpirationRequired())
		if err == nil && claims.ExpiresAt.Sub(claims.IssuedAt.Time) > 10*time.Minute {
			err = errors.New("it holds for too long")
		}
		if err != nil {
			t.Error(err)
		}
		return err
	}}
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	s := serve(t, hub, &hub.Stand, forge.Site{App: &forge.App{ID: "123", Key: text}}, "")
	for range 2 {
		if _, err := s.Read(t.Context(), name(t, s, "13")); err != nil {
			t.Fatal(err)
		}
	}
	user, password, err := s.PushAs(t.Context(), "ann/shop")
	if made := s.Made(); err != nil || len(made) != 1 || made[0].Path != "/app/installations/7/access_tokens" ||
		user != "x-access-token" || password != token {
		t.Error(user, err, made)
	}
	s.App = &forge.App{ID: "123", Key: []byte("no key")}
	if _, err := s.Read(t.Context(), name(t, s, "13")); err == nil || !strings.Contains(err.Error(), "its private key can't be read") {
		t.Error(err)
	}
}

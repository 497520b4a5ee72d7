//go:build unix

package custom_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/custom"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

const token = "test-token_0123.456"

// service is a fake endpoint that records its requests.
type service struct {
	mu     sync.Mutex
	sent   []map[string]any
	flaws  []string
	answer func(w http.ResponseWriter, body map[string]any)
	path   *regexp.Regexp
	header map[string]string
}

// ServeHTTP checks a request as strictly as the documentation of the service has it.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	flaw := func(format string, args ...any) { s.flaws = append(s.flaws, fmt.Sprintf(format, args...)) }
	if r.Method != http.MethodPost || !s.path.MatchString(r.URL.Path) || r.URL.RawQuery != "" {
		flaw("%s %s", r.Method, r.URL)
	}
	for name, want := range s.header {
		if got := r.Header.Values(name); len(got) != 1 || got[0] != want {
			flaw("%s is %q, want %q", name, got, want)
		}
	}
	if r.UserAgent() == "" {
		flaw("no User-Agent")
	}
	data, err := io.ReadAll(r.Body)
	var body map[string]any
	if err != nil || json.Unmarshal(data, &body) != nil {
		flaw("body %q, %v", data, err)
	}
	s.sent = append(s.sent, body)
	s.answer(w, body)
}

// got returns the one body that was sent, and checks that nothing was wrong.
func (s *service) got(t *testing.T) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.flaws) > 0 || len(s.sent) != 1 {
		t.Fatalf("flaws %q, sent %v", s.flaws, s.sent)
	}
	return s.sent[0]
}

func (s *service) none(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) > 0 {
		t.Errorf("sent %v", s.sent)
	}
}

func slack(status int, header, answer string) *service {
	return &service{
		path:   regexp.MustCompile(`^/api/chat\.postMessage$`),
		header: map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json; charset=utf-8"},
		answer: func(w http.ResponseWriter, body map[string]any) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			if name, value, has := strings.Cut(header, ": "); has {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
			if answer != "" {
				fmt.Fprint(w, answer)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{
				"ok": true, "channel": body["channel"], "ts": "1503435956.000247",
				"message": map[string]any{"text": body["text"], "type": "message"},
			})
		},
	}
}

func github(status int, answer string) *service {
	return &service{
		path: regexp.MustCompile(`^/repos/octo-cat/Hello\.World/issues$`),
		header: map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/vnd.github+json",
			"X-GitHub-Api-Version": "2022-11-28",
		},
		answer: func(w http.ResponseWriter, body map[string]any) {
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(status)
			if answer != "" {
				fmt.Fprint(w, answer)
				return
			}
			labels := []any{}
			for _, l := range anyList(body["labels"]) {
				labels = append(labels, map[string]any{"name": l, "url": "https://api.github.com/labels/" + fmt.Sprint(l)})
			}
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			_ = enc.Encode(map[string]any{
				"url":      "https://api.github.com/repos/octo-cat/Hello.World/issues/1347",
				"html_url": "https://github.com/octo-cat/Hello.World/issues/1347", "number": 1347,
				"title": body["title"], "body": body["body"], "labels": labels,
				"user": map[string]any{"login": "o", "html_url": "https://github.com/o"},
			})
		},
	}
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

// needs skips a test loudly if a program is missing.
func needs(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if err := exec.Command(p, "--version").Run(); err != nil {
			fmt.Fprintf(os.Stderr, "SKIPPED %s: %s can't be run here: %v\n", t.Name(), p, err)
			t.Skipf("%s CAN'T BE RUN HERE", p)
		}
	}
}

// worked is a set with the tools of examples/tools, whose addresses come from
// variables.
func worked(t *testing.T, o sandbox.Options) *bench {
	t.Helper()
	o.Environ = []string{"SLACK_API_URL", "GITHUB_API_URL", "SSL_CERT_FILE"}
	env, err := sandbox.Local(t.TempDir(), nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	b := &bench{}
	b.Set = &custom.Set{
		Env: env, Warn: b.warn, Folders: []custom.Folder{{Dir: "../../../examples/tools", Source: "user"}},
		Patience: 30 * time.Second,
	}
	b.Secret = func(w custom.Want) (string, bool) {
		return token, w == custom.Want{Source: "user", Tool: "slack_message", Name: "SLACK_TOKEN"} ||
			w == custom.Want{Source: "user", Tool: "github_issue", Name: "GITHUB_TOKEN"}
	}
	return b
}

func TestSlackMessage(t *testing.T) {
	needs(t, "python3")
	for name, tt := range map[string]struct {
		status         int
		header, answer string
		args           string
		text           string
		err            []string
	}{
		"sent": {
			status: 200, args: `{"channel":"C0123456789","text":"it's *done* \u2713\n\"q\""}`,
			text: "Sent to C0123456789, ts 1503435956.000247.",
		},
		"thread": {
			status: 200, args: `{"channel":"#general","text":"x","thread_ts":"1503435956.000247"}`,
			text: "Sent to #general, ts 1503435956.000247.",
		},
		"refused": {
			status: 200, answer: `{"ok":false,"error":"not_in_channel"}`, args: `{"channel":"C1","text":"x"}`,
			err: []string{"Slack refused: not_in_channel: invite the app"},
		},
		"unknown": {
			status: 200, answer: `{"ok":false,"error":"fatal_error"}`, args: `{"channel":"C1","text":"x"}`,
			err: []string{"Slack refused: fatal_error"},
		},
		"rate": {
			status: 429, header: "Retry-After: 17", answer: `{"ok":false,"error":"ratelimited"}`,
			args: `{"channel":"C1","text":"x"}`, err: []string{"try again in 17 seconds"},
		},
		"down":     {status: 503, answer: "no", args: `{"channel":"C1","text":"x"}`, err: []string{"status 503"}},
		"not json": {status: 200, answer: "<html>", args: `{"channel":"C1","text":"x"}`, err: []string{"not JSON", "may have been sent"}},
		"a list":   {status: 200, answer: "[]", args: `{"channel":"C1","text":"x"}`, err: []string{"Slack refused"}},
		"redirects": {
			status: 302, header: "Location: /elsewhere", answer: "{}",
			args: `{"channel":"C1","text":"x"}`, err: []string{"status 302"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := slack(tt.status, tt.header, tt.answer)
			server := httptest.NewServer(s)
			defer server.Close()
			t.Setenv("SLACK_API_URL", server.URL+"/api/")
			b := worked(t, sandbox.Options{})
			check(t, b, s, "slack_message", tt.args, tt.text, tt.err)
			if body := s.got(t); !reflect.DeepEqual(body, decoded(t, tt.args)) {
				t.Errorf("sent %v", body)
			}
		})
	}
	b := worked(t, sandbox.Options{})
	x := b.one(t, "slack_message")
	for _, args := range []string{
		`{"channel":"C1"}`, `{"channel":"C1","text":""}`, `{"channel":"C1","text":"x","thread_ts":"yesterday"}`,
		`{"channel":"C1","text":"x","token":"y"}`,
	} {
		if _, err := x.Check(json.RawMessage(args)); err == nil {
			t.Errorf("%s is valid", args)
		}
	}
	for url, want := range map[string]string{
		"http://slack.example/api": "SLACK_API_URL must be https",
		"http://127.0.0.1:1":       "can't be reached",
	} {
		t.Setenv("SLACK_API_URL", url)
		if _, err := b.run(t, x, `{"channel":"C1","text":"x"}`); err == nil ||
			!strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func check(t *testing.T, b *bench, s *service, name, args, text string, errs []string) {
	t.Helper()
	x := b.one(t, name)
	s.none(t)
	effects, err := x.Effects(t.Context(), b.call(x, args, nil))
	if err != nil || len(effects) < 2 || effects[0].Kind != tool.Network || effects[1].Kind != tool.External {
		t.Errorf("effects %v, %v", effects, err)
	}
	res, err := b.run(t, x, args)
	if (err != nil) != (errs != nil) || err == nil && res.Parts.Text() != text {
		t.Errorf("got %q, %v", res.Parts.Text(), err)
	}
	if err != nil {
		has(t, "error", err.Error(), errs...)
	}
	has(t, "warned", b.warned())
}

func decoded(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestWithoutPython takes python3 from the PATH.
func TestWithoutPython(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sh", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	b := worked(t, sandbox.Options{})
	if got := b.names(t); got != "github_issue" {
		t.Errorf("tools %q", got)
	}
	has(t, "warned", b.warned(), "slack_message needs python3")
	if _, err := b.run(t, b.one(t, "github_issue"), `{"repository":"a/b","issue":{"title":"x"}}`); err == nil ||
		!strings.Contains(err.Error(), "github_issue needs curl") {
		t.Errorf("error %v", err)
	}
}

func TestGitHubIssue(t *testing.T) {
	needs(t, "curl")
	const plain = `{"repository":"octo-cat/Hello.World","issue":{"title":"x"}}`
	created := "Created https://github.com/octo-cat/Hello.World/issues/1347"
	for name, tt := range map[string]struct {
		status int
		answer string
		args   string
		text   string
		err    []string
	}{
		"plain": {status: 201, args: plain, text: created},
		"all": {
			status: 201,
			args: `{"issue":{"title":"it's \"broken\"","body":"a\\b\n@file $HOME \u2713 ,\"repository\":\"a/b\"} ` +
				`\"html_url\":\"https://x/issues/2\"","labels":["bug","help wanted"]},"repository":"octo-cat/Hello.World"}`, text: created,
		},
		"no labels": {
			status: 201, args: `{"issue":{"title":"x","labels":["bug"]},"repository":"octo-cat/Hello.World"}`,
			answer: `{"html_url":"https://github.com/octo-cat/Hello.World/issues/1347","labels":[]}`, text: created +
				"\nGitHub left the labels out: the token may not set them in this repository.",
		},
		"denied": {
			status: 401, answer: `{"message":"Bad credentials","documentation_url":"https://docs.github.com/rest"}`, args: plain,
			err: []string{"status 401 (Bad credentials): the token"},
		},
		"missing": {status: 404, answer: `{"message": "Not Found"}`, args: plain, err: []string{"status 404 (Not Found): there is no such"}},
		"off": {
			status: 410, answer: `{"message":"Issues has been disabled in this repository."}`, args: plain,
			err: []string{"status 410", "switched off"},
		},
		"invalid": {
			status: 422,
			answer: `{"message":"Validation Failed","errors":[{"resource":"Issue","field":"title","code":"missing_field"}]}`, args: plain,
			err: []string{"status 422 (Validation Failed)"},
		},
		"too many": {
			status: 403, answer: `{"message":"You have exceeded a secondary rate limit."}`,
			args: plain, err: []string{"secondary rate limit"},
		},
		"redirects": {status: 307, answer: `{"message":"Temporary Redirect"}`, args: plain, err: []string{"status 307"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := github(tt.status, tt.answer)
			server := httptest.NewServer(s)
			defer server.Close()
			t.Setenv("GITHUB_API_URL", server.URL+"/")
			check(t, worked(t, sandbox.Options{}), s, "github_issue", tt.args, tt.text, tt.err)
			if body := s.got(t); !reflect.DeepEqual(body, decoded(t, tt.args)["issue"]) {
				t.Errorf("sent %v", body)
			}
		})
	}
	b := worked(t, sandbox.Options{})
	x := b.one(t, "github_issue")
	for _, args := range []string{
		`{"repository":"a","issue":{"title":"x"}}`, `{"repository":"a/b/c","issue":{"title":"x"}}`,
		`{"repository":"a/b?c","issue":{"title":"x"}}`, `{"repository":"a/b","issue":{}}`, `{"repository":"a/b","issue":{"title":"x",` +
			`"state":"closed"}}`,
	} {
		if _, err := x.Check(json.RawMessage(args)); err == nil {
			t.Errorf("%s is valid", args)
		}
	}
	for _, repository := range []string{"../b", "a/..", "./a", "a/."} {
		if _, err := b.run(t, x, `{"repository":"`+repository+`","issue":{"title":"x"}}`); err == nil ||
			!strings.Contains(err.Error(), "owner/name") {
			t.Errorf("%s: %v", repository, err)
		}
	}
	for url, want := range map[string]string{
		"http://github.example": "GITHUB_API_URL must be https",
		"http://127.0.0.1:1":    "could not be reached",
	} {
		t.Setenv("GITHUB_API_URL", url)
		if _, err := b.run(t, x, plain); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v", url, err)
		}
	}
	t.Setenv("GITHUB_API_URL", "http://127.0.0.1:1")
	b.Secret = func(custom.Want) (string, bool) { return "a\"\nurl = \"http://evil.example", true }
	if _, err := b.run(t, x, plain); err == nil || !strings.Contains(err.Error(), "characters that no token has") {
		t.Errorf("error %v", err)
	}
}

// TestInsideOfWalls runs the tools in their boxes: they reach the hosts they
// name, by TLS through the proxy of the box, and no others.
func TestInsideOfWalls(t *testing.T) {
	needs(t, "curl", "python3")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	guard := &netguard.Guard{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	b := worked(t, sandbox.Options{Self: self, Guard: guard})
	if w := b.Env.Walls; !w.Read || !w.Workspace || !w.Hosts {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: the boxes can't be built here: %s\n", t.Name(), w.Why)
		t.Skip("NO BOXES HERE")
	}
	cert, file := certificate(t, b.Env.Root, "slack.com", "api.github.com")
	t.Setenv("SSL_CERT_FILE", file)
	t.Setenv("CURL_CA_BUNDLE", file)
	serve := func(s *service) *url.URL {
		server := httptest.NewUnstartedServer(s)
		server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
		server.StartTLS()
		t.Cleanup(server.Close)
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	s, g := slack(200, "", ""), github(201, "")
	t.Setenv("SLACK_API_URL", "https://slack.com:"+serve(s).Port()+"/api")
	t.Setenv("GITHUB_API_URL", "https://api.github.com:"+serve(g).Port())
	check(t, b, s, "slack_message", `{"channel":"C1","text":"x"}`, "Sent to C1, ts 1503435956.000247.", nil)
	s.got(t)
	check(t, b, g, "github_issue", `{"repository":"octo-cat/Hello.World","issue":{"title":"x"}}`,
		"Created https://github.com/octo-cat/Hello.World/issues/1347", nil)
	g.got(t)
	t.Setenv("SLACK_API_URL", "https://other.example:"+serve(slack(200, "", "")).Port()+"/api")
	if _, err := b.run(t, b.one(t, "slack_message"), `{"channel":"C1","text":"x"}`); err == nil ||
		!strings.Contains(err.Error(), "The sandbox: ") || !strings.Contains(err.Error(), "other.example") {
		t.Errorf("error %v", err)
	}
	lies(t, b)
}

// lies holds that a program which does more than it declares gains nothing.
func lies(t *testing.T, b *bench) {
	dir := t.TempDir()
	b.Folders = []custom.Folder{{Dir: dir, Source: "user"}}
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("reached") }))
	defer server.Close()
	secret := write(t, t.TempDir(), "mine", "mine")
	tries := "cat >/dev/null; echo x > " + b.Env.Root + "/written 2>/dev/null && echo wrote; echo x > " + secret +
		" && echo changed; curl -s -m 5 --noproxy '*' " + server.URL + "; curl -s -m 5 " + server.URL + "; echo tried"
	write(t, dir, "reads", declare("reads", `"effects":{"read":true}`, tries))
	write(t, dir, "writes", declare("writes", `"effects":{"write":true}`, tries))
	fresh := &bench{Set: &custom.Set{Env: b.Env, Folders: b.Folders, Warn: b.warn}}
	for name, want := range map[string]string{"reads": "tried", "writes": "wrote\ntried"} {
		res, err := fresh.run(t, fresh.one(t, name), `{}`)
		if err != nil || res.Parts.Text() != want {
			t.Errorf("%s: %q, %v", name, res.Parts.Text(), err)
		}
		os.Remove(filepath.Join(b.Env.Root, "written"))
	}
	if data, err := os.ReadFile(secret); err != nil || !bytes.Equal(data, []byte("mine")) {
		t.Errorf("%q, %v", data, err)
	}
}

// certificate makes one for some hosts, and the file that says it is right.
func certificate(t *testing.T, dir string, hosts ...string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: hosts, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	path := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

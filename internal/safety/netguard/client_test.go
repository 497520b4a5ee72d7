package netguard_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/netguard"
)

func local() *netguard.Guard {
	return &netguard.Guard{Resolve: always("127.0.0.1"), Local: loopback("127.0.0.1/32"), Timeout: 20 * time.Second}
}

func serve(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}

// redirector sends /to?TARGET on to TARGET, and /N to /N-1 down to /0.
func redirector(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/to" {
		w.Header().Set("Location", r.URL.RawQuery)
		w.WriteHeader(http.StatusFound)
		return
	}
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err == nil && n > 0 {
		http.Redirect(w, r, fmt.Sprintf("/%d", n-1), http.StatusMovedPermanently)
		return
	}
	fmt.Fprint(w, "arrived at "+r.Host)
}

func TestRedirects(t *testing.T) {
	s := serve(t, redirector)
	for _, tt := range []struct{ path, want string }{
		{"/5", ""},
		{"/6", "more than 5 redirects"},
		{"/to?" + at(s, "other.test"), ""},
		{"/to?/0", ""},
		{"/to?//other.test:1@b.test/", "user information"},
		{"/to?" + at(s, "127.0.0.2"), "loopback"},
		{"/to?" + at(s, "[::1]"), "loopback"},
		{"/to?" + at(s, "evil.test"), "10.0.0.1"},
		{"/to?" + at(s, "a.test") + "/to?" + at(s, "evil.test"), "10.0.0.1"},
		{"/to?" + at(s, "closed.test"), "not on the list"},
		{"/to?http://169.254.169.254/latest/", "metadata"},
		{"/to?http://2130706433/", "number"},
		{"/to?http://0x7f.1/", "number"},
		{"/to?http://user:pw@b.test/", "user information"},
		{"/to?file:///etc/passwd", "scheme"},
		{"/to?ftp://b.test/", "scheme"},
		{"/to?gopher://b.test/", "scheme"},
		{"/to?http:///x", "host"},
	} {
		g := local()
		g.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			if host == "evil.test" {
				return always("10.0.0.1")(ctx, host)
			}
			return always("127.0.0.1")(ctx, host)
		}
		g.Allow = func(host string, _ int) error {
			if host == "closed.test" {
				return errors.New("not on the list")
			}
			return nil
		}
		got, err := get(g, at(s, "a.test")+tt.path)
		switch {
		case tt.want == "" && (err != nil || !strings.HasPrefix(got, "arrived")):
			t.Errorf("%s: %q, %v", tt.path, got, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.path, err, tt.want)
		}
	}
}

// TestRedirectBackslash checks that a backslash in a redirect is at worst part of a path on the same host.
func TestRedirectBackslash(t *testing.T) {
	for _, to := range []string{`http:\\evil.test/`, `http://evil.test\@a.test/`, `\\evil.test/`, `/\evil.test/`} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/start" {
				w.Header().Set("Location", to)
				w.WriteHeader(http.StatusFound)
			}
			fmt.Fprint(w, r.Host)
		})
		got, err := get(local(), at(s, "a.test")+"/start")
		if err == nil && got != strings.TrimPrefix(at(s, "a.test"), "http://") {
			t.Errorf("%s led to %s", to, got)
		}
	}
}

func TestDowngrade(t *testing.T) {
	plain := serve(t, redirector)
	safe := httptest.NewTLSServer(http.HandlerFunc(redirector))
	t.Cleanup(safe.Close)
	g := local()
	if _, err := get(g, at(safe, "example.com")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a host nobody vouches for: %v", err)
	}
	g.RootCAs = x509.NewCertPool()
	g.RootCAs.AddCert(safe.Certificate())
	if got, err := get(g, at(plain, "example.com")+"/to?"+at(safe, "example.com")); err != nil || got == "" {
		t.Errorf("upgrade: %q, %v", got, err)
	}
	if got, err := get(g, at(safe, "example.com")+"/2"); err != nil || got == "" {
		t.Errorf("https to https: %q, %v", got, err)
	}
	if _, err := get(g, at(safe, "example.com")+"/to?"+at(plain, "example.com")); err == nil ||
		!strings.Contains(err.Error(), "https to http") {
		t.Errorf("downgrade: %v", err)
	}
	if _, err := get(g, at(safe, "wrong.test")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("certificate of another host: %v", err)
	}
}

// TestCredentials checks that nothing secret follows a redirect to another host, another port or back again, and all of
// it one on the same host.
func TestCredentials(t *testing.T) {
	var seen http.Header
	f := func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		redirector(w, r)
	}
	one, two := serve(t, f), serve(t, f)
	secret := []string{"Authorization", "Cookie", "X-Api-Key", "Proxy-Authorization", "Referer"}
	for path, kept := range map[string]bool{
		"/0":                           true,
		"/1":                           true,
		"/to?" + at(one, "a.test"):     true,
		"/to?" + at(one, "b.test"):     false,
		"/to?" + at(one, "sub.a.test"): false,
		"/to?" + at(two, "a.test"):     false,
		"/to?" + at(one, "b.test") + "/to?" + at(one, "a.test"): false,
	} {
		req, err := http.NewRequest(http.MethodGet, at(one, "a.test")+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range secret {
			req.Header.Set(name, "token=1")
		}
		req.Header["x-secret"] = []string{"token=1"} // as no [http.Header.Set] spells it
		req.Header.Set("Accept-Language", "af")
		resp, err := local().Client().Do(req)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		resp.Body.Close()
		for _, name := range append(secret, "X-Secret") {
			if (seen.Get(name) != "") != kept {
				t.Errorf("%s: %s is %q", path, name, seen.Get(name))
			}
		}
		if seen.Get("Accept-Language") != "af" {
			t.Errorf("%s: a harmless header is gone", path)
		}
	}
}

func TestBodyStaysWithItsHost(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			http.Redirect(w, r, r.URL.RawQuery, http.StatusTemporaryRedirect)
			return
		}
		_, _ = io.Copy(w, r.Body)
	})
	post := func(to string) (string, error) {
		resp, err := local().Client().Post(at(s, "a.test")+"/to?"+to, "text/plain", strings.NewReader("secret"))
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		return string(data), err
	}
	if got, err := post("/echo"); err != nil || got != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := post(at(s, "b.test")); err == nil || !strings.Contains(err.Error(), "with a body") {
		t.Errorf("%v", err)
	}
}

// TestHostHeader checks that a request can't name another host than it goes to.
func TestHostHeader(t *testing.T) {
	s := hello(t)
	req, err := http.NewRequest(http.MethodGet, at(s, "a.test"), nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "internal.test"
	resp, err := local().Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if !strings.HasPrefix(string(data), "hello from a.test") {
		t.Errorf("%s", data)
	}
}

func zipped(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(plain); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSizes(t *testing.T) {
	const most = 1000
	full := bytes.Repeat([]byte("x"), most)
	for _, tt := range []struct {
		name, encoding string
		body           []byte
		read           int
		want           error
	}{
		{"just fits", "", full, most, nil},
		{"one over", "", append(full[:most:most], 'x'), most, netguard.ErrTooLarge},
		{"far over", "", bytes.Repeat(full, 1000), most, netguard.ErrTooLarge},
		{"empty", "", nil, 0, nil},
		{"zipped, just fits", "gzip", zipped(t, full), most, nil},
		{"zipped, one over", "gzip", zipped(t, append(full[:most:most], 'x')), most, netguard.ErrTooLarge},
		{"bomb", "x-gzip", zipped(t, bytes.Repeat(full, 50000)), most, netguard.ErrTooLarge},
		{"much that unpacks to nothing", "gzip", bytes.Repeat(zipped(t, nil), 1000), 0, netguard.ErrTooLarge},
		{"zipped, empty", "gzip", nil, 0, nil},
		{"no zip", "gzip", full, 0, gzip.ErrHeader},
		{"torn zip", "gzip", zipped(t, full)[:20], -1, io.ErrUnexpectedEOF},
	} {
		for _, chunked := range []bool{false, true} {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				if tt.encoding != "" {
					w.Header().Set("Content-Encoding", tt.encoding)
				}
				if chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(tt.body)
			})
			g := local()
			g.MaxBytes = most
			got, err := get(g, at(s, "a.test"))
			if !errors.Is(err, tt.want) || tt.read >= 0 && len(got) != tt.read || err != nil && !strings.Contains(err.Error(), `"a.test"`) {
				t.Errorf("%s, chunked %v: %d bytes, %v", tt.name, chunked, len(got), err)
			}
			s.Close()
		}
	}
}

// TestTooLargeStays checks that an end is not taken for a whole answer by a caller who reads on.
func TestTooLargeStays(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "12345") })
	g := local()
	g.MaxBytes = 4
	resp, err := g.Client().Get(at(s, "a.test"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for range 3 {
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, netguard.ErrTooLarge) {
			t.Errorf("%v", err)
		}
	}
}

func TestEncodings(t *testing.T) {
	var asked string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Accept-Encoding")
		w.Header().Set("Content-Encoding", r.URL.RawQuery)
		fmt.Fprint(w, "plain")
	})
	for encoding, ok := range map[string]bool{"identity": true, "": true, "br": false, "gzip,gzip": false, "zstd": false} {
		got, err := get(local(), at(s, "a.test")+"/?"+encoding)
		if ok != (err == nil) || ok && got != "plain" || !ok && !strings.Contains(err.Error(), encoding) {
			t.Errorf("%s: %q, %v", encoding, got, err)
		}
		if asked != "gzip" {
			t.Errorf("asked for %q", asked)
		}
	}
	resp, err := local().Client().Head(at(s, "a.test") + "/?gzip")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); err != nil || len(data) > 0 || asked != "identity" {
		t.Errorf("HEAD: %q, %v, asked for %q", data, err, asked)
	}
}

func TestTypes(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/to" {
			w.Header().Set("Content-Type", "image/png")
			http.Redirect(w, r, "/?text/plain", http.StatusFound)
			fmt.Fprint(w, "a picture")
			return
		}
		w.Header()["Content-Type"] = []string{r.URL.RawQuery}
		if r.URL.RawQuery == "none" {
			w.Header()["Content-Type"] = nil
		}
		fmt.Fprint(w, "body")
	})
	for path, ok := range map[string]bool{
		"?text/plain": true, "?TEXT/html;charset=utf-8": true, "?application/json": true, "to": true,
		"?image/png": false, "?none": false, "?application/json2": false, "?textual/plain": false, "?;;": false,
	} {
		g := local()
		g.Types = []string{"text/*", "application/json"}
		got, err := get(g, at(s, "a.test")+"/"+path)
		if ok != (err == nil) || ok && got != "body" || !ok && !strings.Contains(err.Error(), "a.test") {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

// TestSlow has a host that sends a little and then nothing, one that sends no
// header, and one that sends a header without an end.
func TestSlow(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "start")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	})
	for path, want := range map[string]string{"/body": "start", "/header": ""} {
		g := local()
		g.Timeout = 2 * time.Second
		got, err := get(g, at(s, "a.test")+path)
		if got != want || err == nil || !strings.Contains(err.Error(), "a.test") || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	huge := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 8000))
		}
	})
	if _, err := get(local(), at(huge, "a.test")); err == nil || !strings.Contains(err.Error(), "header") {
		t.Errorf("a huge header: %v", err)
	}
}

// TestCut has a host that ends its answer early.
func TestCut(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	got, err := get(local(), at(s, "a.test"))
	if diff := cmp.Diff("half", got); diff != "" || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), "a.test") {
		t.Errorf("%s, %v", diff, err)
	}
}

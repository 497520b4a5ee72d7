package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/web"
)

func TestAddress(t *testing.T) {
	for _, tt := range []struct{ raw, want, err string }{
		{"http://example.com/a#b", "https://example.com/a", ""},
		{"http://example.com:80/a", "http://example.com:80/a", ""},
		{" https://Example.com ", "https://example.com", ""},
		{"https://github.com/a/b/blob/main/x/y%20z.go#L3", "https://raw.githubusercontent.com/a/b/main/x/y%20z.go", ""},
		{"https://github.com/a/b/blob/main", "https://github.com/a/b/blob/main", ""},
		{"https://github.com/a/b/tree/main/x", "https://github.com/a/b/tree/main/x", ""},
		{"https://u:pw@example.com/", "", "user information"},
		{"ftp://example.com/", "", "scheme"},
		{"example.com", "", "scheme"},
		{"", "", "empty"},
		{"https://example.com/" + strings.Repeat("x", 2000), "", "2000"},
	} {
		u, err := web.Address(tt.raw)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "pw")):
			t.Errorf("%.50s: %v", tt.raw, err)
		case tt.err == "" && (err != nil || u.String() != tt.want):
			t.Errorf("%s: %v, %v", tt.raw, u, err)
		}
	}
	for raw, want := range map[string][]string{
		"https://example.com":      {"example.com", "www.example.com"},
		"https://www.example.com":  {"www.example.com", "example.com"},
		"https://www.com":          {"www.com", "www.www.com"},
		"http://127.0.0.1:80":      {"127.0.0.1"},
		"http://[::1]:80":          {"[::1]"},
		"http://localhost:80":      {"localhost"},
		"https://sub.www.test.org": {"sub.www.test.org", "www.sub.www.test.org"},
	} {
		u, err := url.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := web.Hosts(u); !slices.Equal(got, want) {
			t.Errorf("%s: %q", raw, got)
		}
	}
}

// site is a server of many ways.
func site(t *testing.T) (*httptest.Server, func(path string) (web.Fetched, error)) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(s.Close)
	return s, func(path string) (web.Fetched, error) {
		u, err := web.Address(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return web.Fetch(t.Context(), client(), u)
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	var n int
	switch r.URL.Path {
	case "/headers":
		fmt.Fprintf(w, "%s %v", r.Method, r.Header)
	case "/to":
		http.Redirect(w, r, r.URL.Query().Get("u"), http.StatusFound)
	case "/nowhere":
		w.WriteHeader(http.StatusMovedPermanently)
	case "/missing":
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "<title>x</title><nav>menu</nav><h1>No such page</h1><p hidden>SECRET</p>")
	case "/busy":
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusServiceUnavailable)
	case "/big":
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, strings.Repeat("0123456789\n", 600_000))
	case "/pdf":
		w.Header().Set("Content-Type", "application/pdf")
	case "/short":
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "x")
	case "/cookie":
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		http.Redirect(w, r, "/headers", http.StatusSeeOther)
	default:
		if _, err := fmt.Sscanf(r.URL.Path, "/hop/%d", &n); err == nil && n > 0 {
			http.Redirect(w, r, fmt.Sprintf("/hop/%d", n-1), http.StatusPermanentRedirect)
			return
		}
		fmt.Fprint(w, "arrived")
	}
}

func TestFetch(t *testing.T) {
	s, fetch := site(t)
	for _, tt := range []struct{ path, text, err string }{
		{"/hop/5", "arrived", ""},
		{"/hop/6", "", "more than 5 redirects"},
		{"/to?u=/x", "arrived", ""},
		{"/to?u=http://elsewhere.test:8080/y", "", "redirects to http://elsewhere.test:8080/y: fetch that address instead"},
		{"/to?u=http://elsewhere.test/y", "", "redirects to https://elsewhere.test/y: fetch"},
		{"/to?u=http://localhost:1/", "", "fetch that address"},
		{"/to?u=file:///etc/passwd", "", "bad place"},
		{"/to?u=http://u:p@127.0.0.1/", "", "bad place"},
		{"/nowhere", "", "does not say where"},
		{"/missing", "", "404 Not Found; it says:\n# No such page"},
		{"/busy", "", "503 Service Unavailable; it asks to wait: Retry-After 30 seconds"},
		{"/pdf", "", "is a PDF"},
		{"/short", "", "read answer"},
		{"/headers", "GET map[Accept:[text/markdown, ", ""},
	} {
		got, err := fetch(tt.path)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "SECRET")):
			t.Errorf("%s: %+v, %v", tt.path, got, err)
		case tt.err == "" && (err != nil || !strings.HasPrefix(got.Text, tt.text)):
			t.Errorf("%s: %q, %v", tt.path, got.Text, err)
		}
	}
	if got, err := fetch("/cookie"); err != nil || got.Address != s.URL+"/headers" || strings.Contains(got.Text, "Cookie") ||
		!strings.Contains(got.Text, "User-Agent:[inspan]") || strings.Contains(got.Text, "Referer") {
		t.Errorf("after a cookie: %+v, %v", got, err)
	}
	if got, err := fetch("/big"); err != nil || !got.Cut || len(got.Text) != 5<<20 {
		t.Errorf("big: %d bytes, %v, %v", len(got.Text), got.Cut, err)
	}
	s.Close()
	if _, err := fetch("/"); err == nil || strings.Count(err.Error(), s.URL) != 1 {
		t.Errorf("no server: %v", err)
	}
}

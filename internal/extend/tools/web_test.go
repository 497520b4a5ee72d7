package tools

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

// caller makes calls as a driver does.
type caller struct {
	t    *testing.T
	env  tool.Env
	seen map[string]string
}

func newCaller(t *testing.T) *caller {
	t.Helper()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env.HTTP = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return &caller{t, env, map[string]string{}}
}

func (c *caller) call(tl tool.Tool, args map[string]any) *tool.Call {
	c.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		c.t.Fatal(err)
	}
	checked, err := tl.Check(raw)
	if err != nil {
		c.t.Fatalf("%s %v: %v", tl.Name, args, err)
	}
	return &tool.Call{
		ID: "call-1", Key: "key-1", Session: "session-1", Name: tl.Name,
		Args: checked, Env: c.env, Cwd: c.env.Root, Seen: func(path string) (string, bool) { digest, ok := c.seen[path]; return digest, ok }, Progress: func(string) {},
	}
}

// run returns the text of a result, or of an error with "error: " before it.
func (c *caller) run(tl tool.Tool, args map[string]any) string {
	c.t.Helper()
	r, err := tl.Run(c.t.Context(), c.call(tl, args))
	for _, f := range r.Files {
		c.seen[f.Path] = f.Digest
	}
	if err != nil {
		return r.Parts.Text() + "error: " + err.Error()
	}
	return r.Parts.Text()
}

func (c *caller) effects(tl tool.Tool, args map[string]any) string {
	c.t.Helper()
	list, err := tl.Effects(c.t.Context(), c.call(tl, args))
	if err != nil {
		return "error: " + err.Error()
	}
	var out []string
	for _, e := range list {
		out = append(out, fmt.Sprint(e.Kind, " ", e.Text, strings.TrimPrefix(e.Path, c.env.Root)))
	}
	return strings.Join(out, ", ")
}

func holds(t *testing.T, what, got string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(got, w) {
			t.Errorf("%s: %q is not in\n%.2000s", what, w, got)
		}
	}
}

func TestWebFetch(t *testing.T) {
	c := newCaller(t)
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch r.URL.Path {
		case "/empty":
			w.Header().Set("Content-Type", "text/plain")
		case "/fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "/max":
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, strings.Repeat("é", 40_000))
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(w, "<title>Herons</title><meta name=author content=Ines><meta name=date content=2026-01-02><main><h1>Herons</h1><p>first "+
				"heron"+strings.Repeat("<p>ünremarkable line", 3000)+"<h2>End</h2><p>the last stork</main>")
		}
	}))
	defer s.Close()
	tl := webFetch(&web.Cache{})
	first := c.run(tl, map[string]any{"url": s.URL + "/page#x"})
	holds(t, "first", first, "Title: Herons\nAddress: "+s.URL+"/page\nBy: Ines\nPublished: 2026-01-02\nFetched: ",
		" UTC\n\n# Herons\n\nfirst heron", "; read on with from ")
	if len(first) > 21_000 {
		t.Errorf("the first part is %d bytes", len(first))
	}
	// All parts together are the text.
	var all strings.Builder
	for from, n := 0, 0; n < 100; n++ {
		got := c.run(tl, map[string]any{"url": s.URL + "/page", "from": from, "max_bytes": 9000})
		_, body, _ := strings.Cut(got, "\n\n")
		i := strings.LastIndex(body, "[bytes ")
		if i < 0 {
			t.Fatalf("no offsets: %s", got)
		}
		all.WriteString(body[:i])
		var start, end, total int
		if _, err := fmt.Sscanf(body[i:], "[bytes %d-%d of %d", &start, &end, &total); err != nil || start != from || end <= from {
			t.Fatalf("%s, %v", body[i:], err)
		}
		if from = end; end == total {
			break
		}
	}
	text := all.String()
	if strings.Count(text, "ünremarkable line") != 3000 {
		t.Errorf("%d lines came", strings.Count(text, "ünremarkable line"))
	}
	if found := c.run(tl, map[string]any{"url": s.URL + "/page", "find": "STORK last"}); strings.Contains(found, "ünremarkable") {
		t.Errorf("find: %.500s", found)
	} else {
		holds(t, "find", found, "Title: Herons", "under End]\nthe last stork")
	}
	holds(t, "find nothing", c.run(tl, map[string]any{"url": s.URL + "/page", "find": "ibis"}),
		"no passage of the page has any of these words: ibis")
	holds(t, "find much", c.run(tl, map[string]any{"url": s.URL + "/page", "find": "line", "max_bytes": 300}), "[cut here; give more words")
	holds(t, "too far", c.run(tl, map[string]any{"url": s.URL + "/page", "from": 1 << 30}),
		"error: from is 1073741824, but the text has only ")
	if asked != 1 {
		t.Errorf("the page was fetched %d times", asked)
	}
	if got := c.run(tl, map[string]any{"url": s.URL + "/max", "max_bytes": 1 << 20}); len(got) > 28_500 ||
		strings.ContainsRune(got, '\ufffd') {
		t.Errorf("much: %d bytes", len(got))
	}
	holds(t, "one byte", c.run(tl, map[string]any{"url": s.URL + "/max", "from": 1, "max_bytes": 1}), "\né\n[bytes 0-2 of 80000")
	holds(t, "empty", c.run(tl, map[string]any{"url": s.URL + "/empty"}), "[the page has no text]")
	asked = 0
	for range 2 {
		holds(t, "fails", c.run(tl, map[string]any{"url": s.URL + "/fail"}), "error: ", "500 Internal Server Error")
	}
	if asked != 2 {
		t.Error("an error was kept")
	}
	holds(t, "negative", c.run(tl, map[string]any{"url": s.URL, "from": -1}), "error: from and max_bytes")
	holds(t, "credentials", c.run(tl, map[string]any{"url": "https://u:p@example.com"}), "error: ", "user information")
	c.env.HTTP = nil
	holds(t, "no net", c.run(tl, map[string]any{"url": s.URL + "/other"}), "error: no server can be reached")

	for address, want := range map[string]string{
		"http://example.com/a":              "network example.com, network www.example.com",
		"https://github.com/a/b/blob/c/d.e": "network raw.githubusercontent.com, network www.raw.githubusercontent.com",
		"http://127.0.0.1:8080/":            "network 127.0.0.1",
		"gopher://example.com": `error: its arguments are not valid: address "gopher://example.com": has the scheme "gopher"; ` +
			`only http and https can be fetched`,
	} {
		if got := c.effects(tl, map[string]any{"url": address}); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
}

// upgraded fails for all but plain http.
type upgraded struct{}

func (upgraded) Do(r *http.Request) (*http.Response, error) {
	return nil, &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("no " + r.URL.Scheme + " here")}
}

func TestWebFetchUpgrade(t *testing.T) {
	c := newCaller(t)
	c.env.HTTP = upgraded{}
	holds(t, "upgrade", c.run(webFetch(nil), map[string]any{"url": "http://a.test/"}), "no https here", "for plain http write the port :80")
	if got := c.run(webFetch(nil), map[string]any{"url": "https://a.test/"}); strings.Contains(got, "port :80") {
		t.Error(got)
	}
}

func TestWebSearch(t *testing.T) {
	c := newCaller(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("q") == "nothing" {
			fmt.Fprint(w, `{"results":[]}`)
			return
		}
		var list []map[string]any
		for i := range 30 {
			list = append(list, map[string]any{
				"url":   fmt.Sprintf("https://a.test/%d", i),
				"title": "T", "content": "about\n<b>it</b>", "publishedDate": "2026-01-02T00:00:00",
			})
		}
		list[1]["title"], list[1]["content"], list[1]["publishedDate"] = "", "", nil
		json.NewEncoder(w).Encode(map[string]any{"results": list}) //nolint:errcheck // the client sees it
	}))
	defer s.Close()
	tl := webSearch(web.Search{Provider: "searxng", BaseURL: s.URL})
	got := c.run(tl, map[string]any{"query": " heron  bird "})
	holds(t, "search", got, "1. T\n   https://a.test/0\n   2026-01-02\n   about it\n2. (no title)\n   https://a.test/1\n3. T",
		"8. T", "[cite the addresses")
	if strings.Contains(got, "9. T") {
		t.Error("more than 8 results")
	}
	holds(t, "many", c.run(tl, map[string]any{
		"query": "x", "count": 20,
		"domains": []string{"a.test"}, "exclude": []string{"b.test"}, "recency": "year",
	}), "20. T")
	holds(t, "nothing", c.run(tl, map[string]any{"query": "nothing"}), `Nothing was found for "nothing"`)
	for want, args := range map[string]map[string]any{
		"query is empty":     {"query": " "},
		"longer than 1000":   {"query": strings.Repeat("x", 1001)},
		"at most 20":         {"query": "x", "count": 21},
		"is not a site":      {"query": "x", "domains": []string{"https://a.test/"}},
		`"*.a.test" is not`:  {"query": "x", "exclude": []string{"*.a.test"}},
		"more than 20 sites": {"query": "x", "domains": slices.Repeat([]string{"a.test"}, 21)},
	} {
		holds(t, want, c.run(tl, args), "error: ", want)
	}
	if got := c.effects(tl, map[string]any{"query": "x"}); got != "network 127.0.0.1" {
		t.Error(got)
	}
	if got := c.effects(webSearch(web.Search{}), map[string]any{"query": "x"}); !strings.HasPrefix(got, "error: ") {
		t.Error(got)
	}
}

const token = `t0k"en/+ value&9???>>>`

// api echoes its requests.
func api(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
	}
	auth := r.Header.Get("Authorization")
	w.Header().Set("X-Request-Id", auth)
	w.Header().Set("Set-Cookie", "a=b")
	switch r.URL.Path {
	case "/moved":
		w.Header().Set("Location", "https://elsewhere.test/?k="+url.QueryEscape(auth))
		w.WriteHeader(http.StatusTemporaryRedirect)
	case "/png":
		w.Header().Set("Content-Type", "image/png")
		fmt.Fprint(w, "\x89PNG\x00", auth)
	case "/error":
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "short and stout")
	case "/html":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<nav>x</nav>")
	case "/huge":
		fmt.Fprint(w, strings.Repeat("x", 65<<20))
	case "/drop":
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "application/json")
		echo := map[string]any{
			"method": r.Method, "body": string(body), "type": r.Header.Get("Content-Type"), "auth": auth,
			"b64": base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(auth,
				"Bearer "))), "key": r.Header.Get("Idempotency-Key"), "agent": r.Header.Get("User-Agent"),
		}
		json.NewEncoder(w).Encode(echo) //nolint:errcheck // the client sees it
	}
}

func requests(t *testing.T) (*caller, string, tool.Tool) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(api))
	t.Cleanup(s.Close)
	value := func(v string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return v, err }
	}
	return newCaller(t), s.URL, httpRequest(map[string]Secret{
		"TOKEN":  {Hosts: []string{"127.0.0.1"}, Value: value(token+"\n", nil), Plain: true},
		"STRICT": {Hosts: []string{"127.0.0.1"}, Value: value("strict-value", nil)},
		"OTHER":  {Hosts: []string{"*.other.test"}, Value: value("other-value", nil), Plain: true},
		"LOCKED": {Hosts: []string{"*"}, Value: value("", errors.New("the keychain is locked")), Plain: true},
		"EMPTY":  {Hosts: []string{"*"}, Value: value(" ", nil), Plain: true},
		"LINES":  {Hosts: []string{"*"}, Value: value("a\nb: c", nil), Plain: true},
	})
}

func TestHTTPRequest(t *testing.T) {
	c, at, tl := requests(t)
	for _, tt := range []struct {
		name string
		args map[string]any
		want []string
	}{
		{
			"get",
			map[string]any{"method": "get", "url": at + "/x#y"},
			[]string{"HTTP 200 OK\nContent-Length: ", "Content-Type: application/json\n", `"method": "GET"`, `"agent": "inspan"`, `"key": ""`},
		},
		{
			"json",
			map[string]any{"method": "POST", "url": at, "json": map[string]any{"a": "<1>"}},
			[]string{`"body": "{\"a\":\"\u003c1\u003e\"}"`, `"type": "application/json"`},
		},
		{
			"body",
			map[string]any{
				"method": "PUT", "url": at, "body": "a=b",
				"headers": map[string]string{"content-type": "text/x", "user-agent": "mine"},
			},
			[]string{`"body": "a=b"`, `"type": "text/x"`, `"agent": "mine"`},
		},
		{"head", map[string]any{"method": "HEAD", "url": at}, []string{"HTTP 200 OK", "[no body]"}},
		{"key", map[string]any{"method": "POST", "url": at, "idempotent": true}, []string{`"key": "` + "key-1"}},
		{
			"redirect",
			map[string]any{"method": "GET", "url": at + "/moved"},
			[]string{"HTTP 307 Temporary Redirect", "Location: https://elsewhere.test/?k="},
		},
		{"binary", map[string]any{"method": "GET", "url": at + "/png"}, []string{"a body of 5 B that can't be shown", "save_to"}},
		{"error", map[string]any{"method": "DELETE", "url": at + "/error"}, []string{"HTTP 418 I'm a teapot", "short and stout"}},
		{"html as it is", map[string]any{"method": "GET", "url": at + "/html"}, []string{"<nav>x</nav>"}},
		{"huge", map[string]any{"method": "GET", "url": at + "/huge"}, []string{"[the body is longer; only its first 5.0 MiB are here]"}},
		{"dropped", map[string]any{"method": "GET", "url": at + "/drop"}, []string{"error: GET " + at + "/drop: EOF"}},
		{
			"dropped post",
			map[string]any{"method": "POST", "url": at + "/drop"},
			[]string{"error: ", "is not known: check before you send it again"},
		},
		{"both", map[string]any{"method": "POST", "url": at, "body": "x", "json": 1}, []string{"error: give either"}},
		{"get with body", map[string]any{"method": "GET", "url": at, "body": "x"}, []string{"error: GET takes no body"}},
		{"host", map[string]any{"method": "GET", "url": at, "headers": map[string]string{"host": "x"}}, []string{"error: header Host"}},
		{
			"line end",
			map[string]any{"method": "GET", "url": at, "headers": map[string]string{"a": "b\r\nc: d"}},
			[]string{"error: header a has a line end"},
		},
		{"no name", map[string]any{"method": "GET", "url": at, "headers": map[string]string{"a b": "c"}}, []string{"is not a valid name"}},
		{
			"proxy",
			map[string]any{"method": "GET", "url": at, "headers": map[string]string{"proxy-authorization": "c"}},
			[]string{"is for proxies"},
		},
		{"credentials", map[string]any{"method": "GET", "url": "http://u:pw@a.test"}, []string{"error: ", "user information"}},
		{"long", map[string]any{"method": "GET", "url": at + strings.Repeat("x", 9000)}, []string{"error: url is longer"}},
	} {
		got := c.run(tl, tt.args)
		holds(t, tt.name, got, tt.want...)
		if strings.Contains(got, "a=b\n") {
			t.Errorf("%s: the cookie is shown", tt.name)
		}
	}
}

// telltale repeats a secret in its errors.
type telltale struct{}

func (telltale) Do(r *http.Request) (*http.Response, error) {
	return nil, errors.New("can't send " + r.Header.Get("Authorization"))
}

func TestHTTPSecrets(t *testing.T) {
	c, at, tl := requests(t)
	with := func(secret string) map[string]string {
		return map[string]string{"Authorization": "Bearer {{secret:" + secret + "}}"}
	}
	for _, path := range []string{"/x", "/moved", "/png", "/drop"} {
		for _, method := range []string{"GET", "POST"} {
			got := c.run(tl, map[string]any{"method": method, "url": at + path, "headers": with("TOKEN")})
			for _, form := range []string{token, "t0k", base64.StdEncoding.EncodeToString([]byte(token)), url.QueryEscape(token)} {
				if strings.Contains(got, form) {
					t.Errorf("%s %s: the secret came back as %s: %s", method, path, form, got)
				}
			}
			if path == "/x" {
				holds(t, path, got, `"auth": "Bearer {{secret:TOKEN}}"`, `"b64": "{{secret:TOKEN}}"`, "X-Request-Id: Bearer {{secret:TOKEN}}")
			}
		}
	}
	for _, tt := range []struct {
		want string
		args map[string]any
	}{
		{`no secret "NOPE"; there are: EMPTY, LINES, LOCKED, OTHER, STRICT, TOKEN`, map[string]any{"headers": with("NOPE")}},
		{"secret STRICT goes over https only", map[string]any{"headers": with("STRICT")}},
		{"secret OTHER does not go to 127.0.0.1", map[string]any{"headers": with("OTHER")}},
		{"the keychain is locked", map[string]any{"headers": with("LOCKED")}},
		{"secret EMPTY is empty", map[string]any{"headers": with("EMPTY")}},
		{"secret LINES has a line end", map[string]any{"headers": with("LINES")}},
		{"without }}", map[string]any{"headers": map[string]string{"a": "{{secret:TOKEN"}}},
		{"secrets go in headers only", map[string]any{"body": "{{secret:TOKEN}}", "method": "POST"}},
		{"secrets go in headers only", map[string]any{"json": map[string]any{"a": "{{secret:TOKEN}}"}, "method": "POST"}},
	} {
		args := map[string]any{"method": "GET", "url": at}
		for k, v := range tt.args {
			args[k] = v
		}
		holds(t, tt.want, c.run(tl, args), "error: ", tt.want)
	}
	holds(t, "none", c.run(httpRequest(nil), map[string]any{"method": "GET", "url": at, "headers": with("TOKEN")}),
		`no secret "TOKEN"; none is set`)

	c.env.HTTP = telltale{}
	holds(t, "error", c.run(tl, map[string]any{"method": "GET", "url": at, "headers": with("TOKEN")}), "can't send Bearer {{secret:TOKEN}}")

	preview, err := tl.Preview(t.Context(), c.call(tl, map[string]any{
		"method": "POST", "url": "https://127.0.0.1/a",
		"headers": with("STRICT"), "json": []int{1},
	}))
	if want := "POST https://127.0.0.1/a\nAuthorization: Bearer {{secret:STRICT}}\nContent-Type: application/json\nUser-Agent: inspan\n\n" +
		"[1]"; err != nil || preview != want {
		t.Errorf("preview: %s, %v", preview, err)
	}
}

func TestHTTPEffects(t *testing.T) {
	c, _, tl := requests(t)
	for _, tt := range []struct {
		method, url, save, want string
	}{
		{"GET", "https://a.test/x?y=1", "", "network a.test"},
		{"head", "https://a.test:8443/x", "", "network a.test"},
		{"POST", "https://a.test:8443/x?y=1", "", "network a.test, external POST a.test:8443/x"},
		{"OPTIONS", "http://[::1]/", "", "network [::1], external OPTIONS [::1]/"},
		{"GET", "https://a.test/x", "out/x.bin", "network a.test, write /out/x.bin"},
	} {
		args := map[string]any{"method": tt.method, "url": tt.url}
		if tt.save != "" {
			args["save_to"] = tt.save
		}
		if got := c.effects(tl, args); got != tt.want {
			t.Errorf("%s %s: %s", tt.method, tt.url, got)
		}
	}
}

func TestHTTPSave(t *testing.T) {
	c, at, tl := requests(t)
	has := func(name, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(c.env.Root, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", name, got, err)
		}
	}
	save := func(path, to string) string {
		return c.run(tl, map[string]any{
			"method": "GET", "url": at + path, "save_to": to,
			"headers": map[string]string{"Authorization": "{{secret:TOKEN}}"},
		})
	}
	holds(t, "save", save("/png", "a.png"), "HTTP 200 OK", "saved ", " to a.png")
	has("a.png", "\x89PNG\x00{{secret:TOKEN}}")
	holds(t, "again", save("/html", "a.png"), "saved 12 B to a.png")
	has("a.png", "<nav>x</nav>")
	if err := os.WriteFile(filepath.Join(c.env.Root, "mine"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	holds(t, "not seen", save("/html", "mine"), "error: nothing was sent: ", "was not read in this session")
	has("mine", "mine")
	if err := os.WriteFile(filepath.Join(c.env.Root, "a.png"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	holds(t, "changed", save("/html", "a.png"), "error: nothing was sent: ", "has changed")
	holds(t, "outside", save("/html", "../x"), "error: ", "outside of the workspace")
	holds(t, "failed", save("/error", "b"), "HTTP 418", "short and stout")
	holds(t, "huge", save("/huge", "b"), "HTTP 200", "error: the request was made, but its answer was not saved: it is larger than 64.0 MiB")
	if _, err := os.Stat(filepath.Join(c.env.Root, "b")); !os.IsNotExist(err) {
		t.Errorf("an answer was saved that should not be: %v", err)
	}
}

// TestWebSchemas checks that each field has a description.
func TestWebSchemas(t *testing.T) {
	for _, tl := range []tool.Tool{webFetch(nil), webSearch(web.Search{}), httpRequest(nil)} {
		var s struct {
			Properties map[string]map[string]any `json:"properties"`
			Required   []string                  `json:"required"`
			More       any                       `json:"additionalProperties"`
		}
		if err := json.Unmarshal(tl.Schema, &s); err != nil {
			t.Fatal(err)
		}
		for name, p := range s.Properties {
			if text, _ := p["description"].(string); text == "" && p["enum"] == nil {
				t.Errorf("%s: %s has no description", tl.Name, name)
			}
		}
		if s.More != false || len(s.Required) == 0 || len(tl.Doc) < 100 {
			t.Errorf("%s: %s", tl.Name, tl.Schema)
		}
	}
}

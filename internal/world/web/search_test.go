package web_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/world/web"
)

const key = "k3y-0123456789-secret"

// asked is a search as a fake engine sees it.
type asked struct {
	method, path string
	query        url.Values
	header       http.Header
	body         map[string]any
}

// engine serves one answer and reports its request.
func engine(t *testing.T, provider, answer string) (web.Search, *asked) {
	t.Helper()
	var a asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		a = asked{r.Method, r.URL.Path, r.URL.Query(), r.Header, nil}
		if len(raw) > 0 && json.Unmarshal(raw, &a.body) != nil {
			t.Errorf("the body is no JSON: %s", raw)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, answer) //nolint:errcheck // the client sees it
	}))
	t.Cleanup(s.Close)
	out := web.Search{Provider: provider, BaseURL: s.URL + "/"}
	if provider != "searxng" {
		out.Key = func(context.Context) (string, error) { return key + "\n", nil }
	}
	return out, &a
}

func client() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// TestEngines compares requests and answers with each service's documentation.
func TestEngines(t *testing.T) {
	q := web.Query{
		Text: "grey heron", Count: 5, Domains: []string{"birds.test", "org.test"},
		Exclude: []string{"ads.birds.test"}, Recency: "week",
	}
	domains := []any{"birds.test", "org.test"}
	for _, tt := range []struct {
		provider, answer string
		method, path     string
		header, value    string
		query            url.Values
		body             map[string]any
	}{
		{
			provider: "brave",
			answer: `{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[
				{"title":"The <strong>heron</strong>","url":"https://www.birds.test/a","description":"A &quot;grey&quot; bird","page_age":"2026-11-20T08:00:00","age":"2 days ago","language":"en"},
				{"title":"Ad","url":"https://ads.birds.test/","description":""},{"title":"Other","url":"https://other.test/","description":""},
				{"title":"Bad","url":"javascript:alert(1)","description":""},{"title":"Again","url":"https://www.birds.test/a","description":""}]}}`,
			method: "GET", path: "/res/v1/web/search", header: "X-Subscription-Token", value: key,
			query: url.Values{
				"q": {"grey heron (site:birds.test OR site:org.test) -site:ads.birds.test"}, "count": {"5"}, "freshness": {"pw"},
				"result_filter": {"web"}, "text_decorations": {"false"},
			},
		},
		{
			provider: "tavily",
			answer: `{"query":"x","follow_up_questions":null,"answer":null,"images":[],"results":[
				{"title":"The heron","url":"https://www.birds.test/a","content":"A \"grey\" bird","score":0.9,"published_date":"2026-11-20T08:00:00Z","raw_content":null}],"response_time":1.2}`,
			method: "POST", path: "/search", header: "Authorization", value: "Bearer " + key,
			body: map[string]any{
				"query": "grey heron", "max_results": 5.0, "include_domains": domains,
				"exclude_domains": []any{"ads.birds.test"}, "time_range": "week",
			},
		},
		{
			provider: "exa",
			answer: `{"requestId":"1","results":[{"id":"x","title":"The heron","url":"https://www.birds.test/a","publishedDate":"2026-11-20T08:00:00.000Z","author":null,
				"highlights":["A \"grey\"","bird"],"highlightScores":[0.5]},{"title":null,"url":"https://org.test/","publishedDate":null}],"costDollars":{"total":0.005}}`,
			method: "POST", path: "/search", header: "X-Api-Key", value: key,
			body: map[string]any{
				"query": "grey heron", "numResults": 5.0, "includeDomains": domains, "excludeDomains": []any{"ads.birds.test"},
				"startPublishedDate": "*", "contents": map[string]any{"highlights": true},
			},
		},
		{
			provider: "searxng",
			answer: `{"query":"x","number_of_results":0,"results":[{"url":"https://www.birds.test/a","title":"The heron","content":"A \"grey\" bird","engine":"x","publishedDate":"2026-11-20T08:00:00"},
				{"url":"https://org.test/","title":"b","content":"","publishedDate":null}],"answers":[],"unresponsive_engines":[["x","timeout"]]}`,
			method: "GET", path: "/search",
			query: url.Values{
				"q":      {"grey heron (site:birds.test OR site:org.test) -site:ads.birds.test"},
				"format": {"json"}, "time_range": {"week"},
			},
		},
	} {
		s, a := engine(t, tt.provider, tt.answer)
		hits, err := s.Find(t.Context(), client(), q)
		if err != nil {
			t.Errorf("%s: %v", tt.provider, err)
			continue
		}
		want := web.Hit{Title: "The heron", Address: "https://www.birds.test/a", Date: "2026-11-20", Snippet: `A "grey" bird`}
		if len(hits) == 0 || hits[0].Title != want.Title || hits[0].Address != want.Address || hits[0].Date != want.Date ||
			!strings.HasPrefix(hits[0].Snippet, `A "grey"`) {
			t.Errorf("%s: %+v", tt.provider, hits)
		}
		if tt.provider == "brave" && len(hits) != 1 {
			t.Errorf("hits from elsewhere came through: %+v", hits)
		}
		if a.method != tt.method || a.path != tt.path || tt.header != "" && a.header.Get(tt.header) != tt.value {
			t.Errorf("%s: asked %s %s with %v", tt.provider, a.method, a.path, a.header)
		}
		if a.header.Get("User-Agent") != "inspan" || a.header.Get("Accept") != "application/json" || a.header.Get("Cookie") != "" {
			t.Errorf("%s: headers %v", tt.provider, a.header)
		}
		if len(tt.query) > 0 {
			if diff := cmp.Diff(tt.query, a.query); diff != "" {
				t.Errorf("%s: query\n%s", tt.provider, diff)
			}
		}
		if tt.body != nil {
			if since, ok := a.body["startPublishedDate"].(string); ok {
				at, err := time.Parse("2006-01-02T15:04:05.000Z", since)
				if age := time.Since(at); err != nil || age < 6*24*time.Hour || age > 8*24*time.Hour {
					t.Errorf("%s: since %s, %v", tt.provider, since, err)
				}
				a.body["startPublishedDate"] = "*"
			}
			if diff := cmp.Diff(tt.body, a.body); diff != "" {
				t.Errorf("%s: body\n%s", tt.provider, diff)
			}
			if a.header.Get("Content-Type") != "application/json" {
				t.Errorf("%s: content type %q", tt.provider, a.header.Get("Content-Type"))
			}
		}
	}
}

// TestPlainQuery checks that unset options are not sent.
func TestPlainQuery(t *testing.T) {
	for provider, answer := range map[string]string{
		"brave":  `{"type":"search"}`,
		"tavily": `{"results":[]}`, "exa": `{"results":[]}`, "searxng": `{"results":[]}`,
	} {
		s, a := engine(t, provider, answer)
		hits, err := s.Find(t.Context(), client(), web.Query{Text: "x", Count: 3})
		if err != nil || len(hits) != 0 {
			t.Errorf("%s: %v, %v", provider, hits, err)
		}
		for _, not := range []string{"freshness", "time_range", "include_domains", "exclude_domains", "includeDomains", "startPublishedDate"} {
			if _, sent := a.body[not]; sent || a.query.Has(not) {
				t.Errorf("%s: %s was sent", provider, not)
			}
		}
	}
}

func TestSearchFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		after  string
		body   string
		want   []string
	}{
		{"limited", 429, "17", "", []string{"too many searches", "17 seconds"}},
		{"limited without a time", 429, "", "", []string{"429", "wait"}},
		{"refused", 401, "", `{"detail":{"error":"Unauthorized: key ` + key + ` is unknown"}}`, []string{"401", "[key]"}},
		{"moved", 302, "", "", []string{"302"}},
		{"no json", 200, "", "<html>", []string{"not as documented"}},
		{"other json", 200, "", `{"error":"no"}`, []string{"not as documented"}},
		{"wrong types", 200, "", `{"results":"none","type":"search","web":[]}`, []string{"not as documented"}},
		{"too large", 200, "", strings.Repeat(" ", 3<<20), []string{"larger"}},
	} {
		for _, provider := range []string{"brave", "tavily", "exa", "searxng"} {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if tt.after != "" {
					w.Header().Set("Retry-After", tt.after)
				}
				w.WriteHeader(tt.status)
				io.WriteString(w, tt.body) //nolint:errcheck // the client sees it
			}))
			s := web.Search{Provider: provider, BaseURL: srv.URL, Key: func(context.Context) (string, error) { return key, nil }}
			_, err := s.Find(t.Context(), client(), web.Query{Text: "x", Count: 3})
			srv.Close()
			if err == nil || strings.Contains(err.Error(), key) || slices.ContainsFunc(tt.want,
				func(w string) bool { return !strings.Contains(err.Error(), w) }) {
				t.Errorf("%s, %s: %v, want %q", provider, tt.name, err, tt.want)
			}
		}
	}
	s, _ := engine(t, "tavily", `{"results":[{"title":"`+key+`","url":"https://a.test/?k=`+key+`","content":"x"}]}`)
	hits, err := s.Find(t.Context(), client(), web.Query{Text: "x", Count: 3})
	if err != nil || len(hits) != 1 || strings.Contains(hits[0].Title+hits[0].Address, key) {
		t.Errorf("the key came back: %+v, %v", hits, err)
	}
	s.Key = func(context.Context) (string, error) { return "", errors.New("locked") }
	if _, err := s.Find(t.Context(), client(), web.Query{Text: "x", Count: 3}); err == nil || !strings.Contains(err.Error(), "locked") {
		t.Errorf("no key: %v", err)
	}
	s.Key = func(context.Context) (string, error) { return " ", nil }
	if _, err := s.Find(t.Context(), client(), web.Query{Text: "x", Count: 3}); err == nil || !strings.Contains(err.Error(), "is empty") {
		t.Errorf("empty key: %v", err)
	}
	b, _ := engine(t, "brave", `{"type":"search"}`)
	if _, err := b.Find(t.Context(), client(), web.Query{Text: strings.Repeat("x ", 51), Count: 3}); err == nil ||
		!strings.Contains(err.Error(), "50 words") {
		t.Errorf("long query: %v", err)
	}
}

func TestSearchCheck(t *testing.T) {
	k := func(context.Context) (string, error) { return key, nil }
	for _, tt := range []struct {
		s    web.Search
		host string
		want string
	}{
		{web.Search{Provider: "brave", Key: k}, "api.search.brave.com", ""},
		{web.Search{Provider: "tavily", Key: k}, "api.tavily.com", ""},
		{web.Search{Provider: "exa", Key: k}, "api.exa.ai", ""},
		{web.Search{Provider: "searxng", BaseURL: "http://localhost:8080"}, "localhost", ""},
		{web.Search{Provider: "searxng", BaseURL: "http://[::1]:8080/"}, "[::1]", ""},
		{web.Search{}, "", "no search engine is set"},
		{web.Search{Provider: "bing", Key: k}, "", "brave, tavily, exa, searxng"},
		{web.Search{Provider: "exa"}, "api.exa.ai", "needs a key"},
		{web.Search{Provider: "searxng"}, "", "address"},
		{web.Search{Provider: "brave", BaseURL: "http://proxy.test", Key: k}, "", "https"},
		{web.Search{Provider: "brave", BaseURL: "https://u:p@proxy.test", Key: k}, "", "user information"},
		{web.Search{Provider: "brave", BaseURL: "https://proxy.test/?a=b", Key: k}, "", "query"},
	} {
		err := tt.s.Check()
		if host := tt.s.Host(); host != tt.host || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %q, %v", tt.s, host, err)
		}
	}
}

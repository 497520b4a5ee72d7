package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
)

// brave is the Brave Search API.
// https://api-dashboard.search.brave.com/api-reference/web/search/get
type brave struct{}

func (brave) home() string { return "https://api.search.brave.com" }

func (brave) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	text := operators(q)
	if utf8.RuneCountInString(text) > 400 || len(strings.Fields(text)) > 50 {
		return nil, errors.New("a query has at most 400 characters and 50 words, domains included; make it shorter")
	}
	v := url.Values{"q": {text}, "count": {strconv.Itoa(q.Count)}, "result_filter": {"web"}, "text_decorations": {"false"}}
	if q.Recency != "" {
		v.Set("freshness", "p"+q.Recency[:1]) // pd, pw, pm, py
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/res/v1/web/search?"+v.Encode(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Subscription-Token", key)
	return req, nil
}

func (brave) hits(body []byte) ([]Hit, error) {
	var a struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
				PageAge     string `json:"page_age"`
				Age         string `json:"age"`
			} `json:"results"`
		} `json:"web"` // missing if nothing was found
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Type != "search" {
		return nil, fmt.Errorf("its type is %q, not search", text.Short(a.Type, 40))
	}
	var out []Hit
	for _, r := range a.Web.Results {
		out = append(out, Hit{r.Title, r.URL, day(r.PageAge, r.Age), r.Description})
	}
	return out, nil
}

// tavily is the Tavily Search API.
// https://docs.tavily.com/documentation/api-reference/endpoint/search
type tavily struct{}

func (tavily) home() string { return "https://api.tavily.com" }

func (tavily) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	return post(ctx, base+"/search", struct {
		Query   string   `json:"query"`
		Max     int      `json:"max_results"`
		Include []string `json:"include_domains,omitempty"`
		Exclude []string `json:"exclude_domains,omitempty"`
		Range   string   `json:"time_range,omitempty"` // day, week, month, year
	}{q.Text, q.Count, q.Domains, q.Exclude, q.Recency}, map[string]string{"Authorization": "Bearer " + key})
}

func (tavily) hits(body []byte) ([]Hit, error) {
	type result struct {
		Title     string `json:"title"`
		URL       string `json:"url"`
		Content   string `json:"content"`
		Published string `json:"published_date"`
	}
	return results(body, func(r result) Hit { return Hit{r.Title, r.URL, day(r.Published), r.Content} })
}

// exa is the Exa Search API.
// https://exa.ai/docs/reference/search
type exa struct{}

func (exa) home() string { return "https://api.exa.ai" }

func (exa) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	type contents struct {
		Highlights bool `json:"highlights"`
	}
	since := ""
	if days := map[string]int{"day": 1, "week": 7, "month": 31, "year": 366}[q.Recency]; days > 0 {
		since = time.Now().UTC().AddDate(0, 0, -days).Format("2006-01-02T15:04:05.000Z")
	}
	return post(ctx, base+"/search", struct {
		Query    string   `json:"query"`
		Num      int      `json:"numResults"`
		Include  []string `json:"includeDomains,omitempty"`
		Exclude  []string `json:"excludeDomains,omitempty"`
		Since    string   `json:"startPublishedDate,omitempty"` // ISO 8601
		Contents contents `json:"contents"`
	}{q.Text, q.Count, q.Domains, q.Exclude, since, contents{true}}, map[string]string{"x-api-key": key})
}

func (exa) hits(body []byte) ([]Hit, error) {
	type result struct {
		Title      string   `json:"title"` // may be null
		URL        string   `json:"url"`
		Published  string   `json:"publishedDate"` // may be null
		Highlights []string `json:"highlights"`
	}
	return results(body, func(r result) Hit { return Hit{r.Title, r.URL, day(r.Published), strings.Join(r.Highlights, " … ")} })
}

// searxng is the API of a SearXNG server. Its settings must allow the format
// json; else it answers 403.
// https://docs.searxng.org/dev/search_api.html
type searxng struct{}

func (searxng) home() string { return "" }

func (searxng) ask(ctx context.Context, base, key string, q Query) (*http.Request, error) {
	v := url.Values{"q": {operators(q)}, "format": {"json"}}
	if q.Recency != "" {
		v.Set("time_range", q.Recency)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/search?"+v.Encode(), nil)
	if err != nil {
		return nil, err
	}
	if key != "" { // the server itself has none; a proxy before it may
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}

func (searxng) hits(body []byte) ([]Hit, error) {
	type result struct {
		Title     string `json:"title"`
		URL       string `json:"url"`
		Content   string `json:"content"`
		Published string `json:"publishedDate"` // may be null
	}
	return results(body, func(r result) Hit { return Hit{r.Title, r.URL, day(r.Published), r.Content} })
}

// results decodes an answer with a list of results.
func results[R any](body []byte, hit func(R) Hit) ([]Hit, error) {
	var a struct {
		Results *[]R `json:"results"`
	}
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Results == nil {
		return nil, errors.New("it has no results")
	}
	var out []Hit
	for _, r := range *a.Results {
		out = append(out, hit(r))
	}
	return out, nil
}

func post(ctx context.Context, address string, body any, headers map[string]string) (*http.Request, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	return req, nil
}

// day shortens the first time that is given to its date.
func day(times ...string) string {
	for _, t := range times {
		if len(t) > 10 && t[4] == '-' && t[7] == '-' && t[10] == 'T' {
			return t[:10]
		}
		if t != "" {
			return t
		}
	}
	return ""
}

package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

const (
	searchFor  = 30 * time.Second
	nativeFor  = 2 * time.Minute // a model thinks meanwhile
	maxAnswer  = 2 << 20
	maxSnippet = 600
)

// Search queries a search engine. The zero value has none. It is safe for concurrent use.
type Search struct {
	Provider string // brave, tavily, exa, searxng, anthropic, openai or gemini
	Model    string // searching model, for the last three
	// BaseURL is the address of the service; empty means the vendor's. SearXNG has no default.
	BaseURL string
	// Key returns the key of the service. Nil means that it needs none, which is allowed only for SearXNG. It
	// is called for each search.
	Key func(ctx context.Context) (string, error)
}

// A Query is a search query.
type Query struct {
	Text    string
	Count   int      // results wanted, 1 to 20
	Domains []string // only these, and their subdomains; empty means all
	Exclude []string // not these
	Recency string   // day, week, month, year, or empty for any time
}

// A Hit is one result.
type Hit struct {
	Title   string
	Address string
	Date    string // as given by the engine; may be empty
	Snippet string // one line of plain text; may be empty
}

// engine implements the API of one service.
type engine interface {
	// home returns the default address of the service.
	home() string
	// ask returns the request. The key is empty if there is none.
	ask(ctx context.Context, base, key string, q Query) (*http.Request, error)
	// hits parses the response.
	hits(body []byte) ([]Hit, error)
}

func (s Search) engine() (engine, error) {
	switch s.Provider {
	case "brave":
		return brave{}, nil
	case "tavily":
		return tavily{}, nil
	case "exa":
		return exa{}, nil
	case "searxng":
		return searxng{}, nil
	case "anthropic":
		return anthropic{s.Model}, nil
	case "openai":
		return openai{s.Model}, nil
	case "gemini":
		return gemini{s.Model}, nil
	case "":
		return nil, errors.New("no search engine is set")
	}
	return nil, fmt.Errorf("no search engine %q; there are brave, tavily, exa, searxng, anthropic, openai, gemini", s.Provider)
}

// native reports an engine that is a vendor's model.
func (s Search) native() bool {
	return slices.Contains([]string{"anthropic", "openai", "gemini"}, s.Provider)
}

// Check returns an error if searches can't work; nil otherwise. It contacts no server and does not request the
// key.
func (s Search) Check() error {
	e, err := s.engine()
	if err != nil {
		return err
	}
	if s.Key == nil && s.Provider != "searxng" {
		return fmt.Errorf("%s needs a key", s.Provider)
	}
	if s.native() && (s.Model == "" || strings.ContainsAny(s.Model, "/?# ")) {
		return fmt.Errorf("%s needs the name of a model that searches", s.Provider)
	}
	_, err = s.base(e)
	return err
}

func (s Search) base(e engine) (*url.URL, error) {
	text := s.BaseURL
	if text == "" {
		text = e.home()
	}
	if text == "" {
		return nil, fmt.Errorf("%s needs the address of a server", s.Provider)
	}
	u, err := netguard.Check(strings.TrimRight(text, "/"))
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of %s has a query", s.Provider)
	}
	if s.Key != nil && u.Scheme != "https" && !loopback(u.Hostname()) {
		return nil, fmt.Errorf("the key of %s would go over plain http; its address needs https", s.Provider)
	}
	return u, nil
}

// loopback reports hosts that are this machine, judging by their name.
func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}

// Host returns the host of searches; empty if none are possible.
func (s Search) Host() string {
	e, err := s.engine()
	if err != nil {
		return ""
	}
	u, err := s.base(e)
	if err != nil {
		return ""
	}
	return bracket(u.Hostname())
}

// Find searches. Hits outside of the query's domains are dropped, whatever the engine returns. Errors are meant
// for a model; neither they nor hits contain the key.
func (s Search) Find(ctx context.Context, h tool.HTTP, q Query) ([]Hit, error) {
	if err := s.Check(); err != nil {
		return nil, err
	}
	patience := searchFor
	if s.native() {
		patience = nativeFor
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	key := ""
	if s.Key != nil {
		var err error
		if key, err = s.Key(ctx); err != nil {
			return nil, fmt.Errorf("get the key of %s: %w", s.Provider, err)
		}
		if key = strings.TrimSpace(key); key == "" {
			return nil, fmt.Errorf("the key of %s is empty", s.Provider)
		}
	}
	hits, err := s.find(ctx, h, q, key)
	if err != nil {
		return nil, errors.New(without(s.Provider+": "+err.Error(), key))
	}
	return hits, nil
}

// without removes a key from a text.
func without(text, key string) string {
	if key == "" {
		return text
	}
	return strings.NewReplacer(key, "[key]", url.QueryEscape(key), "[key]").Replace(text)
}

func (s Search) find(ctx context.Context, h tool.HTTP, q Query, key string) ([]Hit, error) {
	e, err := s.engine()
	if err != nil {
		return nil, err
	}
	base, err := s.base(e)
	if err != nil {
		return nil, err
	}
	req, err := e.ask(ctx, base.String(), key, q)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	body, err := answer(h, req)
	if err != nil {
		return nil, err
	}
	hits, err := e.hits([]byte(without(string(body), key)))
	if err != nil {
		return nil, fmt.Errorf("the answer is not as documented: %w", err)
	}
	return tidy(hits, q), nil
}

// answer reads the body of a successful response.
func answer(h tool.HTTP, req *http.Request) ([]byte, error) {
	resp, err := h.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, errors.New("no answer in time")
		}
		return nil, inner(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case resp.StatusCode == http.StatusTooManyRequests:
		after := waits(resp)
		if after == "" {
			return nil, errors.New("429: too many searches; wait a while")
		}
		return nil, fmt.Errorf("429: too many searches; it says Retry-After: %s", after)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode), plain(string(body), 300))
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer is larger than %d bytes", maxAnswer)
	}
	return body, nil
}

// tidy keeps valid hits in the query's domains, without duplicates, and makes their texts plain.
func tidy(hits []Hit, q Query) []Hit {
	var out []Hit
	seen := map[string]bool{}
	for _, h := range hits {
		u, err := netguard.Check(h.Address)
		if err != nil || seen[u.String()] || len(out) >= q.Count {
			continue
		}
		under := func(domain string) bool { return below(u.Hostname(), domain) }
		if len(q.Domains) > 0 && !slices.ContainsFunc(q.Domains, under) || slices.ContainsFunc(q.Exclude, under) {
			continue
		}
		seen[u.String()] = true
		out = append(out, Hit{plain(h.Title, 200), u.String(), plain(h.Date, 40), plain(h.Snippet, maxSnippet)})
	}
	return out
}

// below reports whether a host is a domain or lies below it.
func below(host, domain string) bool {
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	return netguard.Hosts{domain, "*." + domain}.Match(host, 0)
}

// operators returns the limits of a query in the syntax of Brave and the engines after SearXNG.
func operators(q Query) string {
	parts := []string{q.Text}
	var sites []string
	for _, d := range q.Domains {
		sites = append(sites, "site:"+d)
	}
	switch len(sites) {
	case 0:
	case 1:
		parts = append(parts, sites[0])
	default:
		parts = append(parts, "("+strings.Join(sites, " OR ")+")")
	}
	for _, d := range q.Exclude {
		parts = append(parts, "-site:"+d)
	}
	return strings.Join(parts, " ")
}

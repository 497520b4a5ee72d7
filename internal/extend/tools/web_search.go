package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

//go:embed web_search.md
var webSearchDoc string

const (
	maxHits    = 20
	hits       = 8
	maxQuery   = 1000 // bytes
	maxDomains = 20
)

type searchWebArgs struct {
	Query   string   `json:"query" jsonschema:"words to search for"`
	Count   int      `json:"count,omitempty" jsonschema:"results wanted; 8 if not given, at most 20"`
	Domains []string `json:"domains,omitempty" jsonschema:"only results from these sites, such as go.dev; those below count too"`
	Exclude []string `json:"exclude,omitempty" jsonschema:"no results from these sites"`
	Recency string   `json:"recency,omitempty" enum:"day,week,month,year" jsonschema:"only what was published in the last"`
}

// webSearch asks a search engine. The Check of the [web.Search] must succeed; otherwise don't offer the tool.
func webSearch(s web.Search) tool.Tool {
	t := tool.New("web_search", webSearchDoc, func(ctx context.Context, c *tool.Call, in searchWebArgs) (tool.Result, error) {
		return runWebSearch(ctx, c, in, s)
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		host := s.Host()
		if host == "" {
			return nil, s.Check()
		}
		return networkEffects(host), nil
	}
	return t
}

func runWebSearch(ctx context.Context, c *tool.Call, in searchWebArgs, s web.Search) (tool.Result, error) {
	q, err := query(in)
	switch {
	case err != nil:
		return tool.Result{}, err
	case c.Env.HTTP == nil:
		return tool.Result{}, errNoNet
	}
	found, err := s.Find(ctx, c.Env.HTTP, q)
	if err != nil {
		return tool.Result{}, err
	}
	if len(found) == 0 {
		return tool.Text(fmt.Sprintf("Nothing was found for %q. Try fewer or other words, or fewer limits.", in.Query)), nil
	}
	var b strings.Builder
	for i, h := range found {
		title := h.Title
		if title == "" {
			title = "(no title)"
		}
		fmt.Fprintf(&b, "%d. %s\n", i+1, title)
		for _, line := range []string{h.Address, h.Date, h.Snippet} {
			if line != "" {
				fmt.Fprintf(&b, "   %s\n", line)
			}
		}
	}
	b.WriteString("\n[cite the addresses of what you use; web_fetch reads a page]")
	return tool.Text(b.String()), nil
}

// query checks a model's query.
func query(in searchWebArgs) (web.Query, error) {
	text := strings.Join(strings.Fields(in.Query), " ")
	switch {
	case text == "":
		return web.Query{}, errors.New("query is empty")
	case len(text) > maxQuery:
		return web.Query{}, fmt.Errorf("query is longer than %d bytes; give the few words that matter", maxQuery)
	case in.Count < 0 || in.Count > maxHits:
		return web.Query{}, fmt.Errorf("count is %d; it is at most %d", in.Count, maxHits)
	case !slices.Contains([]string{"", "day", "week", "month", "year"}, in.Recency):
		return web.Query{}, fmt.Errorf("recency is %q, not day, week, month or year", in.Recency)
	case len(in.Domains) > maxDomains || len(in.Exclude) > maxDomains:
		return web.Query{}, fmt.Errorf("there are more than %d sites", maxDomains)
	}
	for _, site := range slices.Concat(in.Domains, in.Exclude) {
		if err := netguard.CheckHost(site); err != nil || strings.ContainsAny(site, "*:") {
			return web.Query{}, fmt.Errorf("%q is not a site; write one as go.dev", site)
		}
	}
	q := web.Query{Text: text, Count: in.Count, Domains: in.Domains, Exclude: in.Exclude, Recency: in.Recency}
	if q.Count == 0 {
		q.Count = hits
	}
	return q, nil
}

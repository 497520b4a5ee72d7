package tools

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

//go:embed web_fetch.md
var webFetchDoc string

const (
	// maxShownPage is how much of a page is shown at once, in bytes; a little less than the limit that results are
	// cut to in the middle.
	maxShownPage = 28_000
	shownPage    = 20_000
)

type fetchArgs struct {
	URL  string `json:"url" jsonschema:"address"`
	Find string `json:"find,omitempty" jsonschema:"words to look for"`
	From int    `json:"from,omitempty" jsonschema:"byte to go on from"`
	Max  int    `json:"max_bytes,omitempty" jsonschema:"bytes of text; 20000 if not given, at most 28000"`
}

// webFetch caches fetched pages for a while; nil means no cache.
func webFetch(cache *web.Cache) tool.Tool {
	t := tool.New("web_fetch", webFetchDoc, func(ctx context.Context, c *tool.Call, in fetchArgs) (tool.Result, error) {
		return runFetch(ctx, c, in, cache)
	})
	t.Effects = withArgs(func(_ context.Context, _ *tool.Call, in fetchArgs) ([]tool.Effect, error) {
		u, err := web.Address(in.URL)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
		}
		return networkEffects(web.Hosts(u)...), nil
	})
	return t
}

func networkEffects(hosts ...string) []tool.Effect {
	var out []tool.Effect
	for _, h := range hosts {
		out = append(out, tool.Effect{Kind: tool.Network, Text: h})
	}
	return out
}

var errNoNet = errors.New("no server can be reached from here")

func runFetch(ctx context.Context, c *tool.Call, in fetchArgs, cache *web.Cache) (tool.Result, error) {
	u, err := web.Address(in.URL)
	switch {
	case err != nil:
		return tool.Result{}, err
	case in.From < 0 || in.Max < 0:
		return tool.Result{}, errors.New("from and max_bytes are not negative")
	case c.Env.HTTP == nil:
		return tool.Result{}, errNoNet
	}
	page, err := fetched(ctx, c, u, in.URL, cache)
	if err != nil {
		return tool.Result{}, err
	}
	body, err := part(page, in)
	if err != nil {
		return tool.Result{}, err
	}
	return tool.Text(pageHead(page) + "\n" + body), nil
}

// fetched gets a page from the cache or from the network.
func fetched(ctx context.Context, c *tool.Call, u *url.URL, asked string, cache *web.Cache) (web.Fetched, error) {
	if page, ok := cache.Get(u.String()); ok {
		return page, nil
	}
	page, err := web.Fetch(ctx, c.Env.HTTP, u)
	if err != nil && strings.HasPrefix(strings.ToLower(asked), "http:") && u.Scheme == "https" && ctx.Err() == nil {
		err = fmt.Errorf("%w (http was made https; for plain http write the port :80)", err)
	}
	if err == nil {
		cache.Put(u.String(), page)
	}
	return page, err
}

// pageHead describes a page, for citations.
func pageHead(p web.Fetched) string {
	var b strings.Builder
	for _, line := range []struct{ name, value string }{
		{"Title", p.Title},
		{"Address", p.Address},
		{"By", p.Byline},
		{"Published", p.Date},
		{"Fetched", p.At.UTC().Format("2006-01-02 15:04 UTC")},
		{"Note", p.Note},
	} {
		if line.value != "" {
			b.WriteString(line.name + ": " + line.value + "\n")
		}
	}
	return b.String()
}

// part returns the requested part of a page, and describes what is missing.
func part(p web.Fetched, in fetchArgs) (string, error) {
	s := p.Text
	limit := shownPage
	if in.Max > 0 {
		limit = min(in.Max, maxShownPage)
	}
	if in.Find != "" {
		found, ok := web.Find(s, in.Find)
		if !ok {
			return fmt.Sprintf("[no passage of the page has any of these words: %s; without find it shows all %s]",
				in.Find, text.Count(len(s), "byte")), nil
		}
		if len(found) > limit {
			found = cutLine(found, limit) + "\n[cut here; give more words, or read from the offset of a passage]"
		}
		return found + cutNote(p), nil
	}
	switch {
	case s == "":
		return "[the page has no text]" + cutNote(p), nil
	case in.From >= len(s):
		return "", fmt.Errorf("from is %d, but the text has only %s", in.From, text.Count(len(s), "byte"))
	}
	from := len(text.Head(s, in.From))
	shown := cutLine(s[from:], limit)
	end := from + len(shown)
	switch {
	case end < len(s):
		shown = endLine(shown) + fmt.Sprintf("[bytes %d-%d of %d; read on with from %d, or give find]", from, end, len(s), end)
	case from > 0:
		shown = endLine(shown) + fmt.Sprintf("[bytes %d-%d of %d: the end]", from, end, len(s))
	}
	return shown + cutNote(p), nil
}

func cutNote(p web.Fetched) string {
	if p.Cut {
		return "\n[the page is longer than what is read of one; its end is missing]"
	}
	return ""
}

// cutLine returns at most the first limit bytes of a text, up to the end of a line if one ends in the last
// fifth.
func cutLine(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := len(text.Head(s, limit))
	if end == 0 { // not even one character fits
		_, end = utf8.DecodeRuneInString(s)
	}
	if i := strings.LastIndexByte(s[:end], '\n'); i >= end*4/5 {
		end = i + 1
	}
	return s[:end]
}

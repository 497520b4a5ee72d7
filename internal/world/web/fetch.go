package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/tool"
)

const (
	maxAddress   = 2000    // bytes of an address
	maxBody      = 5 << 20 // bytes of a response that are read
	maxRedirects = 5
	fetchFor     = 30 * time.Second
	userAgent    = "inspan"
)

// Fetched is a page with its origin.
type Fetched struct {
	Page
	Address string    // after redirects
	At      time.Time // when
}

// Address checks an address and returns the one to request: https instead of http without a port, the raw text
// of a file on GitHub, and no fragment. The error is meant for a model.
func Address(raw string) (*url.URL, error) {
	if len(raw) > maxAddress {
		return nil, fmt.Errorf("the address is longer than %d bytes", maxAddress)
	}
	u, err := netguard.Check(strings.TrimSpace(raw))
	if err != nil {
		return nil, err
	}
	return better(u), nil
}

func better(u *url.URL) *url.URL {
	out := *u
	out.Fragment, out.RawFragment = "", ""
	if out.Scheme == "http" && out.Port() == "" {
		out.Scheme = "https"
	}
	if parts := strings.SplitN(out.EscapedPath(), "/", 6); out.Host == "github.com" &&
		len(parts) == 6 && parts[3] == "blob" && parts[5] != "" {
		raw, err := url.Parse("https://raw.githubusercontent.com/" + parts[1] + "/" + parts[2] + "/" + parts[4] + "/" + parts[5])
		if err == nil {
			return raw
		}
	}
	return &out
}

// Hosts returns the hosts that approval of an address covers: its own, and the same with or without "www.".
func Hosts(u *url.URL) []string {
	host := u.Hostname()
	if bare, ok := strings.CutPrefix(host, "www."); ok && strings.Contains(bare, ".") {
		return []string{host, bare}
	}
	if net.ParseIP(host) != nil || !strings.Contains(host, ".") {
		return []string{bracket(host)}
	}
	return []string{host, "www." + host}
}

func bracket(host string) string {
	if strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return host
}

// Fetch fetches a page within 30 seconds. It follows at most 5 redirects, and only to [Hosts] of the address;
// another target is an error that names it. It sends neither cookies nor credentials. Errors are meant for a
// model.
func Fetch(ctx context.Context, h tool.HTTP, u *url.URL) (Fetched, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchFor)
	defer cancel()
	hosts := netguard.Hosts(Hosts(u))
	for range maxRedirects + 1 {
		got, next, err := get(ctx, h, u)
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return Fetched{}, fmt.Errorf("%s did not answer within %v", u.Host, fetchFor)
		case err != nil || next == nil:
			return got, err
		case !hosts.Match(next.Hostname(), 0):
			return Fetched{}, fmt.Errorf("%s redirects to %s: fetch that address instead", u, next)
		}
		u = next
	}
	return Fetched{}, fmt.Errorf("%s: more than %d redirects", u, maxRedirects)
}

// get requests one address. It returns the target of a redirect.
func get(ctx context.Context, h tool.HTTP, u *url.URL) (Fetched, *url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Fetched{}, nil, err
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, application/json;q=0.7, "+
		"*/*;q=0.5")
	resp, err := h.Do(req)
	if err != nil {
		return Fetched{}, nil, fmt.Errorf("GET %s: %w", u, inner(err))
	}
	defer resp.Body.Close()
	if next, err := redirect(u, resp); next != nil || err != nil {
		return Fetched{}, next, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return Fetched{}, nil, fmt.Errorf("GET %s: read answer: %w", u, err)
	}
	cut := len(body) > maxBody
	if cut {
		body = body[:maxBody]
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Fetched{}, nil, refused(u, resp, body)
	}
	page, err := Read(body, resp.Header.Get("Content-Type"), u)
	if err != nil {
		return Fetched{}, nil, fmt.Errorf("%s can't be read: %w", u, err)
	}
	page.Cut = page.Cut || cut
	return Fetched{Page: page, Address: u.String(), At: time.Now()}, nil, nil
}

// inner removes the part of an error that repeats the request.
func inner(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		return outer.Err
	}
	return err
}

// redirect returns the target of a redirect; nil if there is none.
func redirect(from *url.URL, resp *http.Response) (*url.URL, error) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil //nolint:nilnil // no redirect is not an error
	}
	to, err := from.Parse(resp.Header.Get("Location"))
	if err != nil || resp.Header.Get("Location") == "" {
		return nil, fmt.Errorf("%s redirects, and does not say where to", from)
	}
	next, err := Address(to.String())
	if err != nil {
		return nil, fmt.Errorf("%s redirects to a bad place: %w", from, err)
	}
	if from.Scheme == "https" && next.Scheme != "https" {
		return nil, fmt.Errorf("%s redirects from https to http (%s), which is not followed", from, next)
	}
	return next, nil
}

// refused returns an error for an error response, with its first words.
func refused(u *url.URL, resp *http.Response, body []byte) error {
	text := fmt.Sprintf("%s answered %d %s", u, resp.StatusCode, http.StatusText(resp.StatusCode))
	if after := waits(resp); after != "" {
		text += "; it asks to wait: Retry-After " + after
	}
	if page, err := Read(body, resp.Header.Get("Content-Type"), u); err == nil && strings.TrimSpace(page.Text) != "" {
		text += "; it says:\n" + Lines(page.Text, 10, 1000)
	}
	return errors.New(text)
}

// waits returns a response's Retry-After: seconds or a date.
func waits(resp *http.Response) string {
	after := text.Short(text.Page(resp.Header.Get("Retry-After")), 60)
	if after != "" && strings.Trim(after, "0123456789") == "" {
		after += " seconds"
	}
	return after
}

// Lines returns the first non-empty lines of a text.
func Lines(s string, most, limit int) string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" && len(out) < most {
			out = append(out, text.Short(line, 300))
		}
	}
	return text.Head(strings.Join(out, "\n"), limit)
}

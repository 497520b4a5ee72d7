package forge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/keep"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/netguard"
)

const (
	mostFetched = 4 << 20          // bytes of one response
	mostTries   = 3                // of one request
	mostWait    = 10 * time.Minute // maximum wait that a site may request
	perPage     = 100
	mostPages   = 100 // of a list
)

// caller makes the requests of one operation.
type caller struct {
	Site
	client *http.Client
	token  string
}

// api is the operations of a site, each with one or few requests.
type api interface {
	thread(ctx context.Context, n Name) (thread, error) // without its comments
	// notes returns the comments, on GitHub those on code only if requested.
	notes(ctx context.Context, n Name, code bool) iter.Seq2[note, error]
	comment(ctx context.Context, n Name, body string) (at string, err error)
	base(ctx context.Context, project string) (branch string, err error)
	proposed(ctx context.Context, project string, p Proposal) (at string, err error) // empty means none is open
	propose(ctx context.Context, project string, p Proposal) (at string, err error)
	setStatus(ctx context.Context, project, commit string, s Status) error
	checks(ctx context.Context, project, commit string) ([]Check, error)
}

// open returns the API for a project.
func (s Site) open(ctx context.Context, project string) (*caller, api, error) {
	g := &netguard.Guard{MaxBytes: mostFetched, Timeout: 30 * time.Second}
	if s.API != "" {
		g.Local = netguard.Anywhere()
	}
	c := &caller{Site: s, client: g.Unredirected(), token: s.Token}
	if s.kind() == GitLab {
		return c, &lab{c}, nil
	}
	if c.token == "" && s.App != nil {
		token, err := s.App.token(ctx, c, project)
		if err != nil {
			return nil, nil, fmt.Errorf("the GitHub app %s gets no token: %w", s.App.ID, err)
		}
		c.token = token
	}
	return c, &hub{c}, nil
}

// refusal is an error response.
type refusal struct {
	site   Kind
	what   string // the request
	status int
	says   string        // the reason given by the site
	limit  bool          // rate limit exceeded
	wait   time.Duration // until the next request
	hint   string
}

func (r *refusal) Error() string {
	out := fmt.Sprintf("%s answers %d for %s", r.site, r.status, r.what)
	if r.says != "" {
		out += ": " + r.says
	}
	if r.limit && r.wait > mostWait {
		out += fmt.Sprintf("; its limit of requests is used up for another %s", r.wait.Round(time.Minute))
	}
	if r.hint != "" {
		out += "; " + r.hint
	}
	return out
}

// request is one request. The body is sent as JSON; nil means none.
type request struct {
	method, path, accept string
	body                 any
}

// once makes a request and returns the response.
func (c *caller) once(ctx context.Context, r request) ([]byte, error) {
	var body io.Reader = http.NoBody
	if r.body != nil {
		raw, err := json.Marshal(r.body)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.api()+r.path, body)
	if err != nil {
		return nil, err
	}
	c.dress(req, r)
	res, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	if res.StatusCode/100 != 2 {
		return nil, c.refused(r, res, raw)
	}
	return raw, nil
}

// dress sets the headers of a request.
func (c *caller) dress(req *http.Request, r request) {
	req.Header.Set("User-Agent", "inspan")
	req.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	if c.kind() == GitHub {
		req.Header.Set("Accept", cmp.Or(r.accept, "application/vnd.github+json"))
		req.Header.Set("X-GitHub-Api-Version", "2022-11-28")
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// refused parses an error response.
func (c *caller) refused(r request, res *http.Response, raw []byte) *refusal {
	path, _, _ := strings.Cut(r.path, "?")
	out := &refusal{site: c.kind(), what: r.method + " " + path, status: res.StatusCode, wait: -1}
	var said struct {
		Message any `json:"message"`
		Error   any `json:"error"`
		Errors  any `json:"errors"`
	}
	if json.Unmarshal(raw, &said) == nil {
		for _, v := range []any{said.Message, said.Error, said.Errors} {
			if v != nil {
				more, _ := json.Marshal(v)
				out.says = strings.TrimSpace(out.says + " " + strings.Trim(string(more), `"`))
			}
		}
		out.says = text.Line(text.Cut(out.says, 300))
	}
	out.limited(res.Header)
	private := res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden
	if c.token == "" && private {
		out.hint = "what is private, and all writing, needs " + strings.ToUpper(string(c.kind())) + "_TOKEN"
	}
	return out
}

// limited reads how long a site requests its callers to wait.
func (r *refusal) limited(h http.Header) {
	number := func(names ...string) (int64, bool) {
		for _, name := range names {
			if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
				return n, true
			}
		}
		return 0, false
	}
	left, told := number("X-RateLimit-Remaining", "RateLimit-Remaining")
	after, wants := number("Retry-After")
	r.limit = r.status == http.StatusTooManyRequests || r.status == http.StatusForbidden && (wants || told && left == 0)
	if reset, known := number("X-RateLimit-Reset", "RateLimit-Reset"); r.limit && known && told && left == 0 {
		r.wait = max(time.Until(time.Unix(reset, 0)), 0) + time.Second
	}
	if wants && (r.limit || r.status >= 500) {
		r.wait = time.Duration(min(after, int64(24*time.Hour/time.Second))) * time.Second
	}
}

// again waits before a failed request is repeated, or returns the reason why it must not be.
func (c *caller) again(ctx context.Context, try int, err error) error {
	wait := time.Duration(try) * time.Second
	if r, ok := errors.AsType[*refusal](err); ok {
		if r.status < 500 && !r.limit || r.wait > mostWait {
			return err
		}
		if r.limit {
			wait = time.Minute // GitHub's default if it names no time
		}
		if r.wait >= 0 {
			wait = r.wait
		}
	}
	if _, never := errors.AsType[*netguard.RefusedError](err); never || try >= mostTries || ctx.Err() != nil {
		return err
	}
	sleep := keep.Sleep
	if c.Wait != nil {
		sleep = c.Wait
	}
	if sleep(ctx, wait) != nil {
		return err
	}
	return nil
}

// try repeats an idempotent operation until it succeeds or fails permanently.
func (c *caller) try(ctx context.Context, do func() error) error {
	for n := 1; ; n++ {
		err := do()
		if err == nil {
			return nil
		}
		if err = c.again(ctx, n, err); err != nil {
			return err
		}
	}
}

// get reads a document into a value as JSON or, into a string, unchanged.
func (c *caller) get(ctx context.Context, path, accept string, into any) error {
	var raw []byte
	err := c.try(ctx, func() (err error) {
		raw, err = c.once(ctx, request{method: http.MethodGet, path: path, accept: accept})
		return err
	})
	if plain, ok := into.(*string); ok || err != nil {
		if ok {
			*plain = string(raw)
		}
		return err
	}
	return c.read(path, raw, into)
}

func (c *caller) read(path string, raw []byte, into any) error {
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s answers %s with something else than it is to: %w", c.kind(), path, err)
	}
	return nil
}

// post sends a document, once.
func (c *caller) post(ctx context.Context, path string, body, into any) error {
	raw, err := c.once(ctx, request{method: http.MethodPost, path: path, body: body})
	if err != nil || into == nil {
		return err
	}
	return c.read(path, raw, into)
}

// createOnce creates something that must exist only once: before each try it looks for it. Look itself retries,
// so its errors are permanent.
func (c *caller) createOnce(ctx context.Context, look, post func() (at string, err error)) (at string, err error) {
	var lost error
	err = c.try(ctx, func() (err error) {
		if at, lost = look(); lost == nil && at == "" {
			at, err = post()
		}
		return err
	})
	return at, cmp.Or(lost, err)
}

// pages ranges over a list, page by page.
func pages[T any](ctx context.Context, c *caller, path string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		for page := 1; page <= mostPages; page++ {
			var some []T
			if err := c.get(ctx, fmt.Sprintf("%s%sper_page=%d&page=%d", path, sign, perPage, page), "", &some); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, one := range some {
				if !yield(one, nil) {
					return
				}
			}
			if len(some) < perPage {
				return
			}
		}
	}
}

package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/world/web"
	"github.com/inspan/inspan/tool"
)

//go:embed http_request.md
var httpRequestDoc string

// MaxBody is the limit for reading a response, in bytes.
const MaxBody = 64 << 20

const (
	requestFor   = 60 * time.Second
	maxTextBody  = 5 << 20
	maxSavedBody = MaxBody
	maxSentURL   = 8 << 10
)

type requestArgs struct {
	Method     string            `json:"method" enum:"GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS"`
	URL        string            `json:"url" jsonschema:"address to ask"`
	Headers    map[string]string `json:"headers,omitempty" jsonschema:"headers by name; a value may hold {{secret:NAME}}"`
	Body       string            `json:"body,omitempty" jsonschema:"text to send"`
	JSON       any               `json:"json,omitempty" jsonschema:"value to send as JSON, instead of body"`
	SaveTo     string            `json:"save_to,omitempty" jsonschema:"file in the workspace to write the body of the answer to"`
	Idempotent bool              `json:"idempotent,omitempty" jsonschema:"send an Idempotency-Key that stays the same if this call is tried again"`
}

// requester is the network access of http_request.
type requester struct {
	secrets map[string]Secret
}

// httpRequest sends requests. The model knows secrets only by their names.
func httpRequest(secrets map[string]Secret) tool.Tool {
	r := requester{secrets}
	t := tool.New("http_request", httpRequestDoc, r.run)
	t.Effects = withArgs(r.effects)
	t.Preview = withArgs(func(_ context.Context, c *tool.Call, in requestArgs) (string, error) {
		m, err := r.message(c, in)
		if err != nil {
			return "", err
		}
		return m.preview(), nil
	})
	return t
}

func (r requester) effects(ctx context.Context, c *tool.Call, in requestArgs) ([]tool.Effect, error) {
	m, err := r.message(c, in)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	}
	out := networkEffects(hostOf(m.url))
	if !m.reads() {
		out = append(out, tool.Effect{Kind: tool.External, Text: m.method + " " + m.url.Host + m.url.EscapedPath()})
	}
	if in.SaveTo != "" {
		path, err := Resolve(ctx, c, in.SaveTo)
		if err != nil {
			return nil, err
		}
		out = append(out, tool.Effect{Kind: tool.Write, Path: path})
	}
	return out, nil
}

func hostOf(u *url.URL) string {
	if host := u.Hostname(); strings.Contains(host, ":") {
		return "[" + host + "]"
	}
	return u.Hostname()
}

// A message is a request as it would go, secrets by name.
type message struct {
	method  string
	url     *url.URL
	headers map[string]string // by canonical name
	body    []byte
}

func (m message) reads() bool {
	return m.method == http.MethodGet || m.method == http.MethodHead
}

// message checks a model's request.
func (r requester) message(c *tool.Call, in requestArgs) (message, error) {
	m := message{method: strings.ToUpper(strings.TrimSpace(in.Method)), headers: map[string]string{"User-Agent": "inspan"}}
	switch m.method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		return m, fmt.Errorf("method is %q, not GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS", in.Method)
	}
	if len(in.URL) > maxSentURL {
		return m, fmt.Errorf("url is longer than %d bytes", maxSentURL)
	}
	u, err := netguard.Check(strings.TrimSpace(in.URL))
	if err != nil {
		return m, err
	}
	u.Fragment, u.RawFragment = "", ""
	m.url = u
	if err := m.fill(in); err != nil {
		return m, err
	}
	if in.Idempotent {
		m.headers["Idempotency-Key"] = c.Key
	}
	return m, r.allowed(m)
}

// fill sets body and headers.
func (m *message) fill(in requestArgs) error {
	switch {
	case in.JSON != nil && in.Body != "":
		return errors.New("give either body or json")
	case in.JSON != nil:
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(in.JSON); err != nil {
			return err
		}
		m.body = bytes.TrimSpace(b.Bytes())
		m.headers["Content-Type"] = "application/json"
	case in.Body != "":
		m.body = []byte(in.Body)
	}
	if len(m.body) > 0 && m.reads() {
		return fmt.Errorf("%s takes no body; for a query add it to the url", m.method)
	}
	for _, name := range slices.Sorted(maps.Keys(in.Headers)) {
		value := in.Headers[name]
		if err := checkHeader(name, value); err != nil {
			return err
		}
		m.headers[http.CanonicalHeaderKey(name)] = value
	}
	if strings.Contains(in.URL, secretOpening) || bytes.Contains(m.body, []byte(secretOpening)) {
		return errors.New("secrets go in headers only, not in the url or the body")
	}
	return nil
}

// checkHeader refuses headers that would turn this request into another.
func checkHeader(name, value string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") != "" {
		return fmt.Errorf("header %q is not a valid name", name)
	}
	switch canonical := http.CanonicalHeaderKey(name); canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Accept-Encoding", "Expect":
		return fmt.Errorf("header %s is set by itself", canonical)
	default:
		if strings.HasPrefix(canonical, "Proxy-") {
			return fmt.Errorf("header %s is for proxies", canonical)
		}
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("header %s has a line end or another control character in it", name)
	}
	return nil
}

func (m message) preview() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", m.method, m.url)
	for _, name := range slices.Sorted(maps.Keys(m.headers)) {
		fmt.Fprintf(&b, "%s: %s\n", name, m.headers[name])
	}
	if len(m.body) > 0 {
		b.WriteString("\n" + cutDiff(clean(m.body), maxStoredDiff))
	}
	return b.String()
}

func (r requester) run(ctx context.Context, c *tool.Call, in requestArgs) (tool.Result, error) {
	m, err := r.message(c, in)
	if err != nil {
		return tool.Result{}, err
	}
	if c.Env.HTTP == nil {
		return tool.Result{}, errNoNet
	}
	target, err := saving(ctx, c, in)
	if err != nil {
		return tool.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestFor)
	defer cancel()
	values, err := r.values(ctx, m)
	if err != nil {
		return tool.Result{}, err
	}
	got, err := m.send(ctx, c, values, in.SaveTo != "")
	if err != nil {
		return tool.Result{}, errors.New(values.hide(err.Error()))
	}
	text := got.head(values)
	if in.SaveTo != "" && got.status >= 200 && got.status < 300 && m.method != http.MethodHead {
		file, err := got.save(ctx, c, target, values)
		if err != nil {
			return tool.Text(text), fmt.Errorf("the request was made, but its answer was not saved: %w", err)
		}
		res := tool.Text(text + fmt.Sprintf("\nsaved %s to %s", size(int64(len(got.body))), Shown(c, file.Path)))
		res.Files = []tool.File{file}
		return res, nil
	}
	return tool.Text(text + "\n" + got.text(m.url, values)), nil
}

// saving checks the file for a response, before anything is sent.
func saving(ctx context.Context, c *tool.Call, in requestArgs) (draft, error) {
	if in.SaveTo == "" {
		return draft{}, nil
	}
	path, err := Resolve(ctx, c, in.SaveTo)
	if err != nil {
		return draft{}, err
	}
	if !text.Inside(c.Env.Root, path) {
		return draft{}, fmt.Errorf("save_to is %s, which is outside of the workspace", path)
	}
	d, err := load(ctx, c, path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return draft{}, fmt.Errorf("nothing was sent: %w", err)
	}
	return d, nil
}

// answered is a response.
type answered struct {
	status int
	header http.Header
	body   []byte
	over   bool // it was longer
}

// send makes the request. One that only reads may take the short way of a
// redirect to the model; none is followed.
func (m message) send(ctx context.Context, c *tool.Call, values secretValues, save bool) (answered, error) {
	req, err := http.NewRequestWithContext(ctx, m.method, m.url.String(), bytes.NewReader(m.body))
	if err != nil {
		return answered{}, err
	}
	if len(m.body) == 0 {
		req.Body, req.GetBody = nil, nil
	}
	for name, value := range m.headers {
		req.Header.Set(name, values.fill(value))
	}
	resp, err := c.Env.HTTP.Do(req)
	if err != nil {
		return answered{}, m.lost(err)
	}
	defer resp.Body.Close()
	limit := maxTextBody
	if save {
		limit = maxSavedBody
	}
	out := answered{status: resp.StatusCode, header: resp.Header}
	out.body, err = io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil && !errors.Is(err, netguard.ErrTooLarge) {
		return out, m.lost(fmt.Errorf("the answer (status %d) broke off: %w", resp.StatusCode, err))
	}
	if out.over = len(out.body) > limit || err != nil; out.over {
		out.body = out.body[:min(len(out.body), limit)]
	}
	return out, nil
}

// lost describes what is known if there is no response.
func (m message) lost(err error) error {
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", requestFor)
	}
	err = fmt.Errorf("%s %s: %w", m.method, m.url, err)
	var refused *netguard.RefusedError
	if m.reads() || errors.As(err, &refused) || errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w; whether the server did it is not known: check before you send it again", err)
}

// head returns the status and the relevant headers.
func (a answered) head(values secretValues) string {
	var b strings.Builder
	fmt.Fprintf(&b, "HTTP %d %s\n", a.status, http.StatusText(a.status))
	for _, name := range slices.Sorted(maps.Keys(a.header)) {
		if !telling(name) {
			continue
		}
		for _, value := range a.header[name] {
			fmt.Fprintf(&b, "%s: %s\n", name, values.hide(clean([]byte(value))))
		}
	}
	return b.String()
}

// telling names the headers that a model may need.
func telling(name string) bool {
	switch name {
	case "Content-Type", "Content-Length", "Location", "Retry-After", "Etag", "Last-Modified", "Www-Authenticate", "Link", "Allow",
		"Content-Disposition", "X-Request-Id", "Deprecation", "Sunset", "Warning":
		return true
	}
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Ratelimit")
}

// text is the body for a model.
func (a answered) text(u *url.URL, values secretValues) string {
	if len(a.body) == 0 {
		return "[no body]"
	}
	kind := a.header.Get("Content-Type")
	if base, _, _ := strings.Cut(kind, ";"); strings.Contains(base, "html") {
		kind = strings.Replace(kind, base, "text/plain", 1) // unconverted: this is not a reader
	}
	page, err := web.Read(a.body, kind, u)
	if err != nil {
		return fmt.Sprintf("[a body of %s that can't be shown: %s]", size(int64(len(a.body))), values.hide(err.Error()))
	}
	text := values.hide(page.Text)
	if a.over || page.Cut {
		text = endLine(text) + fmt.Sprintf("[the body is longer; only its first %s are here]", size(int64(len(a.body))))
	}
	return text
}

// save writes the body to the file that was chosen before the request.
func (a answered) save(ctx context.Context, c *tool.Call, d draft, values secretValues) (tool.File, error) {
	if a.over {
		return tool.File{}, fmt.Errorf("it is larger than %s; use bash with curl -o", size(maxSavedBody))
	}
	data := []byte(values.hide(string(a.body)))
	cond := tool.NoFile
	if d.exists {
		cond = tool.Digest(d.before)
	}
	err := c.Env.Files.Change(ctx, tool.Change{Path: d.path, Data: data, IfDigest: cond, Exact: true})
	if errors.Is(err, tool.ErrChanged) {
		return tool.File{}, fmt.Errorf("%s was replaced by another file meanwhile", Shown(c, d.path))
	}
	if err != nil {
		return tool.File{}, err
	}
	return tool.File{Path: d.path, Digest: tool.Digest(data), Written: true}, nil
}

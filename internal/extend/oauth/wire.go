package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/inspan/inspan/internal/safety/secret"
	"github.com/inspan/inspan/internal/view/words"
)

const (
	maxBody      = 1 << 20 // bytes of one answer
	maxRedirects = 5       // of a document; what carries a credential follows none
	maxText      = 300     // cells of a server's words in an error
)

// wire sends requests to the servers of one account.
type wire struct {
	http  *http.Client
	local bool     // the account is on this machine, so its servers may be
	hide  []string // secrets that words of a server must not show
}

func (c *Client) wire(local bool) (wire, error) {
	if c.HTTP == nil {
		return wire{}, errors.New("oauth: no HTTP client is set")
	}
	return wire{http: c.HTTP, local: local}, nil
}

var (
	// errReach says that there was no response, so a later try may succeed.
	errReach = errors.New("the server can't be reached")
	// errUnreadable says that a response does not have the required form.
	errUnreadable = errors.New("the answer can't be read")
)

// refusal is an error response of a server, with its words cleaned.
type refusal struct {
	status int    // 0 means it came by way of the browser
	code   string // such as invalid_grant; empty means none was said
	text   string
}

func (r *refusal) Error() string {
	out := "the server answered"
	if r.status != 0 {
		out += fmt.Sprintf(" %d", r.status)
	}
	if r.code != "" {
		out += " " + r.code
	}
	if r.text != "" {
		out += ": " + r.text
	}
	return out
}

// refused reports whether an error is a response with one of the codes.
func refused(err error, codes ...string) bool {
	var r *refusal
	return errors.As(err, &r) && !passing(err) && slices.Contains(codes, r.code)
}

// passing reports whether an error says nothing about the request itself.
func passing(err error) bool {
	var r *refusal
	return errors.Is(err, errReach) || errors.As(err, &r) && (r.status >= 500 || r.status == http.StatusTooManyRequests)
}

// document gets a JSON document. It returns nil without an error if there is none: the server answers 4xx, or
// with something other than JSON, as servers with one page for all addresses do.
func (w wire) document(ctx context.Context, at string) (*fields, error) {
	u, err := address(at, w.local)
	if err != nil {
		return nil, err
	}
	at = u.String()
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	client := &http.Client{Transport: w.http.Transport, Timeout: w.http.Timeout, CheckRedirect: w.follow}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReach, bare(err))
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 400 && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests:
		return nil, nil
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %d", at, resp.StatusCode)
	case !isJSON(resp):
		return nil, nil
	}
	f, err := readFields(resp)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	return f, nil
}

// follow holds each redirect to the rules of the first address.
func (w wire) follow(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	if _, err := address(req.URL.String(), w.local); err != nil {
		return fmt.Errorf("redirected: %w", err)
	}
	if w.http.CheckRedirect != nil {
		return w.http.CheckRedirect(req, via)
	}
	return nil
}

// form posts a form with the client's credentials, and returns the resulting object; an empty body gives an
// empty object. Secrets are removed from error messages. The prover may be nil.
func (w wire) form(ctx context.Context, at string, r registration, p *prover, form url.Values) (*fields, error) {
	header := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	secrets := append([]string{r.Secret}, w.hide...)
	for _, name := range []string{
		"refresh_token", "token", "code", "code_verifier",
		"device_code", "assertion", "client_assertion", "subject_token",
	} {
		secrets = append(secrets, form.Get(name))
	}
	r.sign(form, header)
	return w.post(ctx, at, header, p, []byte(form.Encode()), secrets...)
}

// object posts a JSON object.
func (w wire) object(ctx context.Context, at string, value any) (*fields, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	return w.post(ctx, at, http.Header{"Content-Type": {"application/json"}}, nil, body)
}

func (w wire) post(ctx context.Context, at string, header http.Header, p *prover, body []byte, secrets ...string) (*fields, error) {
	if _, err := address(at, w.local); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	req.Header.Set("Accept", "application/json")
	if err := p.sign(req); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: w.http.Transport, Timeout: w.http.Timeout, CheckRedirect: stay}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errReach, bare(err))
	}
	defer resp.Body.Close()
	p.learn(resp)
	return answer(resp, secrets)
}

// stay follows no redirect.
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// answer reads the response to a post.
func answer(resp *http.Response, secrets []string) (*fields, error) {
	good := resp.StatusCode >= 200 && resp.StatusCode < 300
	if resp.StatusCode >= 300 && resp.StatusCode < 400 {
		return nil, fmt.Errorf("the server answered with a redirect (%d), which inspan does not follow", resp.StatusCode)
	}
	f, err := readFields(resp)
	if err != nil && good {
		return nil, err
	}
	if err != nil { // what it says of its failure is of no use, that it failed is
		return nil, &refusal{status: resp.StatusCode}
	}
	if code := f.text("error"); !good || code != "" {
		return nil, &refusal{resp.StatusCode, cleaned(code, secrets), cleaned(f.text("error_description"), secrets)}
	}
	return f, nil
}

// cleaned makes a server's words harmless, and removes secrets that it was sent.
func cleaned(text string, secrets []string) string {
	vault := secret.Vault{Key: []byte(rand.Text())}
	for _, s := range secrets {
		if s != "" {
			vault.Add("the request", s)
			text = strings.ReplaceAll(text, s, "…") // short ones too
		}
	}
	return words.OneLine(vault.Redact(text), maxText)
}

// isJSON reports whether a response declares JSON.
func isJSON(resp *http.Response) bool {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// readFields reads the object in a response.
func readFields(resp *http.Response) (*fields, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errReach, bare(err))
	case len(data) > maxBody:
		return nil, fmt.Errorf("%w: it is longer than %d bytes", errUnreadable, maxBody)
	case len(bytes.TrimSpace(data)) == 0:
		return &fields{}, nil
	}
	f, err := parseFields(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return f, nil
}

// bare removes the address from an error of a request, because its query may contain secrets.
func bare(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

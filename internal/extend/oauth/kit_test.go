package oauth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/oauth"
	"github.com/inspan/inspan/internal/testkit"
)

// provider is an OAuth server of oidc-provider with one protected resource.
type provider struct{ origin string }

// seen counts the requests to the server.
type seen struct {
	Granted, Refused    map[string]int
	Requests            []string
	Registered, Revoked int
}

// startProvider starts one that ends with the test.
func startProvider(t *testing.T, settings string) *provider {
	t.Helper()
	home := testkit.Dir(t)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(home, "node_modules/.bin/node22"), "testdata/provider.mjs", home, settings)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cancel()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal("the server did not start:", err)
	}
	return &provider{strings.TrimSpace(line)}
}

func (p *provider) resource() string { return p.origin + "/mcp" }

func (p *provider) seen(t *testing.T) (s seen) {
	t.Helper()
	resp, err := http.Get(p.origin + "/_seen")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// use asks the resource with a token, and returns the status, the challenge and the
// scopes.
func (p *provider) use(t *testing.T, token string) (status int, challenge, scope string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodGet, p.resource(), nil)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var said struct{ Scope string }
	_ = json.NewDecoder(resp.Body).Decode(&said)
	return resp.StatusCode, resp.Header.Get("WWW-Authenticate"), said.Scope
}

// browser is a person's browser: it follows redirects, keeps cookies, and fills forms.
type browser struct {
	client *http.Client
	left   string // where it was led to outside of the server
	page   string // the last page
}

func newBrowser(origin string) *browser {
	jar, _ := cookiejar.New(nil)
	b := &browser{client: &http.Client{Jar: jar, Timeout: testkit.Patience}}
	b.client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if !strings.HasPrefix(req.URL.String(), origin) {
			b.left = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	return b
}

// walk follows the forms of a page until it leaves the server or there is no form.
func (b *browser) walk(at string) error {
	resp, err := b.client.Get(at)
	for range 12 {
		if err != nil {
			return err
		}
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		resp.Body.Close()
		b.page = string(body)
		action, form := fill(b.page)
		if b.left != "" || action == "" {
			return nil
		}
		next, perr := resp.Request.URL.Parse(action)
		if perr != nil {
			return perr
		}
		resp, err = b.client.PostForm(next.String(), form)
	}
	return errors.New("too many forms")
}

// fill fills the first form of a page.
func fill(page string) (action string, form url.Values) {
	m := regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`).FindStringSubmatch(page)
	if m == nil {
		return "", nil
	}
	form = url.Values{}
	for _, input := range regexp.MustCompile(`<input[^>]*>`).FindAllString(m[2], -1) {
		name := attribute(input, "name")
		value := attribute(input, "value")
		if name == "login" || name == "password" {
			value = "somebody"
		}
		if name != "" {
			form.Set(name, value)
		}
	}
	if strings.Contains(m[0], `name="confirm"`) || strings.Contains(page, `value="yes"`) {
		form.Set("confirm", "yes")
	}
	return html.UnescapeString(m[1]), form
}

func attribute(tag, name string) string {
	m := regexp.MustCompile(`\b` + name + `="([^"]*)"`).FindStringSubmatch(tag)
	if m == nil {
		return ""
	}
	return html.UnescapeString(m[1])
}

// visits are the browsers that a test has opened; they end before the test does.
type visits struct {
	t  *testing.T
	wg sync.WaitGroup
}

func newVisits(t *testing.T) *visits {
	v := &visits{t: t}
	t.Cleanup(v.wg.Wait)
	return v
}

// open is a Person.Open that logs in at the server and comes back.
func (v *visits) open(origin string) func(string) error {
	return func(at string) error {
		v.wg.Go(func() {
			b := newBrowser(origin)
			if err := b.walk(at); err != nil {
				v.t.Error("browser:", err)
				return
			}
			if b.left == "" {
				v.t.Errorf("the browser was led nowhere; the last page was:\n%s", b.page)
				return
			}
			resp, err := b.client.Get(b.left)
			if err != nil {
				v.t.Error("come back:", err)
				return
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				v.t.Errorf("come back: %s", resp.Status)
			}
		})
		return nil
	}
}

// enter is a Person.Tell that enters the code on another device.
func (v *visits) enter(origin string) func(string) {
	return func(text string) {
		m := regexp.MustCompile(`open (\S+) and enter the code (\S+)`).FindStringSubmatch(text)
		if m == nil {
			return // a login that waits for it ends by its patience
		}
		v.wg.Go(func() {
			b := newBrowser(origin)
			if err := b.walk(m[1] + "?user_code=" + m[2]); err != nil {
				v.t.Error("browser:", err)
			}
		})
	}
}

// newClient has a store of its own.
func newClient(t *testing.T) *oauth.Client {
	t.Helper()
	return &oauth.Client{
		HTTP:     &http.Client{Timeout: testkit.Patience},
		Store:    &oauth.File{Dir: filepath.Join(t.TempDir(), "oauth")},
		Patience: time.Minute,
	}
}

// access is a token that is good now.
func access(ctx context.Context, c *oauth.Client, a oauth.Account) (string, error) {
	pass, err := c.Token(ctx, a)
	return pass.Token, err
}

// renewed is another token than the one that was refused.
func renewed(ctx context.Context, c *oauth.Client, a oauth.Account, refused string) (string, error) {
	pass, err := c.Renew(ctx, a, refused, "")
	return pass.Token, err
}

func account(p *provider) oauth.Account {
	return oauth.Account{Name: "mcp:peer", Resource: p.resource()}
}

// must is for calls that have to succeed.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// noSecrets fails if a text has one of the secrets.
func noSecrets(t *testing.T, text string, secrets ...string) {
	t.Helper()
	for _, s := range secrets {
		if s != "" && strings.Contains(text, s) {
			t.Errorf("a secret is in %q", text)
		}
	}
}

package oauth_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// world is a resource and an authorization server that answer as a test sets them.
type world struct {
	*httptest.Server
	resource, server map[string]any // what they say of themselves; nil means nothing
	token            map[string]any // the answer of the token endpoint
	back             url.Values     // what comes back with the browser besides code and state
	on               map[string]http.HandlerFunc

	mu    sync.Mutex
	paths []string     // asked for
	forms []url.Values // posted to the token endpoint
	heads []http.Header
	pages []url.Values // queries of the authorization endpoint
}

const prmPath = "/.well-known/oauth-protected-resource"

func newWorld(t *testing.T) *world {
	w := &world{on: map[string]http.HandlerFunc{}, back: url.Values{}}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.Close)
	w.resource = map[string]any{"resource": w.URL + "/mcp", "authorization_servers": []string{w.URL}, "scopes_supported": []string{"read"}}
	w.server = map[string]any{
		"issuer": w.URL, "authorization_endpoint": w.URL + "/authorize", "token_endpoint": w.URL + "/token",
		"registration_endpoint": w.URL + "/register", "revocation_endpoint": w.URL + "/revoke",
		"device_authorization_endpoint":    w.URL + "/device",
		"code_challenge_methods_supported": []string{"S256"},
	}
	w.token = map[string]any{
		"access_token": "access-secret-1", "refresh_token": "refresh-secret-1",
		"token_type": "Bearer", "expires_in": 3600,
	}
	return w
}

func (w *world) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	w.mu.Lock()
	w.paths = append(w.paths, req.URL.Path)
	w.mu.Unlock()
	if h := w.on[req.URL.Path]; h != nil {
		h(rw, req)
		return
	}
	switch req.URL.Path {
	case prmPath + "/mcp":
		reply(rw, w.resource)
	case "/.well-known/oauth-authorization-server":
		reply(rw, w.server)
	case "/register":
		reply(rw, map[string]any{"client_id": "registered"})
	case "/authorize":
		w.authorize(rw, req)
	case "/token":
		_ = req.ParseForm()
		w.mu.Lock()
		w.forms, w.heads = append(w.forms, req.PostForm), append(w.heads, req.Header)
		w.mu.Unlock()
		reply(rw, w.token)
	case "/revoke":
	default:
		http.NotFound(rw, req)
	}
}

func (w *world) authorize(rw http.ResponseWriter, req *http.Request) {
	q := req.URL.Query()
	w.mu.Lock()
	w.pages = append(w.pages, q)
	w.mu.Unlock()
	back := url.Values{"code": {"code-secret-1"}, "state": {q.Get("state")}}
	for name, values := range w.back {
		back[name] = values
	}
	http.Redirect(rw, req, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

// reply sends an object; none is not found.
func reply(rw http.ResponseWriter, value map[string]any) {
	if value == nil {
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(value)
}

func (w *world) account() oauth.Account {
	return oauth.Account{Name: "mcp:world", Resource: w.URL + "/mcp"}
}

// asked reports whether the server was asked for a path.
func (w *world) asked(path string) bool { return w.count(path) > 0 }

// count is how often it was.
func (w *world) count(path string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.paths {
		if p == path {
			n++
		}
	}
	return n
}

// form is the last form posted to the token endpoint.
func (w *world) form() url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.forms[len(w.forms)-1]
}

// proof is the header with a proof that was sent to the token endpoint last.
func (w *world) proof() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heads[len(w.heads)-1].Get("DPoP")
}

func (w *world) page() url.Values {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pages[len(w.pages)-1]
}

// person opens pages with a browser that goes wherever it is led.
func (w *world) person(t *testing.T) oauth.Person {
	v := newVisits(t)
	return oauth.Person{Open: func(at string) error {
		v.wg.Go(func() {
			if resp, err := http.Get(at); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
		return nil
	}}
}

// login logs in with the browser.
func (w *world) login(t *testing.T, c *oauth.Client, a oauth.Account, challenge string) error {
	t.Helper()
	return c.Login(t.Context(), a, oauth.Browser, w.person(t), challenge)
}

package oauth_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/oauth"
)

// back sends one request to the port that waits for the browser.
func back(t *testing.T, at *url.URL, request string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", at.Host)
	must(t, err)
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if h := resp.Header; h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" ||
		!strings.HasPrefix(h.Get("Content-Type"), "text/plain") {
		t.Error("headers:", h)
	}
	return resp.StatusCode, string(text)
}

// TestStrangersAtThePort sends to the port whatever a page in the browser, or another
// program, may send there. Nothing of it ends the login, and nothing of it comes back.
func TestStrangersAtThePort(t *testing.T) {
	w, c := newWorld(t), newClient(t)
	w.server["authorization_response_iss_parameter_supported"] = true
	p := oauth.Person{Open: func(page string) error {
		u, _ := url.Parse(page)
		at, _ := url.Parse(u.Query().Get("redirect_uri"))
		state := u.Query().Get("state")
		if at.Hostname() != "127.0.0.1" || len(at.Path) < len("/callback/")+20 {
			t.Error("the address can be guessed:", at)
		}
		get := func(path, query, host string) string {
			return "GET " + path + "?" + query + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"
		}
		right := "code=code-secret-1&iss=" + url.QueryEscape(w.URL) + "&state="
		for _, tt := range []struct {
			name, request string
			status        int
		}{
			{"no state", get(at.Path, "code=evil", at.Host), 400},
			{"another state", get(at.Path, right+"evil", at.Host), 400},
			{"half of the state", get(at.Path, right+state[:20], at.Host), 400},
			{"the state twice", get(at.Path, right+"evil&state="+state, at.Host), 400},
			{"a refusal without the state", get(at.Path, "error=access_denied", at.Host), 400},
			{"no query", "GET " + at.Path + " HTTP/1.1\r\nHost: " + at.Host + "\r\n\r\n", 400},
			{"a query that is broken", get(at.Path, "%zz&state="+state, at.Host), 400},
			{"another path", get("/callback", right+state, at.Host), 404},
			{"another name of this machine", get(at.Path, right+state, "evil.test"), 421},
			{"another port", get(at.Path, right+state, "127.0.0.1:1"), 421},
			{"another method", "POST " + at.Path + "?" + right + state + " HTTP/1.1\r\nHost: " + at.Host + "\r\nContent-Length: 0\r\n\r\n", 405},
			{"a script", get(at.Path, "state=<script>alert(1)</script>", at.Host), 400},
			{"the answer", get(at.Path, right+state, at.Host), 200},
			{"the answer again", get(at.Path, right+state, at.Host), 410},
		} {
			status, body := back(t, at, tt.request)
			if status != tt.status {
				t.Errorf("%s: %d", tt.name, status)
			}
			noSecrets(t, body, "script", "code-secret-1", state)
		}
		return nil
	}}
	must(t, c.Login(t.Context(), w.account(), oauth.Browser, p, ""))
	if got := w.form().Get("code"); got != "code-secret-1" {
		t.Error(got)
	}
}

// TestRegisteredRedirect comes back to an address that was registered beforehand.
func TestRegisteredRedirect(t *testing.T) {
	for redirect, want := range map[string]string{
		"":                                   "http://127.0.0.1:*/callback",
		"http://localhost/oauth/back":        "http://localhost:*/oauth/back",
		"http://127.0.0.1:0/x":               "http://127.0.0.1:*/x",
		"https://elsewhere.test/callback":    "does not lead back",
		"http://elsewhere.test/callback":     "does not lead back",
		"http://127.0.0.1.evil.test/":        "does not lead back",
		"http://127.0.0.1:1/callback?x=y":    "does not lead back",
		"http://127.0.0.1:99999999/callback": "wait for the browser",
	} {
		w, c := newWorld(t), newClient(t)
		a := w.account()
		a.ClientID, a.Redirect = "set", redirect
		err := w.login(t, c, a, "")
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			u, _ := url.Parse(w.form().Get("redirect_uri"))
			got = u.Scheme + "://" + u.Hostname() + ":*" + u.Path
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", redirect, got, want)
		}
	}
}

package netguard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
)

const secret = "correct-horse-battery-staple-0123456789"

// behind answers with the request and the gate's data about it.
func behind(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	}
	if err != nil {
		w.WriteHeader(http.StatusRequestTimeout)
		return
	}
	fmt.Fprintf(w, "%s|%s|%s", netguard.Principal(r.Header), r.Header.Get("Authorization"), body)
}

// open serves behind the gate and returns the address.
func open(t *testing.T, g *netguard.Gate) string {
	t.Helper()
	l, err := g.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	srv := netguard.Server(g.Wrap(http.HandlerFunc(behind)))
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close(); <-done; http.DefaultClient.CloseIdleConnections() })
	return l.Addr().String()
}

func send(t *testing.T, method, url, body string, header map[string][]string) (status int, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range header {
		req.Header[k] = v
		if k == "Host" {
			req.Host = v[0]
			delete(req.Header, k)
		}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 400 && res.Header.Get("Content-Type") == "application/json" {
		var e struct{ Error string }
		if json.Unmarshal(raw, &e) != nil || e.Error == "" {
			t.Errorf("%d without a reason: %s", res.StatusCode, raw)
		}
		if res.StatusCode == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Error("a 401 does not say how")
		}
	}
	return res.StatusCode, string(raw)
}

// TestEveryCheck puts each check to the test with nothing, something wrong and
// something right, the rest of the request being right.
func TestEveryCheck(t *testing.T) {
	g := &netguard.Gate{
		Who: netguard.One("ann", secret), Hosts: []string{"tunnel.example.org", "named.example.org:8443"},
		Origins: []string{"https://app.example.org"}, MaxBody: 20, Open: []string{"/card"}, Forms: []string{"/files", "/things/*/files"},
	}
	addr := open(t, g)
	_, port, _ := net.SplitHostPort(addr)
	for _, tc := range []struct {
		name, method, path, body string
		header                   map[string][]string
		want                     int
	}{
		{"all right", "POST", "/", "{}", nil, 200},
		{"no body", "GET", "/", "", nil, 200},

		{"no token", "POST", "/", "{}", map[string][]string{"Authorization": nil}, 401},
		{"wrong token", "POST", "/", "{}", map[string][]string{"Authorization": {"Bearer " + secret + "0"}}, 401},
		{"part of the token", "POST", "/", "{}", map[string][]string{"Authorization": {"Bearer " + secret[:20]}}, 401},
		{"empty token", "POST", "/", "{}", map[string][]string{"Authorization": {"Bearer "}}, 401},
		{"token without a scheme", "POST", "/", "{}", map[string][]string{"Authorization": {secret}}, 401},
		{"another scheme", "POST", "/", "{}", map[string][]string{"Authorization": {"Basic " + secret}}, 401},
		{"two tokens", "POST", "/", "{}", map[string][]string{"Authorization": {"Bearer " + secret, "Bearer x"}}, 401},
		{"token in the address", "POST", "/?access_token=" + secret + "&token=" + secret, "{}", map[string][]string{"Authorization": nil}, 401},
		{"scheme in small letters", "POST", "/", "{}", map[string][]string{"Authorization": {"bearer " + secret}}, 200},

		{"token as a key", "POST", "/", "{}", map[string][]string{"Authorization": nil, "X-Api-Key": {secret}}, 200},
		{"wrong key", "POST", "/", "{}", map[string][]string{"Authorization": nil, "X-Api-Key": {secret + "0"}}, 401},
		{"empty key", "POST", "/", "{}", map[string][]string{"Authorization": nil, "X-Api-Key": {""}}, 401},
		{"token and key", "POST", "/", "{}", map[string][]string{"X-Api-Key": {secret}}, 401},

		{"no body and no type", "POST", "/", "", map[string][]string{"Content-Type": nil}, 200},
		{"body without a type", "POST", "/", "{}", map[string][]string{"Content-Type": nil}, 415},

		{"form", "POST", "/files", "--x--", map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}}, 200},
		{
			"form for a path with any name", "POST", "/things/a/files", "--x--",
			map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}},
			200,
		},
		{
			"form for a path with more names", "POST", "/things/a/b/files", "--x--",
			map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}},
			415,
		},
		{"form for another path", "POST", "/", "--x--", map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}}, 415},
		{"text for a path with forms", "POST", "/files", "x", map[string][]string{"Content-Type": {"text/plain"}}, 415},

		{"no token for what is open", "GET", "/card", "", map[string][]string{"Authorization": nil}, 200},
		{"wrong token for what is open", "GET", "/card", "", map[string][]string{"Authorization": {"Bearer x"}}, 200},
		{"no token below what is open", "GET", "/card/", "", map[string][]string{"Authorization": nil}, 401},
		{"no token to change what is open", "POST", "/card", "{}", map[string][]string{"Authorization": nil}, 401},
		{
			"what is open for another host", "GET", "/card", "",
			map[string][]string{"Authorization": nil, "Host": {"evil.example.org:" + port}},
			403,
		},
		{
			"what is open for pages of others", "GET", "/card", "",
			map[string][]string{"Authorization": nil, "Sec-Fetch-Site": {"cross-site"}},
			403,
		},

		{"host of this machine", "POST", "/", "{}", map[string][]string{"Host": {"localhost:" + port}}, 200},
		{"host in capitals", "POST", "/", "{}", map[string][]string{"Host": {"LOCALHOST:" + port}}, 200},
		{"host in version 6", "POST", "/", "{}", map[string][]string{"Host": {"[::1]:" + port}}, 200},
		{"host that is allowed", "POST", "/", "{}", map[string][]string{"Host": {"tunnel.example.org"}}, 200},
		{"host that is allowed with its port", "POST", "/", "{}", map[string][]string{"Host": {"named.example.org:8443"}}, 200},
		{"host that is allowed with a port only", "POST", "/", "{}", map[string][]string{"Host": {"named.example.org"}}, 403},
		{"host of another", "POST", "/", "{}", map[string][]string{"Host": {"evil.example.org:" + port}}, 403},
		{"host that ends like ours", "POST", "/", "{}", map[string][]string{"Host": {"xlocalhost:" + port}}, 403},
		{"host with a dot", "POST", "/", "{}", map[string][]string{"Host": {"localhost.:" + port}}, 403},
		{"host with another port", "POST", "/", "{}", map[string][]string{"Host": {"localhost:1"}}, 403},
		{"host without a port", "POST", "/", "{}", map[string][]string{"Host": {"localhost"}}, 403},
		{"host that is an address of all", "POST", "/", "{}", map[string][]string{"Host": {"0.0.0.0:" + port}}, 403},

		{"own origin", "POST", "/", "{}", map[string][]string{"Origin": {"http://" + addr}}, 200},
		{"origin that is allowed", "POST", "/", "{}", map[string][]string{"Origin": {"https://app.example.org"}}, 200},
		{"origin of another", "POST", "/", "{}", map[string][]string{"Origin": {"https://evil.example.org"}}, 403},
		{"own origin by another name", "POST", "/", "{}", map[string][]string{"Origin": {"http://localhost:" + port}}, 403},
		{"own origin with another scheme", "POST", "/", "{}", map[string][]string{"Origin": {"https://" + addr}}, 403},
		{
			"own origin through a proxy with TLS", "POST", "/", "{}",
			map[string][]string{"Host": {"tunnel.example.org"}, "Origin": {"https://tunnel.example.org"}},
			200,
		},
		{"origin that begins alike", "POST", "/", "{}", map[string][]string{"Origin": {"https://app.example.org.evil.example"}}, 403},
		{"origin null", "POST", "/", "{}", map[string][]string{"Origin": {"null"}}, 403},
		{"empty origin", "POST", "/", "{}", map[string][]string{"Origin": {""}}, 403},
		{"two origins", "POST", "/", "{}", map[string][]string{"Origin": {"https://app.example.org", "https://evil.example.org"}}, 403},
		{"origin, wrong token", "POST", "/", "{}", map[string][]string{"Origin": {"https://evil.example.org"}, "Authorization": nil}, 403},

		{"same site", "GET", "/", "", map[string][]string{"Sec-Fetch-Site": {"same-site"}}, 403},
		{"cross site", "GET", "/", "", map[string][]string{"Sec-Fetch-Site": {"cross-site"}}, 403},
		{"same origin", "GET", "/", "", map[string][]string{"Sec-Fetch-Site": {"same-origin"}}, 200},
		{"typed", "GET", "/", "", map[string][]string{"Sec-Fetch-Site": {"none"}}, 200},
		{"both sites", "GET", "/", "", map[string][]string{"Sec-Fetch-Site": {"none", "cross-site"}}, 403},
		{"cross site that is allowed", "POST", "/", "{}", map[string][]string{
			"Sec-Fetch-Site": {"cross-site"},
			"Origin":         {"https://app.example.org"},
		}, 200},

		{"no type", "POST", "/", "{}", map[string][]string{"Content-Type": nil}, 415},
		{"a form", "POST", "/", "{}", map[string][]string{"Content-Type": {"application/x-www-form-urlencoded"}}, 415},
		{"a form of parts", "POST", "/", "{}", map[string][]string{"Content-Type": {"multipart/form-data; boundary=x"}}, 415},
		{"JSON as text", "POST", "/", "{}", map[string][]string{"Content-Type": {"text/plain; application/json"}}, 415},
		{"two types", "POST", "/", "{}", map[string][]string{"Content-Type": {"application/json", "text/plain"}}, 415},
		{"a type that begins alike", "POST", "/", "{}", map[string][]string{"Content-Type": {"application/jsonx"}}, 415},
		{"another charset", "POST", "/", "{}", map[string][]string{"Content-Type": {"application/json; charset=utf-7"}}, 415},
		{"with a charset", "POST", "/", "{}", map[string][]string{"Content-Type": {"application/json; charset=UTF-8"}}, 200},
		{"a body where none is usual", "DELETE", "/", "{}", map[string][]string{"Content-Type": {"text/plain"}}, 415},
		{"an empty body where one is usual", "POST", "/", "", map[string][]string{"Content-Type": {"text/plain"}}, 415},
		{"type in capitals", "PUT", "/", "{}", map[string][]string{"Content-Type": {"Application/JSON"}}, 200},

		{"as large as may be", "POST", "/", strings.Repeat("x", 20), nil, 200},
		{"too large", "POST", "/", strings.Repeat("x", 21), nil, 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			header := map[string][]string{"Authorization": {"Bearer " + secret}, "Content-Type": {"application/json"}}
			for k, v := range tc.header {
				if header[k] = v; v == nil {
					delete(header, k)
				}
			}
			status, text := send(t, tc.method, "http://"+addr+tc.path, tc.body, header)
			if status != tc.want {
				t.Errorf("%d, want %d: %s", status, tc.want, text)
			}
			want := "ann||" + tc.body
			if tc.path == "/card" {
				want = "||" // who reads what is open is nobody
			}
			if status == 200 && text != want {
				t.Errorf("behind the gate: %q, want %q", text, want)
			}
		})
	}
}

// TestWithoutToken checks that the other checks stay, and that a client can't choose its own name.
func TestWithoutToken(t *testing.T) {
	addr := open(t, &netguard.Gate{})
	typed := map[string][]string{"Content-Type": {"application/json"}, netguard.PrincipalHeader: {"root"}}
	if status, text := send(t, "POST", "http://"+addr, "{}", typed); status != 200 || text != "||{}" {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := send(t, "POST", "http://"+addr, "{}", map[string][]string{
		"Content-Type": {"application/json"},
		"Host":         {"evil.example.org"},
	}); status != 403 {
		t.Errorf("a foreign host: %d", status)
	}
	if principal, ok := netguard.One("ann", "")(""); ok {
		t.Error("an empty token lets in", principal)
	}
}

// TestOtherAddresses checks that a name of this machine is one only for who is on it.
func TestOtherAddresses(t *testing.T) {
	for _, tc := range []struct {
		local, host string
		want        int
	}{
		{"192.0.2.7:8080", "192.0.2.7:8080", 200},
		{"192.0.2.7:8080", "localhost:8080", 403},
		{"192.0.2.7:8080", "192.0.2.8:8080", 403},
		{"[2001:db8::1]:8080", "[2001:db8::1]:8080", 200},
		{"127.0.0.1:80", "localhost", 200},
		{"127.0.0.1:80", "[::1]", 200},
		{"127.0.0.1:80", "localhost:80", 200},
		{"127.0.0.1:8080", "localhost", 403},
		{"127.0.0.1:80", "localhost:443", 403},
		{"", "localhost:8080", 403},
	} {
		req := httptest.NewRequest(http.MethodGet, "/", nil)
		req.Host = tc.host
		if tc.local != "" {
			addr, err := net.ResolveTCPAddr("tcp", tc.local)
			if err != nil {
				t.Fatal(err)
			}
			req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(addr)))
		}
		res := httptest.NewRecorder()
		(&netguard.Gate{}).Wrap(http.HandlerFunc(behind)).ServeHTTP(res, req)
		if res.Code != tc.want {
			t.Errorf("%s at %s: %d, want %d", tc.host, tc.local, res.Code, tc.want)
		}
	}
}

// raw sends bytes and returns the status line of the answer.
func raw(t *testing.T, addr string, send ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() //nolint:errcheck // it was only a test of what comes back
	for _, text := range send {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// TestBodies checks that a body is bounded also if it does not say how large it is, and that one which never comes does
// not hold anything up.
func TestBodies(t *testing.T) {
	addr := open(t, &netguard.Gate{MaxBody: 20})
	head := "POST / HTTP/1.1\r\nHost: " + addr + "\r\nContent-Type: application/json\r\n"
	if got := raw(t, addr, head+"Transfer-Encoding: chunked\r\n\r\n", "f\r\n012345678901234\r\n",
		"f\r\n012345678901234\r\n0\r\n\r\n"); !strings.Contains(got, "413") {
		t.Errorf("in pieces: %s", got)
	}
	hasty := open(t, &netguard.Gate{MaxBody: 20, BodyTime: 100 * time.Millisecond})
	if got := raw(t, hasty, strings.Replace(head, addr, hasty, 1)+"Content-Length: 10\r\n\r\n", "{"); !strings.Contains(got, "408") {
		t.Errorf("a slow one: %s", got)
	}
	if got := raw(t, addr, "POST / HTTP/1.1\r\nHost: "+addr+"\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n",
		"0\r\n\r\n"); !strings.Contains(got, "415") {
		t.Errorf("of a form: %s", got)
	}
	if got := raw(t, addr, "GET / HTTP/1.1\r\nHost: "+addr+"\r\nX: "+strings.Repeat("x", 80<<10)+"\r\n\r\n"); !strings.Contains(got, "431") {
		t.Errorf("a large header: %s", got)
	}
}

// TestAnswersMayTakeLong checks that the time for a body does not end the answer.
func TestAnswersMayTakeLong(t *testing.T) {
	const within = 2 * time.Second
	g := &netguard.Gate{BodyTime: within}
	ended := make(chan error, 1)
	slow := func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		if err == nil {
			wait := time.NewTimer(2 * within)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
		ended <- err
	}
	srv := httptest.NewServer(g.Wrap(http.HandlerFunc(slow)))
	defer srv.Close()
	status, text := send(t, "POST", srv.URL, "{}", map[string][]string{"Content-Type": {"application/json"}})
	if err := <-ended; err != nil || status != 200 {
		t.Errorf("%d %s: %v", status, text, err)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestListen(t *testing.T) {
	token := &netguard.Gate{Who: netguard.One("ann", secret)}
	for _, tc := range []struct {
		addr   string
		gate   *netguard.Gate
		others bool
		ok     bool
	}{
		{"127.0.0.1:0", &netguard.Gate{}, false, true},
		{"localhost:0", &netguard.Gate{}, false, true},
		{"127.3.2.1:0", &netguard.Gate{}, false, true},
		{"0.0.0.0:0", &netguard.Gate{}, false, false},
		{"0.0.0.0:0", &netguard.Gate{}, true, false},
		{"0.0.0.0:0", token, false, false},
		{"0.0.0.0:0", token, true, true},
		{":0", token, false, false},
		{"[::]:0", &netguard.Gate{}, false, false},
	} {
		l, err := tc.gate.Listen(t.Context(), tc.addr, tc.others)
		if (err == nil) != tc.ok || err != nil && !errors.Is(err, netguard.ErrOpen) {
			t.Errorf("%s, others %v, token %v: %v", tc.addr, tc.others, tc.gate.Who != nil, err)
		}
		if err == nil {
			_ = l.Close()
		}
	}
	for _, addr := range []string{"", "127.0.0.1", "no-such-host.invalid:0", "127.0.0.1:x"} {
		if l, err := token.Listen(t.Context(), addr, true); err == nil || errors.Is(err, netguard.ErrOpen) {
			t.Errorf("%q: %v %v", addr, l, err)
		}
	}
}

// TestServe checks that a server which ends lets those finish that it has, and takes no more.
func TestServe(t *testing.T) {
	g := &netguard.Gate{}
	l, err := g.Listen(t.Context(), "127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	inside, release := make(chan struct{}), make(chan struct{})
	h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(inside)
		<-release
		fmt.Fprint(w, "finished")
	})
	served, answered := make(chan error, 1), make(chan string, 1)
	go func() { served <- g.Serve(ctx, l, h, func() { close(release) }) }()
	url := "http://" + l.Addr().String()
	go func() {
		res, err := http.Get(url) //nolint:noctx // it ends with the server
		if err != nil {
			answered <- err.Error()
			return
		}
		defer res.Body.Close() //nolint:errcheck // it is only read
		text, _ := io.ReadAll(res.Body)
		answered <- string(text)
	}()
	<-inside
	cancel()
	if text := <-answered; text != "finished" {
		t.Error(text)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("it still listens")
	}
	if err := g.Serve(t.Context(), l, h, nil); err == nil {
		t.Error("a listener that is closed")
	}
}

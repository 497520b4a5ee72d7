package netguard_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit"
)

// box is the view of a boxed process: a socket.
type box struct {
	t      *testing.T
	socket string
	mu     sync.Mutex
	denied []string
	stop   func()
}

// newBox starts a proxy that allows *.test: all of these hosts are 127.0.0.1, except for inner.test, which is private.
func newBox(t *testing.T, p *netguard.Proxy) *box {
	t.Helper()
	b := &box{t: t, socket: filepath.Join(t.TempDir(), "s")}
	l, err := net.Listen("unix", b.socket)
	if err != nil {
		t.Fatal(err)
	}
	hosts := netguard.Hosts{"*.test", "8.8.8.8:1"}
	p.Guard = local()
	p.Guard.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		if host == "inner.test" {
			return always("10.0.0.1")(ctx, host)
		}
		return always("127.0.0.1")(ctx, host)
	}
	p.Guard.Allow = func(host string, port int) error {
		if !hosts.Match(host, port) {
			return errors.New("it is not on the list")
		}
		return nil
	}
	p.Refused = func(host, _ string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.denied = append(b.denied, host)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.Serve(ctx, l) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	t.Cleanup(b.stop)
	return b
}

func (b *box) refusals() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.denied)
}

func (b *box) dial() *net.UnixConn {
	b.t.Helper()
	conn, err := net.Dial("unix", b.socket)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testkit.Patience)); err != nil {
		b.t.Fatal(err)
	}
	return conn.(*net.UnixConn)
}

// answer is the head of a proxy's answer, and its body unless a tunnel is open.
type answer struct {
	status int
	body   string
}

// say sends text and returns the connection and the answer.
func (b *box) say(text string) (*net.UnixConn, *bufio.Reader, answer) {
	b.t.Helper()
	conn := b.dial()
	fmt.Fprint(conn, text)
	r := bufio.NewReader(conn)
	method, _, _ := strings.Cut(text, " ")
	resp, err := http.ReadResponse(r, &http.Request{Method: method})
	if err != nil {
		b.t.Fatalf("%q: %v", text, err)
	}
	defer resp.Body.Close()
	if method == http.MethodConnect && resp.StatusCode == http.StatusOK {
		return conn, r, answer{status: resp.StatusCode}
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Errorf("%q: %v", text, err)
	}
	return conn, r, answer{resp.StatusCode, string(data)}
}

// client is an ordinary program that honours the proxy variables.
func (b *box) client(roots *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:             http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", b.socket) },
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots},
	}}
}

func (b *box) get(address string, roots *x509.CertPool) (int, string, error) {
	resp, err := b.client(roots).Get(address)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestProxyForwards(t *testing.T) {
	b := newBox(t, &netguard.Proxy{})
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		for _, name := range []string{"Proxy-Authorization", "Proxy-Connection", "X-Forwarded-For", "Upgrade"} {
			if got := r.Header.Get(name); got != "" {
				t.Errorf("%s: %s went on", name, got)
			}
		}
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s", r.Method, r.Host, r.URL, data)
	})
	req, err := http.NewRequest(http.MethodPut, at(s, "App.test")+"/a%2Fb?q=1", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Proxy-Authorization", "secret")
	req.Header.Set("Upgrade", "websocket")
	req.Header.Set("Connection", "upgrade")
	req.Header.Set("Expect", "100-continue")
	resp, err := b.client(nil).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	want := "PUT " + strings.TrimPrefix(at(s, "app.test"), "http://") + " /a%2Fb?q=1 body"
	if resp.StatusCode != http.StatusTeapot || string(data) != want {
		t.Errorf("%d %s, want %s", resp.StatusCode, data, want)
	}
	if got := b.refusals(); len(got) > 0 {
		t.Errorf("refused %v", got)
	}
}

func TestProxyTunnels(t *testing.T) {
	b := newBox(t, &netguard.Proxy{})
	s := httptest.NewTLSServer(http.HandlerFunc(redirector))
	t.Cleanup(s.Close)
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	if _, _, err := b.get(at(s, "example.com")+"/0", roots); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("a host that is not on the list: %v", err)
	}
	client := b.client(roots)
	client.Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // what its certificate says
	resp, err := client.Get(at(s, "app.test") + "/0")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, _ := io.ReadAll(resp.Body); !strings.HasPrefix(string(data), "arrived at app.test") {
		t.Errorf("%s", data)
	}
}

func TestProxyRefuses(t *testing.T) {
	s := hello(t)
	port := s.URL[strings.LastIndexByte(s.URL, ':')+1:]
	const head = " HTTP/1.1\r\nHost: app.test\r\n\r\n"
	for _, tt := range []struct {
		request string
		status  int
		want    string // in the answer
		refused string // what Refused hears
	}{
		{"GET http://app.test:PORT/", 200, "hello from app.test", ""},
		{"GET http://APP.test.:PORT/", 200, "hello from app.test", ""},
		{"GET http://evil.example:PORT/", 403, "the sandbox blocked evil.example; allow with --allow 'network(evil.example)'", "evil.example"},
		{"GET http://evil.example:PORT/", 403, "The network argument of a call asks for it", "evil.example"},
		{"GET http://apptest:PORT/", 403, "not on the list", "apptest"},
		{"GET http://test:PORT/", 403, "not on the list", "test"},
		{"GET http://app.test.evil.example:PORT/", 403, "not on the list", "app.test.evil.example"},
		{"GET http://inner.test/", 403, "10.0.0.1 is a private address", "inner.test"},
		{"GET http://127.0.0.1:PORT/", 403, "not on the list", "127.0.0.1"},
		{"GET http://2130706433:PORT/", 403, "number", "2130706433:PORT"},
		{"GET http://app.test@evil.example/", 403, "user information", "evil.example"},
		{"GET http://app.test%00.evil.example/", 400, "", ""},
		{"GET http://app.test\x00.evil.example/", 400, "", ""},
		{"GET ftp://app.test/", 403, "scheme", "app.test"},
		{"GET https://app.test/", 400, "CONNECT", ""},
		{"GET /", 400, "proxy", ""},
		{"OPTIONS *", 400, "proxy", ""},
		{"GET http://app.test:1/", 502, "refused", ""},
		{"CONNECT app.test:PORT", 200, "", ""},
		{"CONNECT APP.TEST.:PORT", 200, "", ""},
		{"CONNECT evil.example:443", 403, "The network argument of a call asks for it", "evil.example"},
		{"CONNECT inner.test:443", 403, "10.0.0.1 is a private address", "inner.test"},
		{"CONNECT [::1]:PORT", 403, "not on the list", "::1"},
		{"CONNECT 8.8.8.8:443", 403, "not on the list", "8.8.8.8"},
		{"CONNECT 127.1:PORT", 403, "number", "127.1:PORT"},
		{"CONNECT 0x7f000001:PORT", 403, "number", "0x7f000001:PORT"},
		{"CONNECT app.test", 403, "HOST:PORT", "app.test"},
		{"CONNECT app.test:", 403, "HOST:PORT", "app.test:"},
		{"CONNECT app.test:PORT/path", 403, "HOST:PORT", "app.test:PORT/path"},
		{"CONNECT app.test:PORT?q", 403, "HOST:PORT", "app.test:PORT?q"},
		{"CONNECT user@app.test:PORT", 403, "user information", "...@app.test:PORT"},
		{"CONNECT ａpp.test:PORT", 403, "xn--", "ａpp.test:PORT"},
		{"CONNECT /var/run/docker.sock", 403, "host", "/var/run/docker.sock"},
		{"CONNECT app.test:0", 403, "port", "app.test:0"},
		{"CONNECT app.test:1", 502, "refused", ""},
	} {
		b := newBox(t, &netguard.Proxy{})
		full := func(text string) string { return strings.ReplaceAll(text, "PORT", port) }
		_, _, got := b.say(full(tt.request) + head)
		if got.status != tt.status || !strings.Contains(got.body, tt.want) {
			t.Errorf("%q: %d %s, want %d and %q", tt.request, got.status, got.body, tt.status, tt.want)
		}
		b.stop()
		if got := strings.Join(b.refusals(), " "); got != full(tt.refused) {
			t.Errorf("%q: refused %q, want %q", tt.request, got, full(tt.refused))
		}
	}
}

// echo answers with the data it got once its client is done, and then with more than fits into the buffers on the way.
func echo(t *testing.T, extra int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = conn.Close() }()
				data, err := io.ReadAll(conn)
				if err == nil {
					_, _ = conn.Write(append(data, make([]byte, extra)...))
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()[strings.LastIndexByte(l.Addr().String(), ':'):]
}

// TestHalfClose sends bytes together with the request, ends its direction, and
// still gets the whole answer.
func TestHalfClose(t *testing.T) {
	const extra = 4 << 20
	port := echo(t, extra)
	b := newBox(t, &netguard.Proxy{})
	conn, r, got := b.say("CONNECT app.test" + port + " HTTP/1.1\r\nHost: app.test\r\n\r\n\x16\x03early")
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	fmt.Fprint(conn, " and late")
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if want := "\x16\x03early and late"; err != nil || len(data) != len(want)+extra || !strings.HasPrefix(string(data), want) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}

func TestIdleTunnelEnds(t *testing.T) {
	port := echo(t, 0)
	b := newBox(t, &netguard.Proxy{Idle: 50 * time.Millisecond})
	_, r, got := b.say("CONNECT app.test" + port + " HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	if data, err := io.ReadAll(r); err != nil || len(data) > 0 {
		t.Errorf("%q, %v", data, err)
	}
}

// TestIdleHalfTunnelEnds has a client that is done and a host that stays silent.
func TestIdleHalfTunnelEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	b := newBox(t, &netguard.Proxy{Idle: 50 * time.Millisecond})
	port := l.Addr().(*net.TCPAddr).Port
	conn, r, got := b.say(fmt.Sprintf("CONNECT app.test:%d HTTP/1.1\r\nHost: x\r\n\r\n", port))
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); err != nil || len(data) > 0 {
		t.Errorf("%q, %v", data, err)
	}
}

// TestIdleRequestEnds has a host that never answers.
func TestIdleRequestEnds(t *testing.T) {
	port := echo(t, 0)
	b := newBox(t, &netguard.Proxy{Idle: 50 * time.Millisecond})
	if status, text, err := b.get("http://app.test"+port+"/", nil); err != nil || status != http.StatusBadGateway {
		t.Errorf("%d %s %v", status, text, err)
	}
}

// TestSlowIsNotIdle has a host that takes longer than the idle time, but is
// never silent for so long.
func TestSlowIsNotIdle(t *testing.T) {
	const idle, parts = 3 * time.Second, 12
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		tick := time.NewTicker(idle / 8)
		defer tick.Stop()
		for range parts {
			<-tick.C
			fmt.Fprint(w, "x")
			w.(http.Flusher).Flush()
		}
	})
	b := newBox(t, &netguard.Proxy{Idle: idle})
	var request sync.WaitGroup
	defer request.Wait()
	request.Go(func() {
		if _, text, err := b.get(at(s, "app.test"), nil); err != nil || len(text) != parts {
			t.Errorf("request: %q, %v", text, err)
		}
	})
	target := strings.TrimPrefix(at(s, "app.test"), "http://")
	conn, r, got := b.say("CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n\r\n")
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	fmt.Fprint(conn, "GET / HTTP/1.0\r\n\r\n")
	if data, err := io.ReadAll(r); err != nil || strings.Count(string(data), "x") < parts {
		t.Errorf("tunnel: %q, %v", data, err)
	}
}

// TestServeWaits has a request that is still being refused when the proxy stops.
// What it writes may be read afterwards, which the race detector checks too.
func TestServeWaits(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	finished := 0
	p := &netguard.Proxy{Refused: func(string, string) {
		cancel()
		<-time.After(100 * time.Millisecond) // time for a Serve that does not wait to return
		finished++
	}}
	conn, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	fmt.Fprint(conn, "CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n")
	if err := p.Serve(ctx, l); err != nil || finished != 1 {
		t.Errorf("finished %d, %v", finished, err)
	}
}

// TestStopCutsTunnels checks that Serve ends although a tunnel, a request and a silent connection are open, and that
// nothing is left behind.
func TestStopCutsTunnels(t *testing.T) {
	port := echo(t, 0)
	b := newBox(t, &netguard.Proxy{})
	silent := b.dial()
	_, r, got := b.say("CONNECT app.test" + port + " HTTP/1.1\r\nHost: app.test\r\n\r\n")
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	waiting := b.dial()
	fmt.Fprintf(waiting, "GET http://app.test%s/ HTTP/1.1\r\nHost: app.test\r\n\r\n", port)
	b.stop()
	for _, end := range []io.Reader{silent, r} {
		if data, _ := io.ReadAll(end); len(data) > 0 {
			t.Errorf("%q", data)
		}
	}
	if _, err := net.Dial("unix", b.socket); err == nil {
		t.Error("the socket still answers")
	}
}

func TestServeEnds(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := (&netguard.Proxy{}).Serve(done, l); err != nil {
		t.Errorf("a context that is done: %v", err)
	}
	if err := (&netguard.Proxy{}).Serve(context.Background(), l); err == nil {
		t.Error("a listener that is closed: want an error")
	}
}

// TestProxyZero has no guard of its own and reaches no local host.
func TestProxyZero(t *testing.T) {
	s := hello(t)
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- (&netguard.Proxy{}).Serve(ctx, l) }()
	b := &box{t: t, socket: l.Addr().String()}
	if status, text, err := b.get(s.URL, nil); err != nil || status != 403 || !strings.Contains(text, "loopback") {
		t.Errorf("%d %s %v", status, text, err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// TestMaxConns checks that connections over the number are closed, and that a place is free again when one ends.
func TestMaxConns(t *testing.T) {
	port := echo(t, 0)
	b := newBox(t, &netguard.Proxy{MaxConns: 1})
	connect := "CONNECT app.test" + port + " HTTP/1.1\r\nHost: app.test\r\n\r\n"
	first, r, got := b.say(connect)
	if got.status != http.StatusOK {
		t.Fatal(got)
	}
	if data, _ := io.ReadAll(b.dial()); len(data) > 0 {
		t.Errorf("a second connection got %q", data)
	}
	_ = first.CloseWrite()
	_, _ = io.ReadAll(r)
	for try := 0; ; try++ { // the place is free a moment after its connection ended
		conn := b.dial()
		fmt.Fprint(conn, connect)
		line, _ := bufio.NewReader(conn).ReadString('\n')
		if strings.Contains(line, "200") {
			break
		}
		if try == 10000 {
			t.Fatal("the place is not free again")
		}
	}
}

// TestSwitchingProtocols has a host that takes over a connection unasked.
func TestSwitchingProtocols(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		fmt.Fprint(conn, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
	})
	b := newBox(t, &netguard.Proxy{})
	if status, text, err := b.get(at(s, "app.test"), nil); err != nil || status != 502 || !strings.Contains(text, "app.test") {
		t.Errorf("%d %s %v", status, text, err)
	}
}

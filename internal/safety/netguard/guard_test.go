package netguard_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan/internal/safety/netguard"
)

func TestMain(m *testing.M) { testkit.Main(m) }

func loopback(text string) []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix(text)} }

// always resolves every name to the addresses.
func always(addrs ...string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) ([]netip.Addr, error) {
		var out []netip.Addr
		for _, a := range addrs {
			out = append(out, netip.MustParseAddr(a))
		}
		return out, nil
	}
}

// at replaces the host in the address of a server.
func at(s *httptest.Server, host string) string {
	scheme, rest, _ := strings.Cut(s.URL, "://")
	return scheme + "://" + host + rest[strings.LastIndexByte(rest, ':'):]
}

func get(g *netguard.Guard, address string) (string, error) {
	resp, err := g.Client().Get(address)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

func refused(t *testing.T, err error, host, reason string) {
	t.Helper()
	var r *netguard.RefusedError
	if !errors.As(err, &r) || r.Host != host || !strings.Contains(err.Error(), reason) {
		t.Errorf("error %v, want a refusal of %s that says %q", err, host, reason)
	}
}

func hello(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from "+r.Host) }))
	t.Cleanup(s.Close)
	return s
}

// TestLocal checks that a refused address works once a person opens the range.
func TestLocal(t *testing.T) {
	s := hello(t)
	for _, host := range []string{"127.0.0.1", "[::ffff:127.0.0.1]", "app.test"} {
		shut := &netguard.Guard{Resolve: always("127.0.0.1")}
		_, err := get(shut, at(s, host))
		refused(t, err, strings.Trim(strings.Replace(host, "::ffff:", "", 1), "[]"), "loopback")
		open := &netguard.Guard{Resolve: always("127.0.0.1"), Local: loopback("127.0.0.1/32")}
		if got, err := get(open, at(s, host)); err != nil || !strings.HasPrefix(got, "hello") {
			t.Errorf("%s: %q, %v", host, got, err)
		}
	}
	other := &netguard.Guard{Local: loopback("127.0.0.2/32")}
	_, err := get(other, s.URL)
	refused(t, err, "127.0.0.1", "loopback")
}

// TestSystemResolver uses the real one for the one name that every machine has.
func TestSystemResolver(t *testing.T) {
	s := hello(t)
	_, err := get(&netguard.Guard{}, at(s, "localhost"))
	refused(t, err, "localhost", "loopback")
	open := &netguard.Guard{Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
	if got, err := get(open, at(s, "LOCALHOST")); err != nil || !strings.HasPrefix(got, "hello from localhost:") {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOwnAddresses(t *testing.T) {
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Skip("no interfaces", err)
	}
	for _, a := range own {
		if _, err := (&netguard.Guard{}).Addresses(context.Background(),
			netip.MustParsePrefix(a.String()).Addr().WithZone("").String(), 80); err == nil {
			t.Errorf("%s may be dialled", a)
		}
	}
	broken := &netguard.Guard{Own: func() ([]netip.Addr, error) { return nil, errors.New("no table") }}
	_, err = broken.Addresses(context.Background(), "8.8.8.8", 80)
	refused(t, err, "8.8.8.8", "no table")
	mine := func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil }
	_, err = (&netguard.Guard{Own: mine}).Addresses(context.Background(), "8.8.8.8", 80)
	refused(t, err, "8.8.8.8", "this machine")
	if _, err := (&netguard.Guard{Own: mine, Local: loopback("8.8.8.8/32")}).Addresses(context.Background(), "8.8.8.8", 80); err != nil {
		t.Error(err)
	}
}

// TestRebinding lets a name change its answer after the first look-up: only one
// is made for a connection, and the next connection is judged by the next.
func TestRebinding(t *testing.T) {
	s := hello(t)
	names := &resolver{answers: []string{"127.0.0.1", "127.0.0.2"}}
	g := &netguard.Guard{Resolve: names.resolve, Local: loopback("127.0.0.1/32")}
	if got, err := get(g, at(s, "rebind.test")); err != nil || got == "" {
		t.Fatalf("%q, %v", got, err)
	}
	if diff := cmp.Diff([]string{"rebind.test"}, names.asked); diff != "" {
		t.Error(diff)
	}
	_, err := get(g, at(s, "rebind.test"))
	refused(t, err, "rebind.test", "127.0.0.2")
}

// TestControl has a table of own addresses that changes between the look at an
// answer and the dialling, so that only the check of the last address sees it.
func TestControl(t *testing.T) {
	calls := 0
	g := &netguard.Guard{Timeout: time.Second, Own: func() ([]netip.Addr, error) {
		if calls++; calls == 1 {
			return nil, nil
		}
		return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
	}}
	_, err := g.DialContext(context.Background(), "tcp", "8.8.8.8:9")
	refused(t, err, "8.8.8.8", "this machine")
}

func TestMixedAnswers(t *testing.T) {
	s := hello(t)
	g := &netguard.Guard{Resolve: always("10.0.0.1", "127.0.0.1", "169.254.169.254"), Local: loopback("127.0.0.1/32")}
	if got, err := get(g, at(s, "mixed.test")); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
	// The first address that is allowed does not answer, the second does.
	g = &netguard.Guard{Resolve: always("127.0.0.3", "127.0.0.1"), Local: loopback("127.0.0.0/8")}
	if got, err := get(g, at(s, "two.test")); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
	g.Resolve = always("127.0.0.3", "127.0.0.4")
	if _, err := get(g, at(s, "down.test")); err == nil || !strings.Contains(err.Error(), "127.0.0.3") ||
		!strings.Contains(err.Error(), "down.test") {
		t.Errorf("a host that is down: %v", err)
	}
}

// TestAllow checks that the list is asked for each connection, before the look-up, with the canonical name, and that no
// connection is used again without.
func TestAllow(t *testing.T) {
	s := hello(t)
	names := &resolver{answers: []string{"127.0.0.1", "127.0.0.1"}}
	var asked []string
	stop := errors.New("not on the list")
	var verdict error
	g := &netguard.Guard{Resolve: names.resolve, Local: loopback("127.0.0.0/8"), Allow: func(host string, port int) error {
		asked = append(asked, net.JoinHostPort(host, strconv.Itoa(port)))
		return verdict
	}}
	client := g.Client()
	fetch := func() error {
		resp, err := client.Get(at(s, "APP.test."))
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	if err := fetch(); err != nil {
		t.Fatal(err)
	}
	verdict = stop
	err := fetch()
	refused(t, err, "app.test", "not on the list")
	if !errors.Is(err, stop) {
		t.Errorf("%v does not wrap what Allow said", err)
	}
	want := strings.TrimPrefix(at(s, "app.test"), "http://")
	if diff := cmp.Diff([]string{want, want}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"app.test"}, names.asked); diff != "" {
		t.Errorf("looked up: %s", diff)
	}
}

// TestAllowHearsOneSpelling dials as a caller without a client would.
func TestAllowHearsOneSpelling(t *testing.T) {
	for _, host := range []string{"APP.test", "app.test.", "App.Test."} {
		var heard string
		g := &netguard.Guard{Resolve: always("10.0.0.1"), Allow: func(host string, _ int) error {
			heard = host
			return nil
		}}
		_, err := g.DialContext(context.Background(), "tcp", host+":80")
		refused(t, err, "app.test", "private")
		if heard != "app.test" {
			t.Errorf("%s: asked about %q", host, heard)
		}
	}
}

func TestDialBadInput(t *testing.T) {
	g := &netguard.Guard{Resolve: always("127.0.0.1"), Local: loopback("127.0.0.0/8")}
	for _, tt := range []struct{ network, addr, want string }{
		{"udp", "app.test:53", "not tcp"},
		{"unix", "/var/run/docker.sock", "not tcp"},
		{"tcp", "app.test", "missing port"},
		{"tcp", "app.test:http", "port"},
		{"tcp", "app.test:0", "port"},
		{"tcp", "127.1:80", "number"},
		{"tcp", "0x7f000001:80", "number"},
		{"tcp", "a\x00.test:80", "character"},
		{"tcp", "[::1%lo]:80", "zone"},
		{"tcp", ":80", "empty"},
	} {
		conn, err := g.DialContext(context.Background(), tt.network, tt.addr)
		if err == nil {
			_ = conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %q: %v, want %q", tt.network, tt.addr, err, tt.want)
		}
	}
}

// TestEnvironmentProxy checks that a proxy of the environment is not used. The environment is read once in a process,
// so a new one does it.
func TestEnvironmentProxy(t *testing.T) {
	const dead = "http://127.0.0.9:1"
	if os.Getenv("HTTP_PROXY") != dead {
		child := exec.Command(os.Args[0], "-test.run=^TestEnvironmentProxy$")
		child.Env = append(os.Environ(), "HTTP_PROXY="+dead, "http_proxy="+dead, "NO_PROXY=", "no_proxy=")
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	s := hello(t)
	resp, err := http.Get(at(s, "app.test"))
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "127.0.0.9") {
		t.Errorf("the control does not use the proxy: %v", err)
	}
	g := &netguard.Guard{Resolve: always("127.0.0.1"), Local: loopback("127.0.0.0/8")}
	if got, err := get(g, at(s, "app.test")); err != nil || got == "" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	s := hello(t)
	g := &netguard.Guard{Resolve: always("127.0.0.1"), Local: loopback("127.0.0.0/8")}
	client := g.Client()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			resp, err := client.Get(at(s, "app.test"))
			if err != nil {
				t.Error(err)
				return
			}
			resp.Body.Close()
		})
	}
	all.Wait()
}

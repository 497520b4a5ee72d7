package sandbox_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestSwap has a command send the placeholder of a secret, over http and https: a host of the secret gets the secret,
// any other host the placeholder.
func TestSwap(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NO CURL HERE")
	}
	const standIn, value = "placeholder_k3f9q2ab", "the-secret-itself-9f2c"
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, password, _ := r.BasicAuth()
		// in letters that no rule for printed text finds
		said := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s|%s|%s|%s", r.Header.Get("X-Key"), password, body, r.URL.RawQuery))
		fmt.Fprint(w, "got:"+said+":")
	})
	plain, sealed := httptest.NewServer(echo), httptest.NewTLSServer(echo)
	t.Cleanup(plain.Close)
	t.Cleanup(sealed.Close)
	roots := x509.NewCertPool()
	roots.AddCert(sealed.Certificate())
	swap, err := netguard.NewSwap([]netguard.Secret{
		{StandIn: standIn, Value: value, Hosts: netguard.Hosts{"example.com"}, Header: true, Body: true},
		{StandIn: "placeholder_header", Value: "of-headers", Header: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	trust := filepath.Join(dir, "trust")
	known := append(bytes.Clone(swap.PEM()), pemOf(sealed.Certificate())...)
	if err := os.WriteFile(trust, known, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	resolved := netip.MustParseAddr("127.0.0.1")
	guard := &netguard.Guard{
		Resolve: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{resolved}, nil },
		Local:   []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: roots,
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: self, Guard: guard, Swap: swap, Shown: []string{dir}, Vars: []string{"API_KEY=" + standIn, "CURL_CA_BUNDLE=" + trust},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, env) })
	boxes.Need(t, env, tool.BoxWorkspace)
	box := tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"*"}}
	at := func(server *httptest.Server, scheme, host string) string {
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return scheme + "://" + host + ":" + u.Port() + "/?q=$API_KEY"
	}
	for name, tc := range map[string]struct{ address, args, want string }{
		"http":            {at(plain, "http", "example.com"), "", value + "|" + value + "|body " + value + "|q=" + standIn},
		"https":           {at(sealed, "https", "example.com"), "", value + "|" + value + "|body " + value + "|q=" + standIn},
		"another host":    {at(plain, "http", "other.example"), "", standIn + "|" + standIn + "|body " + standIn + "|q=" + standIn},
		"below that host": {at(plain, "http", "a.example.com"), "", standIn + "|" + standIn + "|body " + standIn + "|q=" + standIn},
		"another Host": {
			at(plain, "http", "other.example"), "-H 'Host: example.com'",
			standIn + "|" + standIn + "|body " + standIn + "|q=" + standIn,
		},
		"not in bodies": {
			strings.ReplaceAll(at(sealed, "https", "example.com"), "$API_KEY", "x"), "-H 'X-Key: placeholder_header' -d placeholder_header",
			"of-headers|" + value + "|body " + value + "&placeholder_header|q=x",
		},
	} {
		header := `-H "X-Key: $API_KEY"`
		if strings.Contains(tc.args, "X-Key") {
			header = ""
		}
		command := fmt.Sprintf(`curl -s -m 20 %s -u "ann:$API_KEY" -d "body $API_KEY" %s "%s"`, header, tc.args, tc.address)
		code, out := sent(t, env, box, command)
		_, said, _ := strings.Cut(out, "got:")
		said, _, _ = strings.Cut(said, ":")
		got, err := base64.StdEncoding.DecodeString(said)
		if code != 0 || err != nil || string(got) != tc.want {
			t.Errorf("%s: exit code %d, %v, %q\n%s", name, code, err, got, out)
		}
	}
	wire := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
		fmt.Fprintf(w, "<html>%s %s", r.Host, r.RemoteAddr)
	})
	open := httptest.NewUnstartedServer(wire)
	var conns atomic.Int32
	open.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	open.TLS = sealed.TLS.Clone()
	open.StartTLS()
	t.Cleanup(open.Close)
	// in one connection: the proxy opens no other, and adds nothing to the host's answer
	u, _ := url.Parse(open.URL)
	same := "example.com:" + u.Port()
	_, out := sent(t, env, box, fmt.Sprintf("curl -s -i -m 20 -H 'X-Key: placeholder_header' https://%s https://%s", same, same))
	n, added := conns.Load(), strings.Contains(out, "Date:") || strings.Contains(out, "Content-Type:")
	if n != 1 || added || strings.Count(out, "<html>"+same+" 127.0.0.1") != 2 {
		t.Errorf("%d connections: %s", n, out)
	}
	_, out = sent(t, env, box, "curl -s -i -m 20 -H 'Host: evil.example' https://"+same)
	if !strings.Contains(out, "<html>"+same) {
		t.Errorf("a process chooses another host of the same server: %s", out)
	}
	resolved = netip.MustParseAddr("127.7.7.7")                                                  // no one else listens there
	if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.7.7.7:443"); err == nil { // who may
		usual := httptest.NewUnstartedServer(wire)
		_ = usual.Listener.Close()
		usual.Listener, usual.TLS = l, sealed.TLS.Clone()
		usual.StartTLS()
		t.Cleanup(usual.Close)
		if _, out = sent(t, env, box, "curl -s -i -m 20 https://example.com"); !strings.Contains(out, "<html>example.com 127.") {
			t.Errorf("a host at the usual port is called otherwise than by its clients: %s", out)
		}
	}
	resolved = netip.MustParseAddr("127.0.0.1")
	_, out = sent(t, env, box, "curl -s -p -m 20 -u ann:placeholder_header "+at(plain, "http", "example.com"))
	if !strings.Contains(out, "got:") {
		t.Errorf("what is not encrypted does not pass a tunnel: %s", out)
	}
	if code, out := sent(t, env, box, "env; cat "+trust); code != 0 || strings.Contains(out, value) || !strings.Contains(out, standIn) {
		t.Errorf("exit code %d: a command has the secret, or nothing that stands for it: %s", code, out)
	}
	wrong := at(sealed, "https", "wrong.example") // it has no certificate for that name
	if code, out := sent(t, env, box, "curl -s -m 20 -H 'X-Key: placeholder_header' '"+wrong+"'"); strings.Contains(out, "got:") {
		t.Errorf("exit code %d: a host that does not prove who it is has been sent a secret: %s", code, out)
	}
}

func pemOf(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// sent runs a script with the variables that commands have by themselves.
func sent(t *testing.T, env tool.Env, box tool.Box, text string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"bash", "-c", text}, Dir: env.Root, Output: &out, Box: box})
	if err != nil {
		t.Fatal(err)
	}
	code, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	p.Kill()
	return code, out.String()
}

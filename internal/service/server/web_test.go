package server_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// everywhere serves the house at all addresses of this machine, and returns the address that the listener has.
func (h *house) everywhere() string {
	h.t.Helper()
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		h.t.Fatal(err)
	}
	s := &http.Server{Handler: h.s.Gate().Wrap(h.s.Handler()), ReadHeaderTimeout: testkit.Patience}
	go func() { _ = s.Serve(l) }() // Close ends it
	h.t.Cleanup(func() { _ = s.Close() })
	return l.Addr().String()
}

var printedPage = regexp.MustCompile(`http://[^ ;#]+/`)

// opens checks that a printed text has pages, and that a browser can open each of them. It returns their hosts.
func opens(t *testing.T, text string) (hosts []string) {
	t.Helper()
	for _, page := range printedPage.FindAllString(text, -1) {
		u, err := url.Parse(page)
		if err != nil {
			t.Fatal(err)
		}
		if ip := net.ParseIP(u.Hostname()); ip == nil || ip.IsUnspecified() {
			t.Errorf("no other device can open %s", page)
		}
		res, err := http.Get(page)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", page, res.Status)
		}
		hosts = append(hosts, u.Hostname())
	}
	if len(hosts) == 0 {
		t.Errorf("no page in %q", text)
	}
	return hosts
}

// TestWebForOtherDevices checks that a server at all addresses prints those that other devices can open, and the code
// only where no one else reads it.
func TestWebForOtherDevices(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	at, state := h.everywhere(), t.TempDir()
	var told []string
	w := server.Web{Quiet: true, Private: true, Tell: func(text string) { told = append(told, text) }}
	w.Show(t.Context(), state, at, "inspan-code-a")
	hosts := opens(t, strings.Join(told, "\n"))
	if len(told) != 1 || strings.Count(told[0], "/#code=inspan-code-a") != len(hosts) {
		t.Errorf("printed %q", told)
	}
	if elsewhere := otherHosts(t); len(elsewhere) > 0 && strings.Join(hosts, " ") != strings.Join(elsewhere, " ") {
		t.Errorf("printed %q; other devices reach this machine at %q", hosts, elsewhere)
	}

	told, w.Private = nil, false
	w.Show(t.Context(), state, at, "inspan-code-b")
	if opens(t, strings.Join(told, "\n")); strings.Contains(strings.Join(told, "\n"), "inspan-code-") {
		t.Errorf("others can read the code in %q", told)
	}
	file, err := os.ReadFile(filepath.Join(state, "sign-in.html"))
	if err != nil || !strings.Contains(string(file), `"http://127.0.0.1:`) {
		t.Errorf("the browser of this machine gets %s, %v", file, err)
	}
}

// TestWebBesideServerForAll checks that inspan web gets its code from a server that listens on all addresses.
func TestWebBesideServerForAll(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	state := t.TempDir()
	for name, text := range map[string]string{"server.address": h.everywhere(), "server.token": ownersToken} {
		if err := os.WriteFile(filepath.Join(state, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var told string
	w := server.Web{Quiet: true, Private: true, Tell: func(text string) { told += text }}
	if err := w.Elsewhere(t.Context(), store.ErrBusy, state, filepath.Join(state, "server.token")); err != nil {
		t.Fatal(err)
	}
	if opens(t, told); !strings.Contains(told, "#code=inspan-code-") {
		t.Errorf("printed %q", told)
	}
}

// otherHosts returns this machine's IPv4 addresses for other devices.
func otherHosts(t *testing.T) (hosts []string) {
	t.Helper()
	own, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range own {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			hosts = append(hosts, n.IP.String())
		}
	}
	return hosts
}

package sandbox_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/ability"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestRegistries checks that each workspace box fetches from registries, over http and https, and can do nothing else
// there, that it reaches no other host, and that fetches are counted.
func TestRegistries(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NO CURL HERE")
	}
	var sent []string
	registry := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, r.Method+string(body))
		for name := range r.Header {
			if slices.Contains([]string{"X-Data", "Cookie", "If-None-Match", "Referer"}, name) {
				t.Errorf("the registry got %s: %s", name, r.Header[name])
			}
		}
		if got := r.UserAgent() + r.Header.Get("Accept") + r.Header.Get("Range") + r.URL.RawQuery + r.Trailer.Get("X"); strings.Contains(got, "secret") {
			t.Errorf("the registry got %q", got)
		}
		fmt.Fprint(w, "package ", r.URL.Path)
	})
	plain, sealed := httptest.NewServer(registry), httptest.NewTLSServer(registry)
	t.Cleanup(plain.Close)
	t.Cleanup(sealed.Close)
	roots := x509.NewCertPool()
	roots.AddCert(sealed.Certificate())
	swap, err := netguard.NewSwap(nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	trust := filepath.Join(dir, "trust")
	if err := os.WriteFile(trust, bytes.Clone(swap.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: self, Swap: swap, Shown: []string{dir}, Vars: []string{"CURL_CA_BUNDLE=" + trust},
		Guard: &netguard.Guard{
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
			}, RootCAs: roots,
		},
		Registries: netguard.Hosts{"example.com"}, Fetches: netguard.Hosts{"example.com"}, Near: netguard.Hosts{"example.com"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, env) })
	boxes.Need(t, env, tool.BoxWorkspace)
	at := func(server *httptest.Server, host string) string {
		u, err := url.Parse(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		return u.Scheme + "://" + host + ":" + u.Port() + "/p"
	}
	var out bytes.Buffer
	script := fmt.Sprintf(`for at in %s %s; do curl -s -m 20 $at; curl -sI -o /dev/null -m 20 $at; curl -s -m 20 -X GET -d secret $at \
			-A 'curl/8.1 secret' -H 'X-Data: secret' -H 'Cookie: a=secret' -H 'If-None-Match: "secret"' -H 'Accept: text/secret, text/html' -H 'Range: secret' -e secret
		curl -s -m 20 "$at?secret=$(printf %%0600d 0)"
		curl -s -m 20 -d secret $at; curl -s -m 20 -X PUT -d secret $at; done; curl -s -m 20 %s
		curl -s -m 20 -x "http://[::ffff:127.0.0.1]:${http_proxy##*:}" %[1]s # as Java and .NET do`,
		at(plain, "example.com"), at(sealed, "example.com"), at(plain, "example.org"))
	p, err := env.Procs.Start(t.Context(), tool.Command{Args: []string{"bash", "-c", script}, Dir: env.Root, Output: &out, Box: boxes.Writable})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if diff := cmp.Diff(strings.Fields(strings.Repeat("GET HEAD GET ", 2)+"GET"), sent); diff != "" {
		t.Errorf("the registry got: %s\n%s", diff, out.String())
	}
	if got := strings.Count(out.String(), "only GET and HEAD are open there, not "); got != 4 {
		t.Errorf("%d refusals of 4: %s", got, out.String())
	}
	if got := strings.Count(out.String(), "an address there may have 512 bytes behind the host, not "); got != 2 {
		t.Errorf("%d long addresses of 2 were refused: %s", got, out.String())
	}
	if diff := cmp.Diff(map[string]int{"example.com": 7}, p.(ability.Fetcher).Fetched()); diff != "" {
		t.Error(diff)
	}
	if refused := strings.Join(p.(ability.Refuser).Refused(), "\n"); !strings.Contains(refused, "blocked example.org") {
		t.Errorf("the box refused %q", refused)
	}
}

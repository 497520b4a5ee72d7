package keeper_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/testkit/boxes"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// reachable serves on a port of the machine, and opens an environment in which
// every name leads there.
func reachable(t *testing.T) (port string, env tool.Env) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "reached ", r.Host) }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	guard := &netguard.Guard{
		Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
		Local: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
	}
	env, err = sandbox.Local(t.TempDir(), nil, sandbox.Options{Self: self, Guard: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { boxes.Close(t, env) })
	return u.Port(), env
}

// TestHosts checks that a box reaches the hosts it was given, through the
// proxy, and no others.
func TestHosts(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("NO CURL HERE")
	}
	port, env := reachable(t)
	boxes.Need(t, env, tool.BoxWorkspace)
	box := tool.Box{Level: tool.BoxWorkspace, Hosts: []string{"allowed.example"}}
	get := "curl -s -m 10 http://%s:" + port + "/"
	if code, out, refused := boxes.Run(t, env, box, fmt.Sprintf(get, "allowed.example")); code != 0 ||
		!strings.HasPrefix(out, "reached allowed.example") || len(refused) > 0 {
		t.Errorf("exit code %d, refused %q\n%s", code, refused, out)
	}
	if code, out, _ := boxes.Run(t, env, box, fmt.Sprintf(strings.Replace(get, "curl", "curl -p", 1), "allowed.example")); code != 0 ||
		!strings.HasPrefix(out, "reached") {
		t.Errorf("through a tunnel: exit code %d\n%s", code, out)
	}
	_, out, refused := boxes.Run(t, env, box, fmt.Sprintf(get, "other.example"))
	if strings.Contains(out, "reached other") || len(refused) != 1 || !strings.Contains(refused[0], "other.example") {
		t.Errorf("refused %q\n%s", refused, out)
	}
	for _, direct := range []string{"curl -s -m 5 --noproxy '*' " + "http://127.0.0.1:" + port, "exec 9<>/dev/tcp/127.0.0.1/" + port} {
		if code, out, _ := boxes.Run(t, env, box, direct); code == 0 {
			t.Errorf("%s works\n%s", direct, out)
		}
		if code, out, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxNone}, direct); code != 0 {
			t.Errorf("%s does not work without a box\n%s", direct, out)
		}
	}
	if code, _, _ := boxes.Run(t, env, tool.Box{Level: tool.BoxWorkspace}, fmt.Sprintf(get, "allowed.example")); code == 0 {
		t.Error("a box without hosts reached one")
	}
}

//go:build linux

package mcp_test

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/netguard"
	"github.com/inspan/inspan/internal/peertest"
	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/sandbox"
)

// walled is a Manager whose servers run in the walls of a session, for a person with a
// home of their own. The registries are reached wherever they are.
func walled(t *testing.T, servers func(home string) []mcp.Server) (h *house, home string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home = filepath.Join(dir, "home")
	for _, name := range []string{home, filepath.Join(dir, "ws")} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	guard := &netguard.Guard{MaxBytes: 1 << 30}
	for _, host := range []string{"pypi.org", "files.pythonhosted.org", "registry.npmjs.org"} {
		addresses, err := net.DefaultResolver.LookupNetIP(t.Context(), "ip", host)
		if err != nil {
			t.Skip(err)
		}
		for _, at := range addresses {
			guard.Local = append(guard.Local, netip.PrefixFrom(at.Unmap(), at.Unmap().BitLen()))
		}
	}
	state := filepath.Join(home, ".local", "state", "inspan")
	env, err := sandbox.Local(filepath.Join(dir, "ws"), nil, sandbox.Options{
		Self: self, Map: places.Map{Home: home, Settings: filepath.Join(home, ".config", "inspan"), State: []string{state}}.Indexed(), State: state, Guard: guard,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	h = &house{t: t}
	h.Manager = &mcp.Manager{Env: env, Servers: servers(home)}
	t.Cleanup(h.Close)
	return h, home
}

// does runs a program as the person does, who has no walls.
func does(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Skipf("%s %q: %v: %s", program, args, err, out)
	}
}

// TestUvx starts a published server by uvx, for a person who has used uv before.
func TestUvx(t *testing.T) {
	bin := peertest.Uv(t)
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	h, home := walled(t, func(string) []mcp.Server {
		return []mcp.Server{{Name: "time", Source: mcp.User, Command: []string{"uvx", "mcp-server-time", "--local-timezone", "Europe/Lisbon"}}}
	})
	does(t, filepath.Join(bin, "uvx"), "pycowsay", "hello")
	tools := filepath.Join(home, ".local", "share", "uv", "tools")
	if _, err := os.Stat(tools); err != nil {
		t.Fatal(err)
	}
	h.Start()
	h.until("the server", func() bool { s := h.status("time").State; return s == mcp.Ready || s == mcp.Failed })
	res, err := h.call(t.Context(), "mcp__time__get_current_time", `{"timezone":"Europe/Lisbon"}`)
	if err != nil || !strings.Contains(text(res), "Europe/Lisbon") {
		t.Errorf("%s, %v, %+v", text(res), err, h.status("time"))
	}
	if left, err := filepath.Glob(filepath.Join(tools, "mcp*")); err != nil || len(left) > 0 {
		t.Errorf("the box has written %q, %v", left, err)
	}
}

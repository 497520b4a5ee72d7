package mcp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestWalls runs servers as a session does: without a secret of its environment,
// and in a box that they can't write out of.
func TestWalls(t *testing.T) {
	modules := peers(t)
	t.Setenv("SOME_API_KEY", "hidden")
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: self, Map: places.Map{Home: home, Settings: state + "/config", State: []string{state}}.Indexed(), State: state,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	h := &house{t: t}
	h.Manager = &mcp.Manager{Env: env, Servers: []mcp.Server{{
		Name: "every", Source: mcp.User, Command: npm(modules, "everything", "stdio"),
		Env: map[string]string{"GIVEN": "for it"},
	}}}
	t.Cleanup(h.Close)
	h.begin("every", mcp.Ready)
	res, err := h.call(t.Context(), "mcp__every__get-env", `{}`)
	if err != nil || strings.Contains(text(res), "hidden") || !strings.Contains(text(res), "for it") {
		t.Errorf("%s, %v", text(res), err)
	}
}

// boxed returns the path of this program, and an environment with walls.
func boxed(t *testing.T) (me string, env tool.Env) {
	t.Helper()
	state := t.TempDir()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err = sandbox.Local(t.TempDir(), nil, sandbox.Options{
		Self: me, Map: places.Map{Home: t.TempDir(), Settings: state + "/config", State: []string{state}}.Indexed(), State: state,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	return me, env
}

// TestBoxIsTold checks that a server which misses something in the sandbox tells what opens it, and that its own folder
// is open to it.
func TestBoxIsTold(t *testing.T) {
	_, env := boxed(t)
	beside, err := os.MkdirTemp("/tmp", "beside")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(beside) })
	if err := os.WriteFile(filepath.Join(beside, "told"), []byte("its own folder"), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"cat told >&2; exit 1":                       "it said: its own folder",
		"cat " + t.Name() + " /tmp/none >&2; exit 1": "which has a /tmp of its own, and where --read PATH of 'inspan mcp add'",
		"echo connect: Network is unreachable >&2":   "where --host HOST of 'inspan mcp add' (hosts = [...] in the settings) opens a host",
		"echo getaddrinfo ENOTFOUND example.com >&2": "where --host HOST of 'inspan mcp add'",
	} {
		h := &house{t: t}
		s := mcp.Server{Name: "own", Source: mcp.User, Command: []string{"sh", "-c", command}, Dir: beside}
		h.Manager = &mcp.Manager{Env: env, Servers: []mcp.Server{s}, Patience: testkit.Patience}
		if got := h.begin("own", mcp.Failed); !strings.Contains(got.Why, want) {
			t.Errorf("%s: no %q in %q", command, want, got.Why)
		}
		h.Close()
	}
}

// TestRefusedHosts checks that an error about a server names the hosts that the sandbox refused, and the setting that
// opens them.
func TestRefusedHosts(t *testing.T) {
	me, env := boxed(t)
	for mode, want := range map[string][]string{
		"fetches http://closed.example/":      {"exit code 1", "the sandbox blocked closed.example", "--host HOST of 'inspan mcp add'"},
		"fetches http://closed.example/again": {"did not answer", "the sandbox blocked closed.example", "hosts = [...] in the settings"},
		"fetches http://203.0.113.7/":         {"exit code 1", "refused to connect to 203.0.113.7", "sandbox.local in the settings"},
	} {
		t.Run(mode, func(t *testing.T) {
			s := self(t, "own", mode)
			s.Hosts, s.Read = []string{"203.0.113.7"}, []string{filepath.Dir(me)}
			h := &house{t: t}
			h.Manager = &mcp.Manager{Env: env, Servers: []mcp.Server{s}, Patience: testkit.Patience}
			if strings.HasSuffix(mode, "/again") {
				h.Patience = 2 * time.Second
			}
			t.Cleanup(h.Close)
			got := h.begin("own", mcp.Failed)
			for _, part := range want {
				if !strings.Contains(got.Why, part) {
					t.Errorf("no %q in %q", part, got.Why)
				}
			}
		})
	}
}

// TestNoWalls means that nothing is started.
func TestNoWalls(t *testing.T) {
	h := newHouse(t, self(t, "own", "honest"))
	if h.Env.Walls.Workspace {
		t.Skip("there are walls")
	}
	h.Level = tool.BoxDefault
	if s := h.begin("own", mcp.Failed); !strings.Contains(s.Why, "sandbox") {
		t.Errorf("%+v", s)
	}
}

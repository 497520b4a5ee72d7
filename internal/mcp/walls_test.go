package mcp_test

import (
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/mcp"
	"github.com/inspan/inspan/internal/places"
	"github.com/inspan/inspan/internal/sandbox"
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

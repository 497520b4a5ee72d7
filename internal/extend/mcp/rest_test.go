package mcp_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/extend/mcp"
	"github.com/inspan/inspan/tool"
)

// resting is a session whose server is not started before it is needed.
func resting(t *testing.T, server mcp.Server, pins mcp.Pins) *house {
	t.Helper()
	h := newHouse(t, server)
	h.Pins = pins
	h.Rest()
	return h
}

// TestKnownServersRest checks that a server with approved tools starts only when it is needed, and that its tools are
// offered all the same.
func TestKnownServersRest(t *testing.T) {
	pins := mcp.Pins{Dir: t.TempDir()}
	began := filepath.Join(t.TempDir(), "began")
	server := self(t, "own", "honest")
	server.Command = append([]string{"sh", "-c", `echo >>"$0" && exec "$@"`, began}, server.Command...)
	starts := func() int {
		data, _ := os.ReadFile(began) // there is none before the first
		return strings.Count(string(data), "\n")
	}
	rest := func() *house { return resting(t, server, pins) }
	ready := func(h *house) func() bool { return func() bool { return h.status("own").State == mcp.Ready } }

	h := rest()
	h.until("a server that was never met", ready(h))
	h.Close()
	for i, use := range []func(h *house){
		func(h *house) {
			if _, err := h.call(t.Context(), "mcp__own__echo", `{"text":"x"}`); err != nil {
				t.Error(err)
			}
		},
		func(h *house) { h.tool("mcp__own__echo").Ready(&tool.Call{}) },
		func(h *house) { h.Start() },
		func(h *house) { h.Settle(t.Context()) },
		func(h *house) {
			if err := h.Again("own"); err != nil {
				t.Error(err)
			}
		},
	} {
		h := rest()
		if state := h.status("own"); state.State != mcp.Connecting || state.Tools == 0 {
			t.Errorf("at rest it is %+v", state)
		}
		h.Meet(t.Context(), func(names []string) { t.Errorf("%q are waited for", names) })
		if n := starts(); n != i+1 {
			t.Fatalf("it was started before it was needed: %d starts, %d uses", n, i)
		}
		use(h)
		h.until("the server", ready(h))
		h.Close()
		if n := starts(); n != i+2 {
			t.Errorf("%d starts after %d uses", n, i+1)
		}
	}

	// No one agrees to one that is unpinned, so nothing of it is kept, and nothing held back.
	server.Unpinned = true
	left, err := os.ReadDir(pins.Dir)
	if err != nil {
		t.Fatal(err)
	}
	server.Name = "other"
	h = resting(t, server, pins)
	h.until("an unpinned server", func() bool { return h.status("other").State == mcp.Ready })
	if names := h.names(); !strings.Contains(names, "mcp__other__echo") {
		t.Errorf("it offers %s", names)
	}
	h.Close()
	if now, err := os.ReadDir(pins.Dir); err != nil || len(now) != len(left) {
		t.Errorf("%d files are kept, %d before, %v", len(now), len(left), err)
	}
	server.Name, server.Unpinned = "own", false

	before := starts()
	h = rest()
	names := h.names()
	h.Close()
	h.Ready()
	h.Start()
	if n := starts(); n != before || !slices.Contains(strings.Fields(names), "mcp__own__echo") {
		t.Errorf("a session that asks nothing has %d starts and the tools %s", n-before, names)
	}
}

// TestToolsOfAServer checks that only_tools and without_tools choose among the tools of a server, and that an excluded
// tool can't be called by its name either.
func TestToolsOfAServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		only, without []string
		want          string
	}{
		"all":          {nil, nil, "mcp__own__ask mcp__own__echo mcp__own__env mcp__own__fail mcp__own__steps"},
		"only":         {[]string{"echo", "env", "gone"}, nil, "mcp__own__echo mcp__own__env"},
		"without":      {nil, []string{"fail", "steps"}, "mcp__own__ask mcp__own__echo mcp__own__env"},
		"without wins": {[]string{"echo", "env"}, []string{"env"}, "mcp__own__echo"},
	} {
		s := self(t, "own", "honest")
		s.Only, s.Without = c.only, c.without
		h := newHouse(t, s)
		h.begin("own", mcp.Ready)
		own := slices.DeleteFunc(strings.Fields(h.names()), func(n string) bool { return !strings.HasPrefix(n, "mcp__own__") })
		slices.Sort(own)
		if got := strings.Join(own, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

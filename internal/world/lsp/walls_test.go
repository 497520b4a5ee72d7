package lsp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/places"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// TestGoplsBehindWalls runs gopls as a session does: in the workspace box, with the sandbox's caches and without a
// network.
func TestGoplsBehindWalls(t *testing.T) {
	bin := gopls(t)
	t.Setenv("PATH", filepath.Dir(bin)+string(filepath.ListSeparator)+os.Getenv("PATH"))
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
		Self: self, Map: places.Map{Home: home, Settings: filepath.Join(state, "config"), State: []string{state}}.Indexed(),
		State: state, Default: tool.BoxWorkspace,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	if !env.Walls.Workspace {
		t.Skip("no walls here: " + env.Walls.Why)
	}
	p := &project{&lsp.Manager{Env: env, Servers: []lsp.Server{server(t, "gopls", "gopls")}}, t}
	t.Cleanup(p.Close)
	for name, text := range shop() {
		p.put(name, text)
	}
	path, at := p.at("shop.go", "Total(1)")
	found, err := p.Definition(t.Context(), path, at)
	if err != nil || p.places(found.List) != "total.go:4:22-27" {
		t.Errorf("found %s, %v", p.places(found.List), err)
	}
	path, at = p.at("total.go", "Repeat")
	found, err = p.Definition(t.Context(), path, at)
	if err != nil || !strings.Contains(p.places(found.List), "strings.go") {
		t.Errorf("found %s, %v", p.places(found.List), err)
	}
	p.put("total.go", "package shop\n\nfunc Total(n int) string { return n }\n")
	r, err := p.Diagnostics(t.Context(), p.path("total.go"), 20*time.Second)
	if err != nil || !r.Settled || len(r.List) != 1 {
		t.Errorf("diagnostics %+v, %v", r, err)
	}
}

// BenchmarkWarmDefinition measures the cost of a query while the server runs.
func BenchmarkWarmDefinition(b *testing.B) {
	p := newProject(b, goplsServer(b), shop())
	path, at := p.at("shop.go", "Total(1)")
	began := time.Now()
	if _, err := p.Definition(b.Context(), path, at); err != nil {
		b.Fatal(err)
	}
	first := time.Since(began)
	for b.Loop() {
		if _, err := p.Definition(b.Context(), path, at); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(first.Milliseconds()), "first-ms")
}

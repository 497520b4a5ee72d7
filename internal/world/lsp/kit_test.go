package lsp_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"

	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/internal/world/sandbox"
)

func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		fake(os.Args[2])
		return
	}
	testkit.Main(m)
}

// cached is a folder for programs that tests fetch, outside of the repository.
func cached(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	return filepath.Join(dir, "inspan-test", name)
}

const goplsVersion = "v0.20.0"

// gopls fetches gopls once, and skips loudly where it can't be had.
func gopls(t testing.TB) string {
	t.Helper()
	bin, err := fetchGopls(t)
	if err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: gopls can't be had: %v\n", t.Name(), err)
		t.Skip("no gopls")
	}
	return bin
}

func fetchGopls(t testing.TB) (string, error) {
	dir := filepath.Join(cached(t, "gopls-"+goplsVersion), "bin")
	bin := filepath.Join(dir, "gopls")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", "golang.org/x/tools/gopls@"+goplsVersion)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "GOFLAGS=-mod=mod", "GO111MODULE=on")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return bin, nil
}

// typescript fetches the TypeScript server once.
func typescript(t testing.TB) string {
	t.Helper()
	dir := cached(t, "typescript-5.9.2-server-5.0.0")
	bin := filepath.Join(dir, "node_modules", ".bin", "typescript-language-server")
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund",
			"--ignore-scripts", "--save-exact", "typescript@5.9.2", "typescript-language-server@5.0.0")
		cmd.Dir = dir
		var out []byte
		if out, err = cmd.CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: typescript-language-server can't be had: %v\n", t.Name(), err)
		t.Skip("no typescript-language-server")
	}
	return bin
}

// project is a workspace with files, and a Manager for one server.
type project struct {
	*lsp.Manager
	t testing.TB
}

func newProject(t testing.TB, server lsp.Server, files map[string]string) *project {
	t.Helper()
	root := t.TempDir()
	env, err := sandbox.Local(root, nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Close() })
	p := &project{&lsp.Manager{Env: env, Servers: []lsp.Server{server}}, t}
	for name, text := range files {
		p.put(name, text)
	}
	t.Cleanup(p.Close)
	return p
}

func (p *project) path(name string) string { return filepath.Join(p.Env.Root, name) }

// put writes a file after the Manager's back.
func (p *project) put(name, text string) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(p.path(name)), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.path(name), []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// at is the first position of a text in a file.
func (p *project) at(name, text string) (string, lsp.Position) {
	p.t.Helper()
	data, err := os.ReadFile(p.path(name))
	if err != nil {
		p.t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(data), text)
	if !ok {
		p.t.Fatalf("%q is not in %s", text, name)
	}
	return p.path(name), lsp.Position{Line: strings.Count(before, "\n"), Byte: len(before) - 1 - strings.LastIndex(before, "\n")}
}

// places writes locations as name:line:byte, all from 0.
func (p *project) places(list []lsp.Location) string {
	var out []string
	for _, l := range list {
		rel, err := filepath.Rel(p.Env.Root, l.Path)
		if err != nil || strings.HasPrefix(rel, "..") {
			rel = "outside/" + filepath.Base(l.Path)
		}
		out = append(out, fmt.Sprintf("%s:%d:%d-%d", filepath.ToSlash(rel), l.Start.Line, l.Start.Byte, l.End.Byte))
	}
	return strings.Join(out, " ")
}

// server is one of the usual, run from another place.
func server(t testing.TB, name, bin string) lsp.Server {
	t.Helper()
	for _, s := range lsp.Usual() {
		if s.Name == name {
			s.Command = append([]string{bin}, s.Command[1:]...)
			return s
		}
	}
	t.Fatalf("no server %s", name)
	return lsp.Server{}
}

func goplsServer(t testing.TB) lsp.Server { return server(t, "gopls", gopls(t)) }

package policy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFetchesAreGuarded checks that fetches on behalf of a model, a repository or a server (pages, images, attachments,
// MCP, logins) have no other way out than [netguard.Guard]: nothing else opens a connection. Providers of models, the
// server of --remote, and the database and the bucket of sessions are the person's own choice and are reached directly.
// The keeper of kept commands reaches the ports of its own box, from inside it.
func TestFetchesAreGuarded(t *testing.T) {
	free := []string{
		"llm", "internal/models/heal/heal.go", "internal/safety/netguard", "internal/testkit",
		"harnesstest", "examples", "internal/world/sandbox/ports/ports_linux.go", "internal/service/server/remote.go",
		"engine/postgres",
	}
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || slices.Contains(free, filepath.ToSlash(path))) {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		if d.IsDir() || slices.Contains(free, filepath.ToSlash(path)) || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		for _, why := range unguarded(t, path) {
			t.Errorf("%s: %s; use internal/safety/netguard", path, why)
		}
		return nil
	})
	if err != nil || files < 300 {
		t.Fatal(files, err)
	}
}

// unguarded lists the places in a file that open connections.
func unguarded(t *testing.T, path string) (out []string) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	banned := []string{
		"http.DefaultClient", "http.DefaultTransport", "http.Get", "http.Head", "http.Post", "http.PostForm", "http.Transport", "net.Dial",
		"net.DialTimeout", "net.DialTCP", "net.Dialer", "tls.Dial", "tls.Dialer",
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(banned, x.Name+"."+sel.Sel.Name) {
				out = append(out, fset.Position(sel.Pos()).String()+": "+x.Name+"."+sel.Sel.Name)
			}
		}
		lit, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if sel, ok := lit.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Client" {
			if x, ok := sel.X.(*ast.Ident); ok && x.Name == "http" && !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
				kv, ok := e.(*ast.KeyValueExpr)
				return ok && kv.Key.(*ast.Ident).Name == "Transport"
			}) {
				out = append(out, "an http.Client without a transport")
			}
		}
		return true
	})
	return out
}

package lsp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/world/lsp"
)

// shop has characters before names that UTF-16 and UTF-8 count differently.
func shop() map[string]string {
	return map[string]string{
		"go.mod": "module example.com/shop\n\ngo 1.24\n",
		"shop.go": `package shop

// Seller sells.
type Seller interface{ Sell(n int) string }

// Baker bakes.
type Baker struct{ name string }

// Sell sells bread.
func (b Baker) Sell(n int) string { return b.name }

var _, greeting = "😀😀日本語", Total(1)
`,
		"total.go": `package shop

import "strings"

/* 😀日本 */ func Total(n int) string { return strings.Repeat("語😀", n) }

func use() { _ = "😀"; _ = Total(2); /* 日本語 */ Baker{}.Sell(3) }
`,
	}
}

func TestGoplsFinds(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	ctx := t.Context()
	for _, row := range []struct {
		name       string
		ask        func(path string, at lsp.Position) (lsp.Found, error)
		file, text string
		want       string
		line       string
	}{
		{
			"definition behind wide characters",
			func(path string, at lsp.Position) (lsp.Found, error) { return p.Definition(ctx, path, at) },
			"shop.go", "Total(1)", "total.go:4:22-27", `/* 😀日本 */ func Total(n int) string { return strings.Repeat("語😀", n) }`,
		},
		{
			"references on lines with wide characters",
			func(path string, at lsp.Position) (lsp.Found, error) { return p.References(ctx, path, at) },
			"total.go", "Total(n", "shop.go:11:39-44 total.go:4:22-27 total.go:6:29-34", "",
		},
		{
			"implementation",
			func(path string, at lsp.Position) (lsp.Found, error) { return p.Implementation(ctx, path, at) },
			"shop.go", "Seller interface", "shop.go:6:5-10", "type Baker struct{ name string }",
		},
		{
			"type definition",
			func(path string, at lsp.Position) (lsp.Found, error) { return p.TypeDefinition(ctx, path, at) },
			"shop.go", "b Baker", "shop.go:6:5-10", "",
		},
		{
			"outside of the workspace, without the line",
			func(path string, at lsp.Position) (lsp.Found, error) { return p.Definition(ctx, path, at) },
			"total.go", "Repeat", "outside/strings.go", "",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			found, err := row.ask(p.at(row.file, row.text))
			if err != nil || found.More != 0 || len(found.List) == 0 {
				t.Fatalf("%+v, %v", found, err)
			}
			if got := p.places(found.List); !strings.HasPrefix(got, row.want) {
				t.Errorf("found %s, want %s", got, row.want)
			}
			if text := found.List[0].Text; row.line != "" && text != row.line || strings.HasPrefix(row.want, "outside") && text != "" {
				t.Errorf("the line is %q", text)
			}
		})
	}
}

func TestGoplsDescribes(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	path, at := p.at("shop.go", "Sell(n int) string {")
	text, err := p.Hover(t.Context(), path, at)
	if err != nil || !strings.Contains(text, "Sell sells bread.") || strings.Contains(text, "```") {
		t.Errorf("hover: %q, %v", text, err)
	}
	symbols, err := p.DocumentSymbols(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range symbols.List {
		got = append(got, strings.Repeat(" ", s.Depth)+s.Kind+" "+s.Name)
	}
	if want := "interface Seller, method Sell,struct Baker, field name,method (Baker).Sell,variable greeting"; strings.Join(got, ",") != want {
		t.Errorf("symbols %s\nwant %s", strings.Join(got, ","), want)
	}
	symbols, err = p.WorkspaceSymbols(t.Context(), "Total", p.Env.Root)
	if err != nil || len(symbols.List) == 0 || p.places([]lsp.Location{symbols.List[0].Location}) != "total.go:4:22-27" {
		t.Errorf("workspace symbols %+v, %v", symbols, err)
	}
}

func TestGoplsDiagnoses(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	check := func(name string, want ...string) {
		t.Helper()
		r, err := p.Diagnostics(t.Context(), p.path(name), 20*time.Second)
		if err != nil || !r.Settled {
			t.Fatalf("%+v, %v", r, err)
		}
		var got []string
		for _, d := range r.List {
			if d.Severity != lsp.Error && d.Severity != lsp.Warning { // some versions have hints too
				continue
			}
			got = append(got, d.Severity+" "+p.places([]lsp.Location{d.Location}))
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Errorf("%s: %q, want %q (%+v)", name, got, want, r.List)
		}
	}
	check("total.go")
	p.put("total.go", "package shop\n\nfunc Total(n int) string { _ = \"😀日本\"; return n }\n")
	check("total.go", "error total.go:2:52-53")
	p.put("total.go", "package shop\n\nfunc Total(n, m int) string { return \"\" }\n")
	check("total.go")
	check("shop.go", "error shop.go:11:46-46")
}

// TestGoplsSeesOtherFiles changes files that are not open with the server.
func TestGoplsSeesOtherFiles(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	path, at := p.at("shop.go", "Total(1)")
	if _, err := p.Definition(t.Context(), path, at); err != nil {
		t.Fatal(err)
	}
	p.put("total.go", "package shop\n\nfunc use() {}\n")
	p.put("new.go", "package shop\n\n\nfunc Total(n int) string { return \"\" }\n")
	found, err := p.Definition(t.Context(), path, at)
	if err != nil || p.places(found.List) != "new.go:3:5-10" {
		t.Errorf("found %s, %v", p.places(found.List), err)
	}
}

func TestGoplsRenames(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	path, at := p.at("shop.go", "Total(1)")
	edits, err := p.Rename(t.Context(), path, at, "Sum")
	if err != nil || len(edits) != 2 {
		t.Fatalf("%+v, %v", edits, err)
	}
	for i, name := range []string{"shop.go", "total.go"} {
		before := shop()[name]
		if e := edits[i]; e.Path != p.path(name) || e.Before != before || e.After != strings.ReplaceAll(before, "Total", "Sum") {
			t.Errorf("%s becomes\n%s", e.Path, e.After)
		}
	}
	if _, err := p.Rename(t.Context(), path, at, "not a name"); err == nil {
		t.Error("a name that is none was taken")
	}
}

func TestGoplsNews(t *testing.T) {
	p := newProject(t, goplsServer(t), shop())
	if _, ok := p.News(t.Context(), p.path("total.go"), time.Second); ok {
		t.Error("it tells news although no server runs")
	}
	p.put("total.go", "package shop\n\nfunc Total(n int) string { return n }\n")
	if _, err := p.Diagnostics(t.Context(), p.path("total.go"), 20*time.Second); err != nil {
		t.Fatal(err)
	}
	p.put("total.go", "package shop\n\nfunc Total(n int) string { return n }\n\nvar x int = true\n")
	r, ok := p.News(t.Context(), p.path("total.go"), 10*time.Second)
	if !ok || len(r.List) != 1 || !strings.Contains(r.List[0].Message, "true") {
		t.Errorf("%+v, %v", r, ok)
	}
}

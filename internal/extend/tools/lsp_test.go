package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/lsp"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/tool"
)

// goplsForTest fetches gopls once for all tests of the repository, and skips
// loudly where it can't be had.
func goplsForTest(t *testing.T) string {
	t.Helper()
	const version = "v0.20.0"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	bin := filepath.Join(cache, "inspan-test", "gopls-"+version, "bin", "gopls")
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", "golang.org/x/tools/gopls@"+version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GOBIN="+filepath.Dir(bin), "GOFLAGS=-mod=mod")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "SKIPPED %s: gopls can't be had: %v\n%s\n", t.Name(), err, out)
		t.Skip("no gopls")
	}
	return bin
}

// code is a workspace with a language server.
type code struct {
	t    *testing.T
	m    *lsp.Manager
	tool tool.Tool
	env  tool.Env
}

func newCode(t *testing.T) *code {
	t.Helper()
	testkit.After(t)
	env, err := sandbox.Local(t.TempDir(), nil, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	servers := lsp.Usual()[:1]
	servers[0].Command = []string{goplsForTest(t)}
	m := &lsp.Manager{Env: env, Servers: servers}
	t.Cleanup(m.Close)
	s := &code{t, m, languages(m), env}
	s.put("go.mod", "module example.com/shop\n\ngo 1.24\n")
	s.put("shop.go", "package shop\n\n// Baker bakes.\ntype Baker struct{}\n\n// Sell sells. Total is elsewhere.\n"+
		"func (b Baker) Sell(n int) string { return Total(n) }\n\ntype Smith struct{}\n\nfunc (Smith) Sell(n int) string { return \"\" }\n")
	s.put("total.go", "package shop\n\nimport \"strings\"\n\n/* 語😀 */ func Total(n int) string { return strings.Repeat(\"x\", n) }\n\n"+
		"var once = Total(1)\n")
	return s
}

func (s *code) path(name string) string { return filepath.Join(s.env.Root, name) }

func (s *code) put(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o644); err != nil {
		s.t.Fatal(err)
	}
}

func (s *code) get(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func (s *code) call(in lspArgs) *tool.Call {
	s.t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	if raw, err = s.tool.Check(raw); err != nil {
		s.t.Fatal(err)
	}
	return &tool.Call{ID: "1", Name: "lsp", Args: raw, Env: s.env, Cwd: s.env.Root, Progress: func(string) {}}
}

func (s *code) effects(in lspArgs) string {
	s.t.Helper()
	list, err := s.tool.Effects(s.t.Context(), s.call(in))
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		switch e.Kind {
		case tool.Execute:
			if e.Class != tool.Unproven || !e.Words.Exact || !slices.Equal(e.Words.Argv, e.Words.Prefix) || len(e.Words.Argv) == 0 {
				s.t.Errorf("effect %+v %+v", e, e.Words)
			}
			out = append(out, "execute "+filepath.Base(e.Text))
		default:
			rel, _ := filepath.Rel(s.env.Root, e.Path)
			out = append(out, string(e.Kind)+" "+rel)
		}
	}
	return strings.Join(out, ", ")
}

func TestLSP(t *testing.T) {
	s := newCode(t)
	if got := s.effects(lspArgs{Action: "definition", Path: "shop.go", Symbol: "Total"}); got != "read shop.go, execute gopls" {
		t.Errorf("before it runs: %s", got)
	}
	if got := s.effects(lspArgs{
		Action: "rename", Path: "shop.go", Symbol: "Total",
		NewName: "Sum",
	}); got != "read shop.go, execute gopls, write ." {
		t.Errorf("before it runs: %s", got)
	}
	if p, err := s.tool.Preview(t.Context(), s.call(lspArgs{Action: "rename", Path: "shop.go", Symbol: "Total", NewName: "Sum"})); p != "" ||
		err != nil {
		t.Errorf("before it runs: preview %q, %v", p, err)
	}
	for _, row := range []struct {
		in   lspArgs
		want string // the text, or a part of the error after "!"
	}{
		{
			lspArgs{Action: "definition", Path: "shop.go", Symbol: "Total", Line: 7},
			"total.go:5:15: /* 語😀 */ func Total(n int) string { return strings.Repeat(\"x\", n) }\n",
		},
		{
			lspArgs{Action: "definition", Path: "shop.go", Symbol: "Total"},
			"total.go:5:15: /* 語😀 */ func Total(n int) string { return strings.Repeat(\"x\", n) }\n",
		},
		{
			lspArgs{Action: "references", Path: "total.go", Symbol: "Total"},
			"shop.go:7:44: func (b Baker) Sell(n int) string { return Total(n) }\n\n" +
				"total.go:5:15: /* 語😀 */ func Total(n int) string { return strings.Repeat(\"x\", n) }\ntotal.go:7:12: var once = Total(1)\n",
		},
		{
			lspArgs{Action: "references", Path: "shop.go", Symbol: "Smith.Sell"},
			"shop.go:11:14: func (Smith) Sell(n int) string { return \"\" }\n",
		},
		{lspArgs{Action: "references", Path: "shop.go", Symbol: "Sell"}, "!declares Sell in lines 7, 11; give the line"},
		{
			lspArgs{Action: "references", Path: "shop.go", Symbol: "Sell", Line: 11},
			"shop.go:11:14: func (Smith) Sell(n int) string { return \"\" }\n",
		},
		{lspArgs{Action: "references", Path: "shop.go", Symbol: "Total", Line: 2}, "!line 2 of shop.go has no Total; it stands in lines 6, 7"},
		{lspArgs{Action: "references", Path: "shop.go", Symbol: "Total", Line: 99}, "!has 12 lines"},
		{lspArgs{Action: "references", Path: "shop.go", Symbol: "Tota"}, "!shop.go has no Tota"},
		{lspArgs{Action: "references", Path: "gone.go", Symbol: "Total"}, "!does not exist"},
		{lspArgs{Action: "definition", Path: "go.txt", Symbol: "x"}, "!does not exist"},
		{lspArgs{Action: "definition", Path: "shop.go"}, "!needs a symbol"},
		{lspArgs{Action: "definition", Symbol: "a"}, "!needs a path"},
		{lspArgs{Action: "workspace_symbols"}, "!needs a query"},
		{lspArgs{Action: "rename", Path: "shop.go", Symbol: "Total"}, "!needs a new_name"},
		{
			lspArgs{Action: "symbols", Path: "shop.go"},
			"4: struct Baker struct{}\n7: method (Baker).Sell func(n int) string\n9: struct Smith struct{}\n" +
				"11: method (Smith).Sell func(n int) string\n",
		},
		{
			lspArgs{Action: "workspace_symbols", Query: "Smit"},
			"shop.go:9:6: struct Smith in example.com/shop\nshop.go:11:14: method Smith.Sell in example.com/shop\n",
		},
		{lspArgs{Action: "diagnostics", Path: "shop.go"}, "no problems in shop.go"},
		{lspArgs{Action: "rename", Path: "shop.go", Symbol: "Total", NewName: "Sum"}, "!stands in lines 6, 7 of shop.go; give the line"},
		{lspArgs{Action: "rename", Path: "shop.go", Symbol: "Total", Line: 7, NewName: "7"}, "!not an identifier"},
	} {
		r, err := s.tool.Run(t.Context(), s.call(row.in))
		text := r.Parts.Text()
		problem, fails := strings.CutPrefix(row.want, "!")
		if fails && (err == nil || !strings.Contains(err.Error(), problem)) || !fails && (err != nil || text != row.want) {
			t.Errorf("%+v: %q, %v; want %q", row.in, text, err, row.want)
		}
	}
	r, err := s.tool.Run(t.Context(), s.call(lspArgs{Action: "hover", Path: "shop.go", Symbol: "Baker"}))
	if err != nil || !strings.Contains(r.Parts.Text(), "Baker bakes.") {
		t.Errorf("hover %q, %v", r.Parts.Text(), err)
	}
	if got := s.effects(lspArgs{Action: "symbols", Path: "shop.go"}); got != "read shop.go" {
		t.Errorf("when it runs: %s", got)
	}
}

// refusing refuses to change one file.
type refusing struct {
	tool.Files
	path string
}

func (r refusing) Change(ctx context.Context, c tool.Change) error {
	if c.Path == r.path {
		return errors.New("not this one")
	}
	return r.Files.Change(ctx, c)
}

func TestLSPRename(t *testing.T) {
	s := newCode(t)
	in := lspArgs{Action: "rename", Path: "total.go", Symbol: "Total", NewName: "Sum"}
	if _, err := s.tool.Run(t.Context(), s.call(lspArgs{Action: "symbols", Path: "total.go"})); err != nil {
		t.Fatal(err)
	}
	if got := s.effects(in); got != "read total.go, write shop.go, write total.go" {
		t.Errorf("effects %s", got)
	}
	shown, err := s.tool.Preview(t.Context(), s.call(in))
	if err != nil || !strings.Contains(shown, "--- shop.go") || !strings.Contains(shown, "+var once = Sum(1)") {
		t.Errorf("preview %s, %v", shown, err)
	}
	shop, total := s.get("shop.go"), s.get("total.go")
	c := s.call(in)
	c.Env.Files = refusing{s.env.Files, s.path("total.go")}
	r, err := s.tool.Run(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "not this one; no file was changed") ||
		len(r.Files) != 0 || s.get("shop.go") != shop || s.get("total.go") != total {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = s.tool.Run(t.Context(), s.call(in))
	if err != nil || len(r.Files) != 2 || !r.Files[0].Written || r.Files[0].Digest != tool.Digest([]byte(s.get("shop.go"))) {
		t.Fatalf("%+v, %v", r, err)
	}
	if text := r.Parts.Text(); !strings.HasPrefix(text, "renamed Total to Sum in 2 files\n") || !strings.Contains(text, "+var once = Sum(1)") {
		t.Errorf("result %s", text)
	}
	// gopls renames in comments of the declaration only, so one stays.
	if strings.ReplaceAll(s.get("total.go"), "Sum", "Total") != total || strings.Count(s.get("shop.go"), "Total") != 1 {
		t.Error(s.get("shop.go"), s.get("total.go"))
	}
}

func TestDiagnosing(t *testing.T) {
	s := newCode(t)
	write := diagnosing(s.m, writeFile())
	run := func(name, text string) string {
		t.Helper()
		raw, _ := json.Marshal(map[string]string{"path": name, "content": text})
		c := s.call(lspArgs{Action: "symbols", Path: name})
		digest := tool.Digest([]byte(s.get(name)))
		c.Args, c.Seen = raw, func(path string) (string, bool) { return digest, path == s.path(name) }
		r, err := write.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		_, text, _ = strings.Cut(r.Parts.Text(), "diagnostics of ")
		return text
	}
	bad := "package shop\n\nfunc Total(n int) string { return n }\n\nfunc old() {\n\tx := 1\n}\n"
	if got := run("total.go", bad); got != "" {
		t.Errorf("a server was started: %q", got)
	}
	if _, err := s.tool.Run(t.Context(), s.call(lspArgs{Action: "diagnostics", Path: "total.go"})); err != nil {
		t.Fatal(err)
	}
	got := run("total.go", strings.Replace(bad, "package shop", "package shop\n\nvar y int = true", 1))
	if !strings.HasPrefix(got, "total.go:\ntotal.go:3:13: error: ") || strings.Count(got, "\n") != 2 {
		t.Errorf("the new problem is told as %q", got)
	}
	many := "package shop\n\nfunc Total(n int) string { return \"\" }\n" + strings.Repeat("var _ int = true\n", 30)
	got = run("total.go", many)
	if strings.Count(got, "error:") != maxNews || !strings.Contains(got, "more\n") {
		t.Errorf("many problems are told as %q", got)
	}
	if got = run("total.go", "package shop\n\nfunc Total(n int) string { return \"\" }\n"); got != "" {
		t.Errorf("no problems are told as %q", got)
	}
}

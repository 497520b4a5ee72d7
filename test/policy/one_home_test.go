package policy_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNoTwins looks for rules that have one room of their own, and were once written down
// in many. A new place for one of them calls the room instead.
func TestNoTwins(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if room, what := twin(n); what != "" && !slices.Contains(room, s.dir) {
				t.Errorf("%s has %s, which is for %s", s.path, what, room[0])
			}
			return true
		})
	}
}

// twin names the rule that a piece of code states, and the rooms that may.
func twin(n ast.Node) (rooms []string, what string) {
	texts, files := []string{"internal/base/text"}, []string{"internal/base/keep"}
	switch n := n.(type) {
	case *ast.BasicLit:
		if unseen(n) {
			return texts, "the code point " + n.Value
		}
	case *ast.FuncDecl:
		if room := homeOf(n.Name.Name); n.Recv == nil && room != "" && !forwards(n) {
			return []string{room}, "a func " + n.Name.Name
		}
	case *ast.SelectorExpr:
		switch name := selected(n); name {
		case "utf8.RuneStart": // cutting; the others map offsets, cut lines, or can't import text
			return append(texts, "internal/testkit/fake", "internal/world/lsp", "internal/extend/recall"), name
		case "unicode.Cf", "unicode.Variation_Selector", "unicode.Zs", "unicode.Other_Default_Ignorable_Code_Point":
			return texts, name
		case "syscall.Flock", "unix.Flock", "windows.LockFileEx":
			return files, name
		}
	case *ast.ImportSpec:
		if strings.Contains(n.Path.Value, "gofrs/flock") {
			return files, "an import of " + n.Path.Value
		}
	case *ast.BlockStmt:
		if sleeps(n) {
			return files, "a sleep that a context ends"
		}
	}
	return nil, ""
}

// homeOf is the package that replaced functions of some names, wherever they were.
func homeOf(name string) string {
	switch name {
	case "oneLine", "thousands", "plural", "cutAt", "cutRune", "cutText", "firstLine", "isBidi", "isTag", "hiddenRune":
		return "internal/base/text"
	case "sleep", "flock", "syncDir", "lockFile":
		return "internal/base/keep"
	}
	return ""
}

// forwards reports whether a func only gives a name to one call of another.
func forwards(f *ast.FuncDecl) bool {
	if f.Body == nil || len(f.Body.List) != 1 {
		return false
	}
	_, is := f.Body.List[0].(*ast.ReturnStmt)
	return is
}

// unseen reports whether a literal is a character with which tables of invisible characters begin.
func unseen(l *ast.BasicLit) bool {
	if l.Kind != token.INT || !strings.HasPrefix(strings.ToLower(l.Value), "0x") {
		return false
	}
	r, err := strconv.ParseInt(l.Value, 0, 64)
	return err == nil && slices.Contains([]int64{
		0x34f, 0x61c, 0x115f, 0x17b4, 0x180e, 0x200b, 0x200d, 0x200e, 0x2028, 0x202a, 0x202e, 0x2060, 0x2066,
		0x3164, 0xfe00, 0xfe0f, 0xfff9, 0x1d173, 0xe0000, 0xe0100,
	}, r)
}

func selected(n *ast.SelectorExpr) string {
	if x, ok := n.X.(*ast.Ident); ok {
		return x.Name + "." + n.Sel.Name
	}
	return ""
}

// sleeps reports whether a block is a timer and a select of two cases after it, which return.
func sleeps(b *ast.BlockStmt) bool {
	if len(b.List) < 2 {
		return false
	}
	ends := false
	last, ok := b.List[len(b.List)-1].(*ast.SelectStmt)
	if !ok || len(last.Body.List) != 2 {
		return false
	}
	for _, c := range last.Body.List {
		body := c.(*ast.CommClause).Body
		if len(body) != 1 {
			return false
		}
		if _, returns := body[0].(*ast.ReturnStmt); !returns {
			return false
		}
		if c.(*ast.CommClause).Comm == nil {
			return false
		}
		ast.Inspect(c.(*ast.CommClause).Comm, func(n ast.Node) bool {
			sel, is := n.(*ast.SelectorExpr)
			ends = ends || is && selected(sel) == "ctx.Done"
			return true
		})
	}
	timer := false
	for _, stmt := range b.List {
		ast.Inspect(stmt, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && selected(sel) == "time.NewTimer" {
				timer = true
			}
			return true
		})
	}
	return timer && ends
}

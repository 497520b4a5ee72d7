package inspan_test

// The figures of the house. Each line of the table is held at what was reached, and says where
// it is to go: a change that makes one larger is to make room elsewhere first. What is better
// than its line is entered here, so that it stays.

import (
	"go/ast"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// figure is one that is measured of the sources.
type figure struct {
	name string
	now  int // it may not be more; of the ratio, not less
	goal int
}

// fanOuts are of how many packages of ours a package is made.
func fanOuts() []figure {
	return []figure{
		{"internal/app", 21, 22},
		{"internal/command", 14, 14},
		{"internal/tools", 12, 12},
		{"internal/config", 10, 10},
		{".", 12, 12},
		{"internal/tui", 10, 10},
	}
}

// methodsOf are how many methods types have, those that go together in one line.
func methodsOf() []figure {
	return []figure{{"internal/app App", 14, 35}, {"internal/tui model", 25, 40}, {". driver+Session", 50, 50}}
}

const (
	mostStateFields = 15 // of loop.State, goal 15
	mostLong        = 1  // lines of Go over 140 columns in 1,000, tests included; goal 1
	mostPackages    = 84 // but for examples; goal 66
	leastTested     = 61 // lines of tests for 100 of code below the front ends; goal 100
)

func TestFanOut(t *testing.T) {
	out := map[string]map[string]bool{}
	for _, s := range sources(t) {
		for _, path := range imports(t, s) {
			if path == module || strings.HasPrefix(path, module+"/") {
				if out[s.dir] == nil {
					out[s.dir] = map[string]bool{}
				}
				out[s.dir][path] = true
			}
		}
	}
	for _, f := range fanOuts() {
		check(t, "imports of ours of "+f.name, len(out[f.name]), f.now, f.goal)
	}
}

func TestMethods(t *testing.T) {
	count := map[string]int{}
	for _, s := range sources(t) {
		for _, decl := range s.file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv != nil {
				count[s.dir+" "+receiver(f)]++
			}
		}
	}
	for _, f := range methodsOf() {
		dir, types, _ := strings.Cut(f.name, " ")
		n := 0
		for _, name := range strings.Split(types, "+") {
			n += count[dir+" "+name]
		}
		check(t, "methods of "+f.name, n, f.now, f.goal)
	}
}

func receiver(f *ast.FuncDecl) string {
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if id, ok := kind.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func TestStateHasParts(t *testing.T) {
	for _, s := range sources(t) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || s.dir != "internal/loop" || spec.Name.Name != "State" {
				return true
			}
			fields := spec.Type.(*ast.StructType).Fields
			check(t, "fields of loop.State", fields.NumFields(), mostStateFields, 15)
			return false
		})
	}
}

// TestSizes holds how many packages there are, how long lines are, and how much of the code
// below the front ends is tests.
func TestSizes(t *testing.T) {
	front := []string{
		"internal/console", "internal/tui", "internal/acp", "internal/a2a", "internal/mcpserver", "internal/setup",
	}
	packages, lines, long, code, tests := map[string]bool{}, 0, 0, 0, 0
	err := walkGo(func(path string, text string) {
		dir := filepath.ToSlash(filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go")
		if !test && !strings.HasPrefix(dir, "examples/") { // these are for reading, and nothing imports them
			packages[dir] = true
		}
		n := strings.Count(text, "\n")
		lines += n
		for line := range strings.Lines(text) {
			if utf8.RuneCountInString(strings.TrimRight(line, "\n")) > 140 {
				long++
			}
		}
		below := !strings.HasPrefix(dir, "examples/") && rank[dir] < 90 && rank[dir] != 55 // parts of an installation
		for _, f := range front {
			below = below && dir != f
		}
		switch {
		case below && test:
			tests += n
		case below:
			code += n
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	check(t, "packages", len(packages), mostPackages, 66)
	check(t, "lines over 140 columns in 1,000", (1000*long+lines-1)/lines, mostLong, 1)
	if tested := 100 * tests / code; tested < leastTested {
		t.Errorf("%d lines of tests for 100 of code, at least %d are held; the goal is 100", tested, leastTested)
	}
	t.Logf("%d packages, %d lines, %d over 140 columns, %d of tests for %d of code", len(packages), lines, long, tests, code)
}

// walkGo reads every Go file of the module, tests included.
func walkGo(f func(path, text string)) error {
	return filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			nested, _ := filepath.Glob(filepath.Join(path, "go.mod"))
			if path != "." && (len(nested) > 0 || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		f(path, string(text))
		return err
	})
}

func check(t *testing.T, what string, is, most, goal int) {
	t.Helper()
	t.Logf("%s: %d, goal %d", what, is, goal)
	if is > most {
		t.Errorf("%s: %d, at most %d are held; the goal is %d", what, is, most, goal)
	}
}

package policy_test

// The shape of the house. This is policy: do not edit it to make a build pass.
//
// Every package has a role, and imports go downward. Only the places named below may touch what is named there.

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/inspan/inspan"

// roles of packages, from the ground up, each by its folders; one that ends in /... has those below it too. A package may
// import packages of its own role and of those before it. The public packages of tests stand above all.
var roles = []struct {
	name    string
	folders []string
}{
	{"base", []string{"internal/base/..."}},
	{"vocabulary", []string{"llm", "tool", "event", "store"}},
	{"safety", []string{"internal/safety/..."}},
	{"world", []string{"internal/world/..."}},
	{"models", []string{"internal/models/...", "llm/..."}},
	{"kernel", []string{"internal/kernel/...", "."}},
	{"view", []string{"internal/view/..."}},
	{"extend", []string{"internal/extend/...", "mcptool", "files"}},
	{"delegate", []string{"internal/delegate/...", "workflow"}},
	{"install", []string{"internal/install/...", "coding"}},
	{"lab", []string{"internal/lab/..."}},
	{"service", []string{"internal/service/..."}},
	{"front", []string{"internal/front/...", "cmd/inspan"}},
	{"tests and examples", []string{"harnesstest", "internal/testkit/...", "examples/..."}},
}

// roleOf is the index of the role of a package; -1: it has none.
func roleOf(dir string) int {
	best, length := -1, -1
	for i, role := range roles {
		for _, folder := range role.folders {
			stem, below := strings.CutSuffix(folder, "/...")
			if (dir == stem && !below || below && strings.HasPrefix(dir+"/", stem+"/")) && len(stem) > length {
				best, length = i, len(stem)
			}
		}
	}
	return best
}

// pure packages compute and do nothing else.
var pure = []string{
	"internal/kernel/compact", "internal/safety/places", "internal/safety/secret", "internal/kernel/loop", "internal/lab/stats",
	"internal/view/markdown", "internal/safety/policy", "internal/extend/profile", "internal/safety/shell", "internal/view/transcript", "internal/view/words",
}

// only names the imports that just some packages may use.
var only = map[string][]string{
	"os/exec": {"internal/world/sandbox", "internal/testkit", "internal/testkit/suite"},
	"testing": {
		"harnesstest", "internal/testkit", "internal/testkit/fake", "internal/testkit/anthropictest", "internal/testkit/openaitest",
		"internal/testkit/geminitest", "internal/testkit/ollamatest", "internal/testkit/boxes", "internal/testkit/wiretest",
	},
}

// impure lists what a pure package must not import or call.
var impure = []string{"os", "net", "net/http", "os/exec", "math/rand", "math/rand/v2", "crypto/rand", "github.com/google/uuid"}

type source struct {
	dir  string // package folder, "." for the root
	path string
	file *ast.File
}

// sources is every file of the product, tests and nested modules left out.
func sources(t *testing.T) []source {
	t.Helper()
	out, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var parsed = sync.OnceValues(func() (out []source, err error) {
	fset := token.NewFileSet()
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
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
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		out = append(out, source{filepath.ToSlash(filepath.Dir(path)), path, f})
		return nil
	})
	return out, err
})

func imports(t *testing.T, s source) []string {
	t.Helper()
	var out []string
	for _, spec := range s.file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func TestImportsGoDownward(t *testing.T) {
	for _, s := range sources(t) {
		mine := roleOf(s.dir)
		if mine < 0 {
			t.Errorf("%s: the package has no role", s.path)
			continue
		}
		for _, path := range imports(t, s) {
			dir, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			dir = cmp.Or(strings.TrimPrefix(dir, "/"), ".")
			if theirs := roleOf(dir); theirs < 0 || theirs > mine {
				t.Errorf("%s: a package of the role %s imports %s", s.path, roles[mine].name, dir)
			}
		}
	}
}

// TestRoomsOfTheSandbox checks that the sandbox lists its rooms, and that each imports only those listed before it.
func TestRoomsOfTheSandbox(t *testing.T) {
	const sandbox = "internal/world/sandbox"
	doc, err := os.ReadFile(sandbox + "/doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var rooms []string
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z]+) +`).FindAllStringSubmatch(string(doc), -1) {
		if info, err := os.Stat(sandbox + "/" + m[1]); err == nil && info.IsDir() {
			rooms = append(rooms, m[1])
		}
	}
	for _, s := range sources(t) {
		name, below := strings.CutPrefix(s.dir, sandbox+"/")
		if !below {
			continue
		}
		place := slices.Index(rooms, name)
		if place < 0 {
			t.Errorf("%s/doc.go does not list %s", sandbox, name)
			continue
		}
		for _, path := range imports(t, s) {
			if other, ok := strings.CutPrefix(path, module+"/"+sandbox+"/"); ok && !slices.Contains(rooms[:place], other) {
				t.Errorf("%s: %s is listed before %s and imports it", s.path, name, other)
			}
		}
	}
}

func TestForbiddenImports(t *testing.T) {
	for _, s := range sources(t) {
		for _, path := range imports(t, s) {
			if allowed, limited := only[path]; limited && !slices.Contains(allowed, s.dir) {
				t.Errorf("%s imports %s, which only %v may", s.path, path, allowed)
			}
			if slices.Contains(pure, s.dir) && slices.Contains(impure, path) {
				t.Errorf("%s is in a pure package and imports %s", s.path, path)
			}
		}
	}
}

func TestPurePackagesReadNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(pure, s.dir) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "time" &&
					slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After"}, sel.Sel.Name) {
					t.Errorf("%s calls time.%s", s.path, sel.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestNoInitAndNoGlobals(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir == "internal/testkit" || s.dir == "internal/testkit/boxes" {
			continue // what all tests of a program share: a build, and which boxes work
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					t.Errorf("%s has an init function", s.path)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.VAR && !allowedVar(d, v) {
						t.Errorf("%s: package-level variable %s", s.path, v.Names[0].Name)
					}
				}
			}
		}
	}
}

// allowedVar allows errors, embedded files, compiled regular expressions, values made once from an embedded file, and
// interface guards.
func allowedVar(d *ast.GenDecl, v *ast.ValueSpec) bool {
	if v.Names[0].Name == "_" || embedded(d.Doc) || embedded(v.Doc) {
		return true
	}
	for _, value := range v.Values {
		if sel, ok := value.(*ast.SelectorExpr); ok && strings.HasPrefix(sel.Sel.Name, "Err") {
			continue // an error of another package under the name that embedders know
		}
		call, ok := value.(*ast.CallExpr)
		if !ok {
			return false
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "text.Pattern", "sync.OnceValue"}, sel.X.(*ast.Ident).Name+"."+sel.Sel.Name) {
			return false
		}
	}
	return len(v.Values) > 0
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

func TestEveryToolHasItsDescription(t *testing.T) {
	for _, dir := range []string{"extend/tools", "install/connect", "install/knowledge", "extend/skill"} {
		mds, err := filepath.Glob("internal/" + dir + "/*.md")
		if err != nil || len(mds) == 0 {
			t.Fatal("no descriptions found", dir, err)
		}
		for _, md := range mds {
			if found, _ := filepath.Glob(strings.TrimSuffix(md, ".md") + ".go"); len(found) == 0 {
				t.Errorf("%s has no .go of the same name", md)
			}
		}
	}
}

// TestRootPullsInLittle checks what a program that embeds an agent links.
func TestRootPullsInLittle(t *testing.T) {
	allowed := []string{
		module,
		"github.com/google/jsonschema-go",
		"github.com/bmatcuk/doublestar/v4",
		"golang.org/x/sys",
		"golang.org/x/net/http/httpproxy", // of net/http too, under another name
		"golang.org/x/net/idna",           // for names of hosts in rules, and what it imports:
		"golang.org/x/text/secure/bidirule", "golang.org/x/text/transform", "golang.org/x/text/unicode",
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(string(out)) {
		if !slices.ContainsFunc(allowed, func(a string) bool { return path == a || strings.HasPrefix(path, a+"/") }) {
			t.Errorf("the root package pulls in %s", path)
		}
	}
}

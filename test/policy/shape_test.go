package policy_test

// The shape of the house. This is policy: do not edit it to make a build pass.
//
// Every package has a rank, and imports go strictly downward: a package may
// import only packages of lower rank, so two of the same rank never meet. Only
// the places named below may touch what is named there.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/inspan/inspan"

// rank of every package, by folder.
var rank = map[string]int{
	"llm":                            0,
	"tool":                           1,
	"event":                          2,
	"llm/catalog":                    3,
	"llm/family":                     3,
	"internal/text":                  3,
	"store":                          4,
	"internal/places":                4,
	"internal/keep":                  4,
	"internal/secret":                4,
	"internal/netguard":              4,
	"llm/internal/wire":              5,
	"internal/testkit/fake":          6,
	"llm/anthropic":                  10,
	"llm/openai":                     10,
	"llm/gemini":                     10,
	"llm/ollama":                     10,
	"llm/script":                     10,
	"llm/cloud":                      10,
	"llm/limit":                      10,
	"llm/router":                     10,
	"llm/prompted":                   10,
	"llm/heal":                       10,
	"internal/testkit/anthropictest": 12,
	"internal/testkit/openaitest":    12,
	"internal/testkit/geminitest":    12,
	"internal/testkit/ollamatest":    12,
	"internal/shell":                 12,
	"internal/jsonrpc":               12,
	"harnesstest":                    15,
	"internal/kernel/loop":           20,
	"internal/kernel/fault":          20,
	"internal/kernel/redact":         25,
	"internal/kernel/hold":           30,
	"internal/kernel/request":        30,
	"internal/kernel/wrap":           30,
	"internal/kernel/drive":          40,
	"internal/policy":                20,
	"internal/sandbox":               20,
	"internal/session":               20,
	"internal/snapshot":              20,
	"internal/kernel/compact":        20,
	"internal/consent":               20,
	"internal/guard":                 20,
	"internal/profile":               20,
	"internal/markdown":              20,
	"internal/web":                   20,
	"internal/hook":                  20,
	"internal/custom":                20,
	"internal/lsp":                   20,
	"internal/words":                 15,
	"internal/foreign":               15,
	"internal/stats":                 20,
	"internal/skill":                 20,
	"internal/memory":                20,
	"internal/recall":                20,
	"internal/worktree":              20,
	"internal/oauth":                 20,
	"internal/forge":                 20,
	"internal/mcp":                   20,
	"internal/tools":                 30,
	"internal/cost":                  30,
	"internal/corpus":                35,
	"internal/transcript":            30,
	"internal/script":                35,
	"internal/config":                40,
	"mcptool":                        40,
	"internal/plugin":                45,
	".":                              50,
	"internal/connect":               55,
	"internal/equipment":             55,
	"internal/knowledge":             55,
	"internal/permission":            55,
	"internal/providers":             55,
	"workflow":                       52,
	"internal/running":               55,
	"internal/schedule":              57,
	"internal/subagent":              60,
	"internal/app":                   65,
	"coding":                         67,
	"internal/eval":                  68,
	"internal/bench":                 68,
	"internal/console":               70,
	"internal/tui":                   70,
	"internal/setup":                 70,
	"internal/acp":                   70,
	"internal/mcpserver":             70,
	"internal/a2a":                   70,
	"internal/server":                70,
	"internal/managed":               71,
	"internal/command":               80,
	"cmd/inspan":                     90,
	"examples/01-agent":              95,
	"examples/02-provider":           95,
	"examples/03-tool":               95,
	"examples/04-events":             95,
	"examples/05-resume":             95,
	"examples/06-fork":               95,
	"examples/07-child":              95,
	"examples/08-mcp":                95,
	"examples/09-approve":            95,
	"examples/10-http":               95,
	"examples/11-log":                95,
	"examples/12-sandbox":            95,
	"examples/13-mcp":                95,
	"examples/14-subagents":          95,
	"examples/15-skills":             95,
	"examples/16-hooks":              95,
	"examples/17-budget":             95,
	"examples/18-resume":             95,
	"examples/19-calls":              95,
	"examples/20-workflow":           95,
	"examples/21-builtin":            95,
	"internal/testkit":               99, // for tests, so nothing may import it
	"internal/testkit/suite":         99,
}

// pure packages compute and do nothing else.
var pure = []string{
	"internal/kernel/compact", "internal/places", "internal/secret", "internal/kernel/loop", "internal/stats",
	"internal/markdown", "internal/policy", "internal/profile", "internal/shell", "internal/transcript", "internal/words",
}

// only names the imports that just some packages may use.
var only = map[string][]string{
	"os/exec": {"internal/sandbox", "internal/testkit", "internal/testkit/suite"},
	"testing": {
		"harnesstest", "internal/testkit", "internal/testkit/fake", "internal/testkit/anthropictest", "internal/testkit/openaitest",
		"internal/testkit/geminitest", "internal/testkit/ollamatest",
	},
}

// impure is what a pure package must not import or call.
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
		mine, known := rank[s.dir]
		if !known {
			t.Errorf("%s: the package has no rank", s.path)
		}
		for _, path := range imports(t, s) {
			dir, ours := strings.CutPrefix(path, module)
			if !ours {
				continue
			}
			dir = strings.TrimPrefix(dir, "/")
			if dir == "" {
				dir = "."
			}
			if theirs, known := rank[dir]; !known || theirs >= mine {
				t.Errorf("%s: rank %d imports %s of rank %d", s.path, mine, dir, theirs)
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
		if s.dir == "internal/testkit" {
			continue // a build that all tests of a program share
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

// allowedVar lets errors, embedded files, compiled regular expressions, what is
// made once of such a file, and interface guards through.
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
		if !ok || !slices.Contains([]string{"errors.New", "fmt.Errorf", "regexp.MustCompile", "sync.OnceValue"}, sel.X.(*ast.Ident).Name+"."+sel.Sel.Name) {
			return false
		}
	}
	return len(v.Values) > 0
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

func TestEveryToolHasItsDescription(t *testing.T) {
	for _, dir := range []string{"tools", "connect", "knowledge", "skill"} {
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

// TestRootPullsInLittle holds what a program that embeds an agent links.
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

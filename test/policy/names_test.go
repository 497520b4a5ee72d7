package policy_test

// Every span in backticks in docs/ARCHITECTURE.md must exist. Its form decides where to look it up: a command, a path,
// the kind of an event, an identifier, or a word that the code writes or reads.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestNamesInArchitecture fails if docs/ARCHITECTURE.md names something that does not exist.
func TestNamesInArchitecture(t *testing.T) {
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	spans := spansOf(string(page))
	if len(spans) < 200 {
		t.Fatalf("only %d spans were found", len(spans))
	}
	n := newNames(t)
	for _, span := range spans {
		if !n.has(span) {
			t.Errorf("docs/ARCHITECTURE.md names `%s`, which does not exist", span)
		}
	}
}

// TestMadeUpNamesAreFound proves that each kind of name is looked up.
func TestMadeUpNamesAreFound(t *testing.T) {
	n := newNames(t)
	for span, want := range map[string]bool{
		"inspan sessions show":          true,
		`inspan run "..."`:              true,
		"inspan sessions shew":          false,
		"inspan nothing":                false,
		"make safety":                   true,
		"make saftey":                   false,
		"internal/kernel/loop":          true,
		"internal/kernel/loops":         false,
		"internal/kernel/loop/gates.go": true,
		"internal/kernel/loop/gate.go":  false,
		"driver.go":                     true,
		"drives.go":                     false,
		"blobs/":                        true,
		"globs/":                        false,
		"said":                          true,
		"shouted":                       false,
		"loop.State.Next":               true,
		"loop.State.Nexts":              false,
		"loop.Status.Next":              false,
		"loops.State":                   false,
		"Session.Run":                   true,
		"Session.Walk":                  false,
		"Driver.ask":                    true,
		"driver.asks":                   false,
		"harnesstest.TestLog":           true,
		"harnesstest.TestLogs":          false,
		"TestNamesInArchitecture":       true,
		"TestNamesInArchitectures":      false,
		"Next()":                        true,
		"Nexts()":                       false,
		"key_command":                   true,
		"key_commands":                  false,
	} {
		if got := n.has(span); got != want {
			t.Errorf("`%s` exists: %v, want %v", span, got, want)
		}
	}
}

// spansOf returns the spans of code in a page, each once. Blocks of code are left out.
func spansOf(page string) (spans []string) {
	var prose strings.Builder
	code := false
	for line := range strings.Lines(page) {
		fence := strings.HasPrefix(line, "```")
		if !fence && !code {
			prose.WriteString(line)
		}
		if fence {
			code = !code
		}
	}
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(prose.String(), -1) {
		if span := strings.Join(strings.Fields(m[1]), " "); !slices.Contains(spans, span) {
			spans = append(spans, span)
		}
	}
	return spans
}

// names is everything that the repository gives a name to.
type names struct {
	commands map[string]bool            // words after inspan
	targets  map[string]bool            // of the Makefile
	paths    map[string]bool            // files and folders, from the root, and each by its last name
	packages map[string]bool            // by name
	declared map[string]bool            // at package level, as "package.Name"
	members  map[string]map[string]bool // of types, as "package.Type": fields, methods, and embedded types as "*package.Type"
	words    map[string]bool            // texts in the code, and the names of fields in files
}

func newNames(t *testing.T) *names {
	t.Helper()
	n := &names{
		commands: map[string]bool{}, targets: map[string]bool{}, paths: map[string]bool{}, packages: map[string]bool{},
		declared: map[string]bool{}, members: map[string]map[string]bool{}, words: map[string]bool{},
	}
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^([a-z0-9-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		n.targets[m[1]] = true
	}
	err = filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		file = filepath.ToSlash(file)
		n.paths[file], n.paths[path.Base(file)] = true, true
		if strings.HasSuffix(file, "_test.go") {
			return n.addTests(file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources(t) {
		n.add(s)
	}
	return n
}

// addTests notes the functions of a file of tests.
func (n *names) addTests(file string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, decl := range f.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
			n.declared["."+f.Name.Name] = true
		}
	}
	return nil
}

// add notes the declarations and texts of a file of the product.
func (n *names) add(s source) {
	name := s.file.Name.Name
	n.packages[name], n.packages[path.Base(s.dir)] = true, true
	ast.Inspect(s.file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			if node.Recv == nil {
				n.declared[name+"."+node.Name.Name] = true
			} else {
				n.member(name+"."+typeName(node.Recv.List[0].Type), node.Name.Name)
			}
		case *ast.TypeSpec:
			n.declared[name+"."+node.Name.Name] = true
			n.addType(name, node)
		case *ast.BasicLit:
			if text, err := strconv.Unquote(node.Value); err == nil && node.Kind == token.STRING {
				n.words[text] = true
			}
		case *ast.KeyValueExpr:
			if key, ok := node.Key.(*ast.Ident); ok && s.dir == "internal/front/command" && key.Name == "Use" {
				n.command(node.Value)
			}
		case *ast.CallExpr:
			if f, ok := node.Fun.(*ast.Ident); ok && s.dir == "internal/front/command" && f.Name == "group" {
				n.command(node.Args[0])
			}
		}
		return true
	})
	for _, decl := range s.file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range d.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, id := range v.Names {
						n.declared[name+"."+id.Name] = true
					}
				}
			}
		}
	}
}

// command notes the name of a command from the text of its usage.
func (n *names) command(usage ast.Expr) {
	if lit, ok := usage.(*ast.BasicLit); ok {
		if text, err := strconv.Unquote(lit.Value); err == nil && text != "" {
			n.commands[strings.Fields(text)[0]] = true
		}
	}
}

// addType notes the fields of a struct, with their names in files, and the methods of an interface.
func (n *names) addType(pkg string, spec *ast.TypeSpec) {
	var list *ast.FieldList
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		list = kind.Fields
	case *ast.InterfaceType:
		list = kind.Methods
	default:
		return
	}
	of := pkg + "." + spec.Name.Name
	for _, f := range list.List {
		for _, id := range f.Names {
			n.member(of, id.Name)
		}
		if f.Tag != nil {
			tag, _ := strconv.Unquote(f.Tag.Value) // it has been parsed
			for _, key := range []string{"json", "toml", "yaml"} {
				word, _, _ := strings.Cut(reflect.StructTag(tag).Get(key), ",")
				n.words[word] = true
			}
		}
		if len(f.Names) > 0 {
			continue
		}
		embedded := typeName(f.Type)
		if !strings.Contains(embedded, ".") {
			embedded = pkg + "." + embedded
		}
		n.member(of, embedded[strings.LastIndex(embedded, ".")+1:])
		n.member(of, "*"+embedded)
	}
}

func (n *names) member(of, name string) {
	if n.members[of] == nil {
		n.members[of] = map[string]bool{}
	}
	n.members[of][name] = true
}

// typeName returns the name of a type, without pointers and type arguments.
func typeName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.IndexListExpr:
		return typeName(x.X)
	case *ast.SelectorExpr:
		return typeName(x.X) + "." + x.Sel.Name
	}
	return ""
}

// has reports whether the thing that a span names exists.
func (n *names) has(span string) bool {
	first, rest, several := strings.Cut(span, " ")
	switch {
	case several && first == "inspan":
		return n.isCommand(strings.Fields(rest))
	case several && first == "make":
		return n.targets[rest]
	case several:
		return false
	case strings.Contains(span, "/"):
		return n.paths[strings.TrimSuffix(span, "/")] || n.written(span)
	}
	if call := strings.IndexByte(span, '('); call > 0 && strings.HasSuffix(span, ")") {
		span = span[:call]
	}
	return n.paths[span] || n.packages[span] || n.words[span] || n.isIdentifier(strings.Split(span, "."))
}

// isCommand reports whether words are a command, up to its arguments.
func (n *names) isCommand(words []string) bool {
	for i, word := range words {
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, `"`) || word == strings.ToUpper(word) {
			return i > 0
		}
		if !n.commands[word] {
			return false
		}
	}
	return true
}

// written reports whether a path is one that the code makes of texts, as those in the folder of sessions.
func (n *names) written(span string) bool {
	for part := range strings.SplitSeq(strings.Trim(span, "/"), "/") {
		if !n.words[part] {
			return false
		}
	}
	return true
}

// isIdentifier looks for a declaration: of a package if the first part names one, else of any. A single
// name may also be that of a field or a method.
func (n *names) isIdentifier(parts []string) bool {
	if len(parts) > 1 && n.packages[parts[0]] && n.declared[parts[0]+"."+parts[1]] {
		return len(parts) == 2 || n.reaches(parts[0]+"."+parts[1], parts[2:], 0)
	}
	for name := range n.declared {
		if name[strings.IndexByte(name, '.')+1:] == parts[0] && (len(parts) == 1 || n.reaches(name, parts[1:], 0)) {
			return true
		}
	}
	if len(parts) == 1 {
		for _, of := range n.members {
			if of[parts[0]] {
				return true
			}
		}
	}
	return false
}

// reaches reports whether a type has a field or a method, itself or by a type that it embeds.
func (n *names) reaches(of string, parts []string, depth int) bool {
	if len(parts) != 1 || depth > 5 {
		return false
	}
	for member := range n.members[of] {
		if member == parts[0] {
			return true
		}
		if embedded, ok := strings.CutPrefix(member, "*"); ok && n.reaches(embedded, parts, depth+1) {
			return true
		}
	}
	return false
}

package policy_test

// Documents that are made from the code, or must agree with it. Run with -update to write them again.

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
)

var update = flag.Bool("update", false, "write generated documents anew")

func golden(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is out of date; run: go test ./test/policy -run %s -update\n%s", path, t.Name(), diff)
	}
}

func pkg(t *testing.T, dir string) (*doc.Package, *token.FileSet) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+"/"+dir, doc.PreserveAST)
	if err != nil {
		t.Fatal(err)
	}
	return p, fset
}

// TestEventsDocument keeps docs/EVENTS.md equal to the comments in the code.
func TestEventsDocument(t *testing.T) {
	p, fset := pkg(t, "event")
	var b strings.Builder
	b.WriteString("# Events\n\nMade from the comments in package `event`; do not edit. One JSON object a line:\n\n" +
		"    {\"seq\":1,\"time\":\"...\",\"session\":\"...\",\"kind\":\"said\",\"body\":{...}}\n\n" +
		"Kinds and fields are only ever added, and readers keep those that they do not know. A reader that does not\n" +
		"know a kind marked `\"must\":true` may show the session, but must not continue it. Any process may append\n" +
		"an input; other kinds come from the program that drives the session, the driver.\n\n" +
		"Fields without a type are strings. Those in bold are always there, others only if they are not empty. In Go,\n" +
		"the field `message` of `said` is `Said.Message`.\n")
	slices.SortFunc(p.Types, func(a, b *doc.Type) int { return int(a.Decl.Pos() - b.Decl.Pos()) })
	for _, typ := range p.Types {
		kind := kindOf(typ)
		if kind == "" || typ.Name == "Unknown" {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", kind, strings.TrimSpace(typ.Doc))
		b.WriteString("\n" + fieldsOf(t, fset, p, typ))
		if body, err := event.Decode([]byte(`{"seq":1,"time":"2026-01-02T15:04:05.000Z","session":"s","kind":"` +
			kind + `","body":{}}`)); err != nil {
			t.Errorf("%s: %v", kind, err)
		} else if _, unknown := body.Body.(event.Unknown); unknown {
			t.Errorf("%s can't be decoded", kind)
		}
	}
	golden(t, "docs/EVENTS.md", b.String())
}

// fieldsOf lists the fields of an event with their names in JSON, their types and their comments.
func fieldsOf(t *testing.T, fset *token.FileSet, p *doc.Package, typ *doc.Type) string {
	t.Helper()
	var b strings.Builder
	for _, f := range typ.Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType).Fields.List {
		if len(f.Names) == 0 {
			embedded := f.Type.(*ast.Ident).Name
			at := slices.IndexFunc(p.Types, func(typ *doc.Type) bool { return typ.Name == embedded })
			b.WriteString(fieldsOf(t, fset, p, p.Types[at]))
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value) // it has been parsed
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		name = "`" + name + "`"
		if options == "" {
			name = "**" + name + "**"
		}
		b.WriteString(strings.TrimSuffix("- "+name+" "+jsonType(printed(t, fset, f.Type)), " "))
		comment := strings.Join(strings.Fields(f.Doc.Text()+f.Comment.Text()), " ")
		comment = regexp.MustCompile("^"+f.Names[0].Name+`(:| is| are) |\.$`).ReplaceAllString(comment, "")
		if comment != "" {
			b.WriteString(": " + comment)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// jsonType returns the name of a Go type for readers of JSON; empty for a string.
func jsonType(goType string) string {
	name := strings.TrimPrefix(goType, "*")
	if name == "[]string" {
		return name
	}
	if element, ok := strings.CutPrefix(name, "[]"); ok {
		return "[]" + jsonType(element)
	}
	switch name {
	case "string":
		return ""
	case "int", "int64", "uint64", "float64":
		return "number"
	case "json.RawMessage":
		return "JSON"
	case "time.Time":
		return "time"
	}
	return name
}

// kindOf returns the result of a type's Kind method; "" if it has none.
func kindOf(typ *doc.Type) string {
	for _, m := range typ.Methods {
		if m.Name != "Kind" {
			continue
		}
		if ret, ok := m.Decl.Body.List[0].(*ast.ReturnStmt); ok {
			if lit, ok := ret.Results[0].(*ast.BasicLit); ok {
				return strings.Trim(lit.Value, `"`)
			}
			return "unknown"
		}
	}
	return ""
}

func printed(t *testing.T, fset *token.FileSet, node any) string {
	t.Helper()
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.UseSpaces | printer.TabIndent, Tabwidth: 4}).Fprint(&b, fset, node); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAPI keeps test/policy/api.txt equal to the exports of the public packages, so that every addition is a line in a
// review.
func TestAPI(t *testing.T) {
	var lines []string
	for _, dir := range public(t) {
		p, fset := pkg(t, dir)
		name := "pkg " + dir + ", "
		for _, f := range p.Funcs {
			lines = append(lines, name+signature(t, fset, f))
		}
		for _, v := range append(slices.Clone(p.Consts), p.Vars...) {
			for _, n := range v.Names {
				lines = append(lines, name+v.Decl.Tok.String()+" "+n)
			}
		}
		for _, typ := range p.Types {
			lines = append(lines, typeLines(t, fset, name, typ)...)
		}
	}
	slices.Sort(lines)
	golden(t, "test/policy/api.txt", strings.Join(slices.Compact(lines), "\n")+"\n")
}

// public returns the folders of the packages that other modules can import.
func public(t *testing.T) (dirs []string) {
	for _, s := range sources(t) {
		if s.file.Name.Name != "main" && !slices.Contains(strings.Split(s.dir, "/"), "internal") && !slices.Contains(dirs, s.dir) {
			dirs = append(dirs, s.dir)
		}
	}
	return dirs
}

func typeLines(t *testing.T, fset *token.FileSet, name string, typ *doc.Type) []string {
	var lines []string
	spec := typ.Decl.Specs[0].(*ast.TypeSpec)
	lines = append(lines, name+"type "+typ.Name)
	if st, ok := spec.Type.(*ast.StructType); ok {
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				if n.IsExported() {
					lines = append(lines, fmt.Sprintf("%stype %s, %s %s", name, typ.Name, n.Name, printed(t, fset, f.Type)))
				}
			}
		}
	}
	for _, f := range append(slices.Clone(typ.Funcs), typ.Methods...) {
		lines = append(lines, name+signature(t, fset, f))
	}
	for _, v := range append(slices.Clone(typ.Consts), typ.Vars...) {
		for _, n := range v.Names {
			lines = append(lines, name+v.Decl.Tok.String()+" "+n)
		}
	}
	return lines
}

func signature(t *testing.T, fset *token.FileSet, f *doc.Func) string {
	decl := *f.Decl
	decl.Doc, decl.Body = nil, nil
	return strings.Join(strings.Fields(printed(t, fset, &decl)), " ")
}

// TestRolesListTheirPackages keeps the doc.go of each role, and the table of docs/ARCHITECTURE.md, equal to the folders.
func TestRolesListTheirPackages(t *testing.T) {
	page, err := os.ReadFile("docs/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, there := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		role, name, below := strings.Cut(strings.TrimPrefix(s.dir, "internal/"), "/")
		switch {
		case !strings.HasPrefix(s.dir, "internal/") || role == "testkit":
		case strings.HasPrefix(name, "sandbox/"): // see TestRoomsOfTheSandbox
		case !below:
			if !strings.Contains(string(page), "`internal/"+role+"`") {
				t.Errorf("docs/ARCHITECTURE.md has no row for internal/%s", role)
			}
			for _, m := range regexp.MustCompile(`(?m)^\t([a-z0-9/]+) `).FindAllStringSubmatch(s.file.Doc.Text(), -1) {
				listed[role+"/"+m[1]] = true
			}
		default:
			there[role+"/"+name] = true
		}
	}
	for dir := range there {
		if !listed[dir] {
			t.Errorf("the doc.go of its role does not list internal/%s", dir)
		}
	}
	for dir := range listed {
		if !there[dir] {
			t.Errorf("a doc.go lists internal/%s, which is not there", dir)
		}
	}
}

package workflow

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../docs/WORKFLOWS.md"

var update = flag.Bool("update", false, "write the table of fields anew")

// TestPage checks that all files and steps that docs/WORKFLOWS.md shows can run as they stand there.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	used := func(name string) (string, []byte, error) {
		path := "testdata/used/" + name + ".yaml"
		data, err := os.ReadFile(path)
		return path, data, err
	}
	file, steps := "", 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		block := m[1]
		if strings.HasPrefix(block, "name:") {
			file = block
		} else {
			block = file + "  " + strings.ReplaceAll(strings.TrimSpace(block), "\n", "\n  ") + "\n"
			steps++
		}
		if _, err := Parse("page.yaml", []byte(block), used); err != nil {
			t.Errorf("%v in\n%s", err, m[1])
		}
	}
	if steps < 9 {
		t.Errorf("only %d examples of steps", steps)
	}
	if lines := strings.Count(string(text), "\n"); lines >= 250 {
		t.Errorf("the page has %d lines", lines)
	}
}

// TestTableOfFields keeps the list of fields in docs/WORKFLOWS.md equal to the fields and their comments.
func TestTableOfFields(t *testing.T) {
	said := comments(t)
	var b strings.Builder
	b.WriteString("Each field with the file or the kinds of steps that have it, its value (a line of text, if none is named) and its meaning. Those in **bold** are required.\n\n")
	for _, f := range topFields() {
		b.WriteString(row(t, said, "Workflow", "the file", f))
	}
	for _, f := range stepFields() {
		kinds := list(f.kinds)
		if f.kinds == nil {
			kinds = "each step"
		}
		b.WriteString(row(t, said, "Step", kinds, f))
	}
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), "<!-- fields -->\n")
	_, after, closed := strings.Cut(rest, "<!-- /fields -->")
	if !ok || !closed {
		t.Fatal("the page has no place for the list")
	}
	want := before + "<!-- fields -->\n" + b.String() + "<!-- /fields -->" + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, string(raw)); diff != "" {
		t.Errorf("run: go test ./workflow -run %s -update\n%s", t.Name(), diff)
	}
}

// row is the line of a field of a type, with the fields that it has itself.
func row(t *testing.T, said map[string]string, of, kinds string, f field) string {
	t.Helper()
	what, known := said[of+"."+f.name]
	if !known {
		t.Errorf("%s has no field %s", of, f.name)
	}
	inner := map[string]string{"returns": "Return", "limits": "Limits", "retry": "Retry", "budget": "Budget", "safe_outputs": "SafeOutput"}
	var parts []string
	for _, part := range f.of {
		parts = append(parts, strings.TrimSuffix(named(part)+": "+said[inner[f.name]+"."+part.name], ": "))
	}
	if len(parts) > 0 {
		what = strings.TrimPrefix(what+". "+strings.Join(parts, "; "), ". ")
	}
	if f.shape != isWord {
		kinds += "; " + strings.TrimPrefix(string(f.shape), "a ")
	}
	line := fmt.Sprintf("- %s (%s): %s", named(f), kinds, what)
	return strings.TrimSuffix(line, ": ") + "\n"
}

func named(f field) string {
	if f.need {
		return "**`" + f.name + "`**"
	}
	return "`" + f.name + "`"
}

// comments are the comments in workflow.go on the fields of its types, by their names in files.
func comments(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "workflow.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		typ, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := typ.Type.(*ast.StructType)
		if !ok {
			return false
		}
		for _, f := range fields.Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				t.Fatal(err)
			}
			name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
			what := strings.TrimSpace(f.Doc.Text() + f.Comment.Text())
			what = strings.TrimPrefix(strings.TrimPrefix(what, f.Names[0].Name+" are "), f.Names[0].Name+" is ")
			out[typ.Name.Name+"."+name] = strings.TrimSuffix(strings.ReplaceAll(what, "\n", " "), ".")
		}
		return false
	})
	return out
}

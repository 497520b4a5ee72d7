package policy_test

import (
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// link matches a link of a doc comment to a name, such as [Agent.Run] or [*tool.CallError]. Words in capitals, such as
// [DONE], are no links.
var link = regexp.MustCompile(`\[\*?(?:([a-z]+)\.)?([A-Z]\w*[a-z]\w*(?:\.[A-Z]\w*)?)\]`)

// TestDocLinks checks that links in comments of the public packages name things that exist.
func TestDocLinks(t *testing.T) {
	names := map[string]map[string]bool{} // by package, both by its folder and by its name
	for _, src := range sources(t) {
		for _, key := range []string{src.dir, src.file.Name.Name} {
			if names[key] == nil {
				names[key] = map[string]bool{}
			}
			for _, decl := range src.file.Decls {
				declared(decl, names[key])
			}
		}
	}
	if !names["."]["Agent.Run"] || !names["tool"]["Call.Do"] {
		t.Fatal("known names are missing")
	}
	dirs := public(t)
	for _, src := range sources(t) {
		if !slices.Contains(dirs, src.dir) {
			continue
		}
		for _, group := range src.file.Comments {
			for _, m := range link.FindAllStringSubmatch(group.Text(), -1) {
				key := src.dir
				if m[1] != "" {
					key = m[1]
				}
				of, _, _ := strings.Cut(m[2], ".")
				if known := names[key]; known != nil && !known[m[2]] && !known[of+".*"] {
					t.Errorf("%s links to %s, which does not exist", path.Join(src.dir, path.Base(src.path)), m[0])
				}
			}
		}
	}
}

// declared adds the names of a declaration to the set: those of types with their fields and methods, too. Type.* stands
// for a type with embedded fields.
func declared(decl ast.Decl, names map[string]bool) {
	if f, ok := decl.(*ast.FuncDecl); ok {
		name := f.Name.Name
		if f.Recv != nil {
			ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if ok {
					name = id.Name + "." + f.Name.Name
				}
				return !ok && name == f.Name.Name // the first identifier, without type parameters
			})
		}
		names[name] = true
		return
	}
	gen := decl.(*ast.GenDecl)
	for _, spec := range gen.Specs {
		switch s := spec.(type) {
		case *ast.ValueSpec:
			for _, id := range s.Names {
				names[id.Name] = true
			}
		case *ast.TypeSpec:
			names[s.Name.Name] = true
			var fields *ast.FieldList
			switch typ := s.Type.(type) {
			case *ast.StructType:
				fields = typ.Fields
			case *ast.InterfaceType:
				fields = typ.Methods
			default: // an alias, or a type with the fields of another
				names[s.Name.Name+".*"] = true
				continue
			}
			for _, f := range fields.List {
				if len(f.Names) == 0 {
					names[s.Name.Name+".*"] = true
				}
				for _, id := range f.Names {
					names[s.Name.Name+"."+id.Name] = true
				}
			}
		}
	}
}

package config_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/install/config"
)

var update = flag.Bool("update", false, "write the schema anew")

// TestSchema keeps the schema equal to the types and their comments, and holds
// the sample against it.
func TestSchema(t *testing.T) {
	m := maker{t: t, comments: map[string]string{}, open: map[reflect.Type]bool{}}
	for _, dir := range []string{".", "../../safety/guard", "../../extend/profile", "../../extend/hook", "../../world/web", "../../../llm", "../../../llm/router", "../../../event"} {
		m.read(dir)
	}
	root := m.schema(reflect.TypeFor[config.Config]())
	root["$schema"], root["title"] = "https://json-schema.org/draft/2020-12/schema", "Settings of inspan"
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "\t")
	if err := enc.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(b.Bytes(), config.Schema()) {
		t.Error("schema.json is not what the types say; 'make update' writes it anew")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b.Bytes(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	var sample map[string]any
	if _, err := toml.DecodeFile("../../../docs/config.sample.toml", &sample); err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(plain(t, sample)); err != nil {
		t.Errorf("the sample: %v", err)
	}
	for _, bad := range []string{`{"modle":"x"}`, `{"sandbox":{"of":true}}`, `{"max_turns":"many"}`, `{"rule":[{"reason":1}]}`} {
		var v any
		if err := json.Unmarshal([]byte(bad), &v); err != nil {
			t.Fatal(err)
		}
		if resolved.Validate(v) == nil {
			t.Errorf("%s is valid", bad)
		}
	}
}

// plain is a value as JSON has it.
func plain(t *testing.T, v any) (out any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// maker makes schemas of types, with the comments of their fields.
type maker struct {
	t        *testing.T
	comments map[string]string // by "package.Type.Field"
	open     map[reflect.Type]bool
}

func (m maker) read(dir string) {
	m.t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		m.t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			m.t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			st, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			for _, field := range st.Fields.List {
				text := strings.TrimSpace(field.Comment.Text() + field.Doc.Text())
				for _, name := range field.Names {
					m.comments[f.Name.Name+"."+spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
				}
			}
			return true
		})
	}
}

func (m maker) schema(t reflect.Type) map[string]any {
	switch {
	case t.Kind() == reflect.Pointer:
		return m.schema(t.Elem())
	case t == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": "string", "pattern": `^([0-9.]+(ns|us|ms|s|m|h))+$`}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": m.schema(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": m.schema(t.Elem())}
	case reflect.Struct:
		return m.object(t)
	}
	m.t.Fatalf("no schema for %v", t)
	return nil
}

func (m maker) object(t reflect.Type) map[string]any {
	if m.open[t] { // a type that holds itself
		return map[string]any{"type": "object"}
	}
	m.open[t] = true
	defer delete(m.open, t)
	properties := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("toml")
		if name == "" || name == "-" {
			continue
		}
		s := m.schema(f.Type)
		in := t // where it is declared
		for _, i := range f.Index[:len(f.Index)-1] {
			in = in.Field(i).Type
		}
		parts := strings.Split(in.PkgPath(), "/")
		if text := m.comments[parts[len(parts)-1]+"."+in.Name()+"."+f.Name]; text != "" {
			s["description"] = text
		}
		properties[name] = s
	}
	return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
}

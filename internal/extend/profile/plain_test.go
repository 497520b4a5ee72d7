package profile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/inspan/inspan/internal/extend/profile"
	"github.com/inspan/inspan/tool"
)

func TestPlain(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for _, c := range []struct {
		name, in, want string
		lost           []string
	}{
		{
			"order", `{"properties":{"b":{"description":"B","type":"string"},"a":{"type":"integer"}},"required":["a"],"title":"T",` +
				`"additionalProperties":false,"type":"object"}`,
			`{"type":"object","required":["a"],"properties":{"b":{"type":"string","description":"B"},"a":{"type":"integer"}}}`, nil,
		},
		{
			"constraints", object(`"a":{"type":"string","description":"A name.","pattern":"^[a-z]+$","minLength":3,"default":"x"}`),
			object(`"a":{"type":"string","description":"A name. (pattern ^[a-z]+$; minLength 3; default x)"}`),
			[]string{"a: pattern ^[a-z]+$", "a: minLength 3", "a: default x"},
		},
		{
			"ref", `{"type":"object","properties":{"p":{"$ref":"#/$defs/p","description":"mine"}},"$defs":{"p":{"type":"object",` +
				`"description":"theirs","properties":{"x":{"type":"number"}},"required":["x"]}}}`,
			object(`"p":{"type":"object","description":"mine","required":["x"],"properties":{"x":{"type":"number"}}}`), nil,
		},
		{
			"cycle", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"},"v":{"type":"string"}}}}}`,
			object(`"next":{"type":"object","description":"(as in #/$defs/n)","properties":{}},"v":{"type":"string"}`),
			[]string{"next: as in #/$defs/n"},
		},
		{
			"bad ref", object(`"a":{"$ref":"https://x/y"},"b":{"$ref":"#/nowhere"}`),
			object(`"a":{"description":"($ref https://x/y)"},"b":{"description":"($ref #/nowhere)"}`),
			[]string{"a: $ref https://x/y", "b: $ref #/nowhere"},
		},
		{
			"null", object(`"a":{"anyOf":[{"type":"null"},{"type":"string"}]},"b":{"type":["integer","null"]}`),
			object(`"a":{"type":"string","description":"(or null)"},"b":{"type":"integer","description":"(or null)"}`),
			[]string{"a: or null", "b: or null"},
		},
		{
			"object first", object(`"a":{"oneOf":[{"type":"string"},{"type":"object","properties":{"x":{"type":"string"}}}]}`),
			object(`"a":{"type":"object","description":"(or string)","properties":{"x":{"type":"string"}}}`),
			[]string{"a: or string"},
		},
		{
			"constants", object(`"a":{"type":"string","oneOf":[{"const":"x","title":"X"},{"enum":["y"]}]},"b":{"const":1}`),
			object(`"a":{"type":"string","enum":["x","y"]},"b":{"enum":[1]}`), nil,
		},
		{
			"only required", `{"type":"object","properties":{"a":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","description":"(anyOf [{\"required\":[\"a\"]},{\"required\":[\"b\"]}])","properties":{"a":{"type":"string"}}}`,
			[]string{`arguments: anyOf [{"required":["a"]},{"required":["b"]}]`},
		},
		{
			"all of", `{"allOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, nil,
		},
		{
			"lists", object(`"a":{"type":"array","items":{"type":"string","format":"uri"},"minItems":1},"b":{"prefixItems":[{"type":"integer"},` +
				`{"type":"string"}]}`),
			object(`"a":{"type":"array","description":"(minItems 1)","items":{"type":"string","description":"(format uri)"}},` +
				`"b":{"type":"array","description":"(prefixItems [{\"type\":\"integer\"},{\"type\":\"string\"}])","items":{"type":"integer"}}`),
			[]string{"a[]: format uri", "a: minItems 1", `b: prefixItems [{"type":"integer"},{"type":"string"}]`},
		},
		{
			"map", object(`"a":{"type":"object","additionalProperties":{"type":"string"}}`),
			object(`"a":{"type":"object","description":"(additionalProperties {\"type\":\"string\"})","properties":{}}`),
			[]string{`a: additionalProperties {"type":"string"}`},
		},
		{
			"required that is not there", `{"type":"object","required":["x"]}`,
			`{"type":"object","description":"(required x)","properties":{}}`,
			[]string{"arguments: required x"},
		},
		{"no object", `{"type":"string"}`, `{"type":"object","description":"(type string)","properties":{}}`, []string{"arguments: type string"}},
		{"true", `true`, object(``), nil},
		{"empty", ``, object(``), nil},
		{"no JSON", `{"type":`, object(``), nil},
		{"html", object(`"a":{"type":"string","description":"<b> & c"}`), object(`"a":{"type":"string","description":"<b> & c"}`), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, lost := profile.Plain(json.RawMessage(c.in))
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.lost, lost); diff != "" {
				t.Error(diff)
			}
			stable(t, got)
		})
	}
}

// stable checks that a plain schema stays plain.
func stable(t *testing.T, plain json.RawMessage) {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(plain, &s); err != nil || s.Type != "object" {
		t.Fatalf("type %q, %v: %s", s.Type, err, plain)
	}
	if _, err := s.Resolve(nil); err != nil {
		t.Errorf("%v: %s", err, plain)
	}
	again, lost := profile.Plain(plain)
	if string(again) != string(plain) || len(lost) > 0 {
		t.Errorf("again it loses %q and becomes\n%s\nfrom\n%s", lost, again, plain)
	}
}

// TestOwnTools checks that a schema made from a Go struct loses nothing.
func TestOwnTools(t *testing.T) {
	type edit struct {
		Old string `json:"old_string" jsonschema:"text to replace"`
		All bool   `json:"replace_all,omitempty"`
	}
	type in struct {
		Path  string `json:"path" jsonschema:"file to change"`
		Edits []edit `json:"edits" jsonschema:"edits, made in order"`
	}
	schema := tool.New[in]("edit", "Edit.", nil).Schema
	got, lost := profile.Plain(schema)
	want := `{"type":"object","required":["path","edits"],"properties":{"path":{"type":"string","description":"file to change"},` +
		`"edits":{"type":"array","description":"edits, made in order","items":{"type":"object","required":["old_string"],` +
		`"properties":{"old_string":{"type":"string","description":"text to replace"},"replace_all":{"type":"boolean"}}}}}}`
	if string(got) != want || lost != nil {
		t.Errorf("lost %q, got\n%s\nof\n%s", lost, got, schema)
	}
}

// monster is the schema that generators make of a query language.
const monster = `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","$ref":"#/definitions/Query","definitions":{
	"Query":{"type":"object","properties":{"where":{"$ref":"#/definitions/Filter"},"limit":{"type":["integer","null"],"minimum":1,"maximum":100,"default":10},
		"order":{"type":"array","items":{"anyOf":[{"$ref":"#/definitions/Field"},{"type":"object","properties":{"field":{"$ref":"#/definitions/Field"},"desc":{"type":"boolean"}},"required":["field"]}]}}},
		"required":["where"],"if":{"properties":{"limit":{"const":1}}},"then":{"required":["order"]}},
	"Filter":{"oneOf":[{"type":"object","properties":{"and":{"type":"array","items":{"$ref":"#/definitions/Filter"}}}},{"$ref":"#/definitions/Leaf"}]},
	"Leaf":{"type":"object","properties":{"field":{"$ref":"#/definitions/Field"},"eq":{}},"patternProperties":{"^x-":{}}},
	"Field":{"type":"string","pattern":"^[a-z]+(~1|/)$","examples":["a"]}}}`

func TestMonster(t *testing.T) {
	got, lost := profile.Plain(json.RawMessage(monster))
	stable(t, got)
	for _, part := range []string{
		`"where":{"type":"object"`, `"required":["where"]`, `"order":{"type":"array"`, `"desc":{"type":"boolean"}`,
		"(or null; minimum 1; maximum 100; default 10)",
	} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
	all := strings.Join(lost, "\n")
	for _, part := range []string{
		"limit: maximum 100", "where.and[]: as in #/definitions/Filter",
		"order[].field: pattern ^[a-z]+(~1|/)$", "arguments: if ",
	} {
		if !strings.Contains(all, part) {
			t.Errorf("%s is not in\n%s", part, all)
		}
	}
}

// TestExplosion checks that references that double at each step end.
func TestExplosion(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/a","$defs":{`)
	for c := 'a'; c < 'z'; c++ {
		next := string(c + 1)
		b.WriteString(`"` + string(c) + `":{"type":"object","properties":{"l":{"$ref":"#/$defs/` +
			next + `"},"r":{"$ref":"#/$defs/` + next + `"}}},`)
	}
	b.WriteString(`"z":{"type":"string"}}}`)
	got, lost := profile.Plain(json.RawMessage(b.String()))
	stable(t, got)
	if len(got) > 1<<20 || len(lost) == 0 {
		t.Errorf("%d bytes, %d lost", len(got), len(lost))
	}
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte(monster))
	f.Add([]byte(`{"type":["object"],"required":["a",1],"properties":{"a":{"enum":[]},"":{"items":[{}]}},"allOf":[true]}`))
	f.Add([]byte("{\"x\":\"\xff\"}"))
	f.Add([]byte(`{"anyOf":[],"$ref":"#","not":{}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, _ := profile.Plain(in)
		stable(t, got)
	})
}

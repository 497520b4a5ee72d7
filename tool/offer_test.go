package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestOffered checks the form in which a model gets a schema: a schema that a vendor refuses would fail every request
// of the session.
func TestOffered(t *testing.T) {
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	for _, row := range []struct{ name, schema, want, words string }{
		{"as it should be", object(`"a":{"type":"string","default":null}`), object(`"a":{"type":"string","default":null}`), ""},
		{"spaced", "{ \"type\": \"object\",\n\"properties\": {} }", "{ \"type\": \"object\",\n\"properties\": {} }", ""},
		{"none", ``, object(``), ""},
		{"null", `null`, object(``), ""},
		{"empty", `{}`, object(``), ""},
		{"bare", `{"type":"object"}`, object(``), ""},
		{"no type", `{"properties":{"a":{"type":"string"}}}`, object(`"a":{"type":"string"}`), ""},
		{"types", `{"type":["object","null"],"properties":{}}`, object(``), ""},
		{"no properties", `{"type":"object","properties":null}`, object(``), ""},
		{"a list for properties", `{"type":"object","properties":[]}`, object(``), ""},
		{"required null", `{"type":"object","properties":{"a":{"type":"string"}},"required":null}`, object(`"a":{"type":"string"}`), ""},
		{"required empty", `{"type":"object","properties":{},"required":[]}`, object(``), ""},
		{
			"required unknown", `{"type":"object","properties":{},"required":["a","a",7]}`,
			`{"type":"object","properties":{"a":{}},"required":["a"]}`, "",
		},
		{
			"required of draft 3", object(`"a":{"type":"string","required":true},"b":{"type":"string","required":false}`),
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["a"]}`, "",
		},
		{
			"deep", object(`"a":{"type":"array","items":{"type":"object","required":null}},"b":{"type":"array"},"c":{"type":"object"}`),
			object(`"a":{"type":"array","items":{"type":"object","properties":{}}},"b":{"type":"array","items":{}},"c":{"type":"object","properties":{}}`), "",
		},
		{
			"arrays in choices", object(`"a":{"anyOf":[{"type":"array"},{"type":"null"}]}`),
			object(`"a":{"anyOf":[{"type":"array","items":{}},{"type":"null"}]}`), "",
		},
		{
			"a tuple", object(`"a":{"type":"array","items":[{"type":"string"},{"type":"number"}],"additionalItems":false}`),
			object(`"a":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"maxItems":2,"items":{}}`), "",
		},
		{
			"draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","id":"http://x/y",` +
				`"type":"object","properties":{"id":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`,
			object(`"id":{"type":"number","exclusiveMinimum":0,"maximum":9}`), "",
		},
		{
			"names of types", object(`"a":"string","b":null,"c":true,"d":{"type":"STRING"},"e":{"type":"any"},"f":{"type":"float"},"g":{"type":"blob"}`),
			object(`"a":{"type":"string"},"b":{},"c":{},"d":{"type":"string"},"e":{},"f":{"type":"number"},"g":{"description":"(type blob)"}`), "",
		},
		{
			"nullable", object(`"a":{"type":"string","nullable":true,"minLength":1,"description":"A"},"b":{"type":"string","nullable":false}`),
			object(`"a":{"anyOf":[{"type":"string","minLength":1},{"type":"null"}],"description":"A"},"b":{"type":"string"}`), "",
		},
		{
			"lists of types", object(`"a":{"type":["string","array"]},"b":{"type":["string"]}`),
			object(`"a":{"anyOf":[{"type":"string"},{"type":"array","items":{}}]},"b":{"type":"string"}`), "",
		},
		{
			"wrong keywords", object(`"a":{"type":"string","minLength":"2","maxLength":"many","enum":[],"pattern":"^(?!x)","format":"uint8","title":null}`),
			object(`"a":{"type":"string","minLength":2,"description":"(maxLength many) (pattern ^(?!x)) (format uint8)"}`), "",
		},
		{"free", `{"type":"object","properties":{},"additionalProperties":{}}`, object(``), ""},
		{"closed", `{"type":"object","properties":{},"additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{
			"choice", `{"anyOf":[` + object(`"a":{"type":"string"}`) + `,` + object(`"b":{"type":"string"}`) + `]}`,
			object(`"a":{"type":"string"},"b":{"type":"string"}`), "Give the arguments of at least one of: a; or b",
		},
		{
			"one choice", `{"type":"object","oneOf":[{"properties":{"kind":{"const":"x"},"a":{}},"required":["kind","a"]},` +
				`{"title":"Other","properties":{"kind":{"const":"y"},"b":{}},"required":["kind"]}]}`,
			`{"type":"object","properties":{"kind":{"enum":["x","y"]},"a":{},"b":{}},"required":["kind"]}`,
			`Give the arguments of exactly one of: kind "x" (required), a (required); or Other: kind "y" (required), b`,
		},
		{
			"only required", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, object(`"a":{},"b":{}`),
			"Give the arguments of at least one of: a (required); or b (required)",
		},
		{
			"different", `{"oneOf":[` + object(`"a":{"type":"string"}`) + `,` + object(`"a":{"type":"number"}`) + `,{"type":"null"}]}`,
			object(`"a":{"anyOf":[{"type":"string"},{"type":"number"}]}`), "",
		},
		{
			"all", `{"allOf":[{"$ref":"#/$defs/p"},{"properties":{"b":{}},"required":["b"]}],"$defs":{"p":{"type":"object","properties":{"a":{}},"required":["a"]}}}`,
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a","b"]}`, "",
		},
		{
			"a reference", `{"$ref":"#/definitions/p","definitions":{"p":{"type":"object","properties":{"a":{"$ref":"#/definitions/q"}}},"q":{"type":"string"}}}`,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/q"}},"$defs":{"q":{"type":"string"}}}`, "",
		},
		{
			"to a property", object(`"a":{"type":"string"},"b":{"$ref":"#/properties/a"}`),
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"string"}}}`, "",
		},
		{
			"a tree", object(`"next":{"$ref":"#"}`),
			`{"type":"object","properties":{"next":{"$ref":"#/$defs/arguments"}},"$defs":{"arguments":{"type":"object","properties":{"next":{"$ref":"#/$defs/arguments"}}}}}`, "",
		},
		{
			"values", `{"type":"object","enum":[{"a":1}],"not":{"required":["b"]}}`, object(``),
			"The arguments as a whole must be one of: {\"a\":1}\nThe arguments must not fit this schema: {\"required\":[\"b\"]}",
		},
		{
			"odd names", `{"type":"object","properties":{"$filter":{"type":"string"},"a":{}},"required":["$filter"],"additionalProperties":false}`,
			object(`"a":{}`), `There is also the argument "$filter", which is required: {"type":"string"}`,
		},
	} {
		spec := tool.Tool{Name: "t", Doc: "Does.", Schema: json.RawMessage(row.schema)}.Spec()
		want := "Does."
		if row.words != "" {
			want += "\n" + row.words
		}
		if string(spec.Schema) != row.want || spec.Description != want {
			t.Errorf("%s:\n%s\n%s\n%s", row.name, spec.Schema, row.want, spec.Description)
		}
		again := tool.Tool{Schema: spec.Schema}.Spec()
		if string(again.Schema) != string(spec.Schema) || again.Description != "" {
			t.Errorf("%s: again: %s %s", row.name, again.Schema, again.Description)
		}
	}
}

// TestOfferedIsChecked checks that arguments are validated by the meaning of the schema, even if the model gets a part
// of it in words, and that older forms can be validated.
func TestOfferedIsChecked(t *testing.T) {
	for _, row := range []struct{ schema, good, bad string }{
		{`{"oneOf":[{"required":["a"]},{"required":["b"]}],"properties":{"a":{},"b":{}}}`, `{"a":1}`, `{"a":1,"b":2}`},
		{`{"properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`, `{"a":1}`, `{"a":0}`},
		{`{"properties":{"a":{"type":"string","required":true}}}`, `{"a":"x"}`, `{}`},
		{`{"properties":{"a":{"type":"integer","nullable":true}},"required":["a"]}`, `{"a":null}`, `{"a":"x"}`},
		{`{"properties":{"$filter":{"type":"integer"}}}`, `{"$filter":1}`, `{"$filter":"x"}`},
		{`{"properties":{"a":"integer"}}`, `{"a":1}`, `{"a":"x"}`},
		{`{"definitions":{"p":{"type":"integer"}},"$defs":{"p":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/p"}}}`, `{"a":1}`, `{"a":"x"}`},
	} {
		tl := tool.Tool{Name: "t", Schema: json.RawMessage(row.schema)}
		if got, err := tl.Check(json.RawMessage(row.good)); err != nil || string(got) != row.good {
			t.Errorf("%s: %s, %v", row.schema, got, err)
		}
		if got, err := tl.Check(json.RawMessage(row.bad)); err == nil || strings.HasPrefix(err.Error(), "schema of ") {
			t.Errorf("%s: %s, %v", row.schema, got, err)
		}
	}
}

// TestOfferedEnds checks that no schema takes long or makes much.
func TestOfferedEnds(t *testing.T) {
	for _, schema := range []string{
		doubling("allOf"), doubling("anyOf"), `{"$ref":"#"}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		`{"allOf":[{"$ref":"#/$defs/d0"}],` + strings.TrimPrefix(doubling("allOf"), "{"), `{"anyOf":[{"$ref":"#/$defs/d0"}],` + strings.TrimPrefix(doubling("oneOf"), "{"),
		`[1]`, `7`, `"x"`, `{"type":7}`, `{"properties":{"a":{"$ref":7,"type":{}}}}`, strings.Repeat(`{"not":`, 5000) + `{}` + strings.Repeat(`}`, 5000),
	} {
		spec := tool.Tool{Name: "t", Schema: json.RawMessage(schema)}.Spec()
		if len(spec.Schema) > 1<<20 || len(spec.Description) > 1<<14 || !json.Valid(spec.Schema) {
			t.Errorf("%.80s: %d bytes, %d in words", schema, len(spec.Schema), len(spec.Description))
		}
	}
}

package tool_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/inspan/inspan/internal/testkit/anthropictest"
	"github.com/inspan/inspan/internal/testkit/geminitest"
	"github.com/inspan/inspan/internal/testkit/ollamatest"
	"github.com/inspan/inspan/internal/testkit/openaitest"
	"github.com/inspan/inspan/tool"
)

// TestEveryVendorTakesEverySchema offers tools with schemas as bad as servers write them, and worse, to
// the judges of all vendors.
func TestEveryVendorTakesEverySchema(t *testing.T) {
	seeds := 3000
	if testing.Short() {
		seeds = 600
	}
	for seed := range seeds {
		g := schemaMaker{rand.New(rand.NewPCG(uint64(seed), 7))}
		raw, err := json.Marshal(g.schema(0))
		if err != nil {
			t.Fatal(err)
		}
		spec := tool.Tool{Name: "f", Doc: "Does.", Schema: raw}.Spec()
		for vendor, err := range judged(string(spec.Schema)) {
			if err != nil {
				t.Fatalf("%d, %s: %v\n%s\n%s", seed, vendor, err, raw, spec.Schema)
			}
		}
	}
}

// judged asks the judges about a request with one tool.
func judged(schema string) map[string]error {
	return map[string]error{
		"openai": openaitest.Validate(fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",`+
			`"function":{"name":"f","parameters":%s}}]}`, schema)),
		"openai-responses": openaitest.ValidateResponses(fmt.Appendf(nil, `{"model":"m","input":"hi","tools":[{"type":"function","name":"f",`+
			`"strict":false,"parameters":%s}]}`, schema)),
		"anthropic": anthropictest.Validate(fmt.Appendf(nil, `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}],`+
			`"tools":[{"name":"f","input_schema":%s}]}`, schema)),
		"gemini": geminitest.Validate("gemini-3-pro", fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[`+
			`{"functionDeclarations":[{"name":"f","parametersJsonSchema":%s}]}]}`, schema)),
		"ollama": ollamatest.Validate(fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[`+
			`{"type":"function","function":{"name":"f","parameters":%s}}]}`, schema)),
	}
}

// schemaMaker makes schemas of all drafts, with mistakes.
type schemaMaker struct{ *rand.Rand }

func (g schemaMaker) one(values ...any) any { return values[g.IntN(len(values))] }

// schema makes one. Deep ones are small.
func (g schemaMaker) schema(depth int) any {
	if depth > 3 || depth > 0 && g.IntN(12) == 0 {
		return g.one(nil, true, false, "string", "text of the author", map[string]any{}, map[string]any{"type": "array"}, 7)
	}
	s := map[string]any{}
	for range g.IntN(6) {
		name, v := g.keyword(depth)
		s[name] = v
	}
	return s
}

func (g schemaMaker) schemas(depth int) any {
	if g.IntN(8) == 0 {
		return g.one(nil, []any{}, map[string]any{}, "x", true)
	}
	list := []any{}
	for range 1 + g.IntN(3) {
		list = append(list, g.schema(depth+1))
	}
	return list
}

func (g schemaMaker) named(depth int) any {
	if g.IntN(8) == 0 {
		return g.one(nil, []any{}, "x", true, map[string]any{})
	}
	m := map[string]any{}
	for range 1 + g.IntN(3) {
		name, _ := g.one("a", "b", "type", "required", "$ref", "items", "@odd name", "properties").(string)
		m[name] = g.schema(depth + 1)
	}
	return m
}

func (g schemaMaker) keyword(depth int) (name string, v any) {
	name, _ = g.one("type", "type", "properties", "properties", "required", "items", "prefixItems", "additionalItems", "additionalProperties",
		"anyOf", "oneOf", "allOf", "not", "if", "then", "else", "enum", "const", "$ref", "$defs", "definitions", "nullable", "minimum",
		"exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "pattern", "format", "description", "title", "default", "examples",
		"uniqueItems", "$schema", "id", "dependentSchemas", "patternProperties", "minItems").(string)
	switch name {
	case "type":
		return name, g.one("object", "object", "array", "string", "STRING", "any", "float", nil, []any{"string", "null"}, []any{"array", "object"},
			[]any{}, 7, map[string]any{}, []any{"integer"})
	case "properties", "$defs", "definitions", "dependentSchemas", "patternProperties":
		return name, g.named(depth)
	case "required":
		return name, g.one(nil, true, false, []any{}, []any{"a"}, []any{"a", "a", "z"}, []any{7}, "a", map[string]any{})
	case "items":
		if g.IntN(4) == 0 {
			return name, g.schemas(depth)
		}
		return name, g.schema(depth + 1)
	case "prefixItems", "anyOf", "oneOf", "allOf":
		return name, g.schemas(depth)
	case "additionalItems", "additionalProperties", "not", "if", "then", "else":
		return name, g.schema(depth + 1)
	case "enum", "examples":
		return name, g.one(nil, []any{}, []any{"x", "x", nil, 1}, "x", []any{map[string]any{"type": 7}})
	case "$ref":
		return name, g.one("#", "#/$defs/a", "#/definitions/a", "#/properties/b", "#/nothing", "http://elsewhere/x", 7, "#anchor", "#/anyOf/0")
	case "pattern":
		return name, g.one("^x$", "(", "(?!x)", 7)
	case "format":
		return name, g.one("date", "uint8", nil, 7)
	}
	return name, g.one(nil, true, false, 0, 1.5, -1, "1", "x", []any{1}, map[string]any{"a": 1})
}

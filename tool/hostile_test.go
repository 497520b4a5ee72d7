package tool_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestHostileSchemas has schemas of servers that want checking to never end, which would take the
// whole program with it: one value that comes back to the same schema, or doubles at each step.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range map[string]string{
		"escaped":              `{"$defs":{"a b":{"$ref":"#/$defs/a%20b"}},"properties":{"x":{"$ref":"#/$defs/a%20b"}}}`,
		"escaped letter":       `{"properties":{"x":{"$ref":"#/properties/%78"}}}`,
		"escaped badly":        `{"properties":{"x":{"$ref":"#/properties/%zz"}}}`,
		"other case":           `{"properties":{"x":{"$Ref":"#/properties/x"}}}`,
		"other case of a list": `{"properties":{"x":{"ALLOF":[{"$ref":"#/properties/x"}]}}}`,
		"an id below":          `{"properties":{"x":{"$id":"http://x/y","$ref":"#"}}}`,
		"an id in other case":  `{"properties":{"x":{"$ID":"http://x/y","allOf":[{"$ref":"#"}]}}}`,
		"an id on the way": `{"properties":{"x":{"$ref":"#/$defs/a/$defs/b"}},"$defs":{"a":{"$id":"http://x/y",` +
			`"$defs":{"b":{"$ref":"#/$defs/b"}}}}}`,
		"an index with a sign":  `{"properties":{"x":{"allOf":[{"$ref":"#/properties/x/allOf/+0"}]}}}`,
		"a slash in the name":   `{"$defs":{"a/b":{"$ref":"#/$defs/a~1b"}},"properties":{"x":{"$ref":"#/$defs/a~1b"}}}`,
		"conditions":            `{"properties":{"x":{"if":{"then":{"$ref":"#/properties/x"}},"else":{"not":{"if":{"$ref":"#/properties/x"}}}}}}`,
		"dependent":             `{"properties":{"x":{"dependentSchemas":{"q":{"$ref":"#/properties/x"}}}}}`,
		"dynamic":               `{"properties":{"x":{"$dynamicRef":"#x"}}}`,
		"to nothing":            `{"properties":{"x":{"$ref":"#/properties/y"}}}`,
		"to nothing in a list":  `{"properties":{"x":{"allOf":[{"$ref":"#/properties/x/allOf/7"}]}}}`,
		"to a word":             `{"properties":{"x":{"$ref":"#/properties/x/type/0","type":"object"}}}`,
		"an anchor":             `{"$defs":{"a":{"$anchor":"here"}},"properties":{"x":{"$ref":"#here"}}}`,
		"doubling":              doubling("allOf"),
		"doubling alternatives": doubling("anyOf"),
	} {
		_, err := (tool.Tool{Name: "t", Schema: json.RawMessage(schema)}).Check(json.RawMessage(`{"x":{"q":1}}`))
		if err == nil || !strings.Contains(err.Error(), "schema of t: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// doubling is a chain of forty schemas, each of which applies the next one twice.
func doubling(how string) string {
	var b strings.Builder
	b.WriteString(`{"properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, how, i+1, i+1)
	}
	return b.String() + `"d40":{}}}`
}

// TestUsualReferences checks that the references of honest servers are understood.
func TestUsualReferences(t *testing.T) {
	for name, schema := range map[string]string{
		"an id at the top": `{"$id":"http://x/y","$defs":{"n":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/n"}}}`,
		"an id alone":      `{"properties":{"x":{"$id":"http://x/y","type":"integer"}}}`,
		"an escaped name":  `{"$defs":{"Page<int>":{"type":"integer"}},"properties":{"x":{"$ref":"#/$defs/Page%3Cint%3E"}}}`,
		"a field named $id": `{"$defs":{"n":{"type":"integer"}},"properties":{"$id":{"type":"string"},"$ref":{"type":"string"},` +
			`"x":{"$ref":"#/$defs/n"}}}`,
		"the same one twice": `{"$defs":{"n":{"type":"integer"}},"properties":{"x":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}`,
		"many alternatives":  `{"properties":{"x":{"anyOf":[` + strings.Repeat(`{"type":"integer"},`, 2000) + `{"type":"string"}]}}}`,
		"old definitions": `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"n":{"type":"integer"}},` +
			`"properties":{"x":{"$ref":"#/definitions/n"}}}`,
		"a tree": `{"$defs":{"t":{"type":["object","integer"],"properties":{"l":{"$ref":"#/$defs/t"},"r":{"$ref":"#/$defs/t"}}}},` +
			`"properties":{"x":{"$ref":"#/$defs/t"}}}`,
	} {
		got, err := (tool.Tool{Name: "t", Schema: json.RawMessage(schema)}).Check(json.RawMessage(`{"x":7}`))
		if err != nil || string(got) != `{"x":7}` {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

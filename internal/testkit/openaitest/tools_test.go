package openaitest

import (
	"fmt"
	"strings"
	"testing"
)

// TestTools checks that both wires object to the tools that the vendor objects to.
func TestTools(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{}}`: "",
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"array","items":{}},{"type":"null"}]}}}`: "",
		`{"type":"object"}`: "In context=(), object schema missing properties",
		`{"type":"object","properties":{"a":{"type":"array"}}}`:  "In context=('properties', 'a'), array schema missing items",
		`{"type":"object","properties":{"a":{"type":"object"}}}`: "In context=('properties', 'a'), object schema missing properties",
		`{"type":"object","properties":{},"anyOf":[{}]}`:         "at the top level",
		`{"type":"object","properties":{},"not":{}}`:             "at the top level",
		`{"properties":{}}`:                                 "type",
		`{"type":["object"],"properties":{}}`:               "type",
		`{"type":"object","properties":{},"required":null}`: "None is not of type 'array'",
		`{"type":"object","properties":{"type":"object"}}`:  "'object' is not of type 'object', 'boolean'",
		`{"type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true}}}`:         "True is not of type 'number'",
		`{"type":"object","properties":{"a":{"type":"any"}}}`:                                                "'any' is not valid",
		`{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`:                  "is not of type",
		`{"type":"object","properties":{"required":{"type":"string"},"items":{"type":"string","enum":[1]}}}`: "",
		`[]`: "is not of type 'object'",
	} {
		chat := Validate(fmt.Appendf(nil, `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":`+
			`{"name":"f","parameters":%s}}]}`, schema))
		responses := ValidateResponses(fmt.Appendf(nil, `{"model":"m","input":"hi","tools":[{"type":"function","name":"f","strict":false,`+
			`"parameters":%s}]}`, schema))
		for _, err := range []error{chat, responses} {
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", schema, err, want)
			}
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"f"}},`, 129), ",")
	for fields, want := range map[string]string{
		`"tools":[]`:             "empty array",
		`"tool_choice":"none"`:   "tool_choice",
		`"tools":[` + many + `]`: "array too long",
		`"tools":[{"type":"function","function":{"name":"a.b"}}]`: "pattern",
	} {
		if err := Validate([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}],` + fields + `}`)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", fields, err, want)
		}
	}
}

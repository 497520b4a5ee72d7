package geminitest

import (
	"fmt"
	"strings"
	"testing"
)

// TestTools checks that the fake objects to the tools that the vendor objects to.
func TestTools(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{}}`: "",
		`{"type":"object"}`:                 "",
		`{"properties":{}}`:                 "type OBJECT",
		`[]`:                                "type OBJECT",
		`{"type":"object","properties":{},"required":["a"]}`:                   "required[0]: property is not defined",
		`{"type":"object","properties":{"a":{"type":"array"}}}`:                "parameters.properties.a.items: missing field",
		`{"type":"object","properties":{"a":"string"}}`:                        "is not of type",
		`{"type":"object","properties":{"a":{"type":"array","items":{}}}}`:     "",
		`{"type":"object","properties":{"a":{"type":"object","required":{}}}}`: "parameters.properties.a.required",
	} {
		err := Validate("gemini-3-pro", fmt.Appendf(nil, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[`+
			`{"name":"f","parametersJsonSchema":%s}]}]}`, schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
	many := strings.TrimSuffix(strings.Repeat(`{"name":"f"},`, 513), ",")
	err := Validate("gemini-3-pro", []byte(`{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"tools":[{"functionDeclarations":[`+many+`]}]}`))
	if err == nil || !strings.Contains(err.Error(), "512") {
		t.Errorf("%v", err)
	}
}

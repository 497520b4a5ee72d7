package ollamatest

import (
	"fmt"
	"strings"
	"testing"
)

// TestTools holds that the fake objects to the tools that the server can't read.
func TestTools(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"string"}]}}}`: "",
		`{"type":"object"}`:                                       "with properties",
		`{"properties":{}}`:                                       "of type object",
		`{"type":"object","properties":[]}`:                       "cannot unmarshal array",
		`{"type":"object","properties":{"a":true}}`:               "cannot unmarshal bool",
		`{"type":"object","properties":{"a":{"type":7}}}`:         "must be a string or an array of strings",
		`{"type":"object","properties":{},"required":"a"}`:        "cannot unmarshal string",
		`{"type":"object","properties":{"a":{"minimum":"none"}}}`: "parameters.properties.a.minimum",
	} {
		err := Validate(fmt.Appendf(nil, `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function",`+
			`"function":{"name":"f","parameters":%s}}]}`, schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}

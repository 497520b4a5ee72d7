package anthropictest

import (
	"fmt"
	"strings"
	"testing"
)

// TestTools checks that the fake objects to the tools that the vendor objects to.
func TestTools(t *testing.T) {
	const draft = "must match JSON Schema draft 2020-12"
	for tool, want := range map[string]string{
		`{"name":"f","input_schema":{"type":"object"}}`:                                                                 "",
		`{"name":"f","input_schema":{"type":"object","properties":{"a.b-c_d":{"oneOf":[{"type":"string"}]}}}}`:          "",
		`{"name":"f","input_schema":{"type":"object","oneOf":[{"required":["a"]}]}}`:                                    "does not support oneOf",
		`{"name":"f","input_schema":{"type":"object","required":null}}`:                                                 draft,
		`{"name":"f","input_schema":{"type":"object","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}}`:        draft,
		`{"name":"f","input_schema":{"type":"object","properties":{"a":"string"}}}`:                                     draft,
		`{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}}`: draft,
		`{"name":"f","input_schema":{"type":"object","properties":{"$filter":{}}}}`:                                     "Property keys",
		`{"name":"f","input_schema":{"properties":{}}}`:                                                                 "input_schema.type",
		`{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}`:                                          "",
		`{"type":"text_editor_20250728","name":"edit_file"}`:                                                            "name is not that of its type",
		`{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","description":"x"}`:                        "Extra inputs",
		`{"name":"f"}`:   "input_schema: Field required",
		`{"name":"a.b"}`: "pattern",
		`{"name":"f","parameters":{},"input_schema":{"type":"object"}}`: "Extra inputs",
	} {
		err := Validate(fmt.Appendf(nil, `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, tool))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", tool, err, want)
		}
	}
}

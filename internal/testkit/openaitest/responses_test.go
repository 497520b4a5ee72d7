package openaitest

import (
	"strings"
	"testing"
)

// TestValidateResponses checks that the fake objects to what the vendor refuses.
func TestValidateResponses(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		call   = `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}`
		output = `{"type":"function_call_output","call_id":"a","output":"x"}`
		with   = `"id":"fc_0123456789abcdef012345670100"`
	)
	thought := `{"type":"reasoning","id":"rs_0123456789abcdef0123456700xx","summary":[],"encrypted_content":"` +
		seal("rs_0123456789abcdef0123456700xx", "[]") + `"}`
	companion := strings.Replace(call, `"call_id"`, with+`,"call_id"`, 1)
	for body, want := range map[string]string{
		`"input":"hi"`: "",
		`"input":[` + user + `,` + thought + `,` + companion + `,` + output + `]`: "",
		`"input":[` + call + `,` + output + `,` + user + `]`:                      "",
		`"input":[]`:                         "'input'",
		`"messages":[],"input":"hi"`:         "Unknown parameter",
		`"max_output_tokens":1,"input":"hi"`: "max_output_tokens",
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":"hi"`: "additionalProperties",
		`"tools":[{"type":"function","function":{"name":"f"},"strict":false}],"input":"hi"`:    "tools[0].name",
		`"input":[` + call + `,` + user + `]`:                                                  "No tool output found",
		`"input":[` + user + `,` + output + `]`:                                                "No tool call found",
		`"input":[` + companion + `,` + output +
			`]`: "without its required 'reasoning' item",
		`"input":[` + thought + `,` + user +
			`]`: "without its required following item",
		`"input":[` + strings.Replace(thought, `"summary":[]`, `"summary":[1]`, 1) + `,` + call + `,` + output + `]`: "could not be verified",
		`"input":[{"type":"reasoning","id":"rs_1","summary":[]},` + call + `,` + output + `]`:                        "not persisted",
		`"input":[{"role":"user","phase":"commentary","content":"hi"}]`:                                              "phase",
		`"input":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`:                                          "Invalid value: 'text'",
		`"input":[{"role":"assistant","content":[{"type":"input_text","text":"hi"}]}]`: "Invalid value: " +
			"'input_text'",
		`"input":[{"role":"user","content":[{"type":"input_image","image_url":{"url":"data:image/png;base64,cG5n"}}]}]`: "Invalid type",
		`"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,!"}]}]`:            "base64",
		`"input":[{"type":"function_call","id":"call_1","call_id":"a","name":"f","arguments":"{}"},` + output + `]`:     "begins with 'fc'",
		`"input":[{"type":"function_call","call_id":"a","name":"f","arguments":{}},` + output + `]`:                     "Invalid type",
		`"input":[{"type":"function_call","call_id":"` + strings.Repeat("a", 65) + `","name":"f","arguments":"{}"}]`:    "too long",
	} {
		err := ValidateResponses([]byte(`{"model":"m",` + body + `}`))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", body, err, want)
		}
	}
}

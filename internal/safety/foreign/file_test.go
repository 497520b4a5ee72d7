package foreign_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/safety/foreign"
)

// TestUnmarshal reads files as people have them: extensions of JSON that their programs and editors accept are left
// out, but never inside a text.
func TestUnmarshal(t *testing.T) {
	want := map[string]any{"a": []any{"x", "//y", "/*z*/, }"}, "b": map[string]any{"c": "\\\""}}
	for name, text := range map[string]string{
		"plain":    `{"a": ["x", "//y", "/*z*/, }"], "b": {"c": "\\\""}}`,
		"mark":     "\ufeff" + `{"a": ["x", "//y", "/*z*/, }"], "b": {"c": "\\\""}}`,
		"lines":    "// first\r\n{\"a\": [\"x\", // one\r\n\"//y\", \"/*z*/, }\"], // {\r\n\"b\": {\"c\": \"\\\\\\\"\"}}\r\n// last",
		"blocks":   `/* a */{"a": ["x",/**/"//y", "/*z*/, }" /* ] */], "b": {"c": "\\\""}/* } */}`,
		"commas":   `{"a": ["x", "//y", "/*z*/, }",], "b": {"c": "\\\"",},}`,
		"together": "\ufeff{\"a\": [\"x\", \"//y\", \"/*z*/, }\", // last\n], \"b\": {\"c\": \"\\\\\\\"\", /* none */ }, }",
	} {
		var got map[string]any
		if err := foreign.Unmarshal([]byte(text), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for text, said := range map[string]string{
		`{"a": [1,,]}`: "invalid", `{"a" 1}`: "invalid", `{`: "unexpected end", ``: "unexpected end", `{"a": 1} x`: "invalid",
		"{\"a\": \"\xff\"}": "not UTF-8", "\xff\xfe{\x00}\x00": "UTF-16", `{"a": 1 /* open`: "unexpected end",
		`[1]`: "it can't be a JSON array",
	} {
		var got map[string]any
		if err := foreign.Unmarshal([]byte(text), &got); err == nil || !strings.Contains(err.Error(), said) {
			t.Errorf("%q: %v, want %q", text, err, said)
		}
	}
}

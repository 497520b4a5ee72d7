package ollamatest

import (
	"fmt"
	"strings"
	"testing"
)

// TestTools checks that the fake objects to the tools that the server can't read.
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

// TestMessages checks that the fake objects to the messages that the server, or a template, can't read.
func TestMessages(t *testing.T) {
	const (
		user   = `{"role":"user","content":"hi"}`
		system = `{"role":"system","content":"x"}`
		call   = `{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}`
		result = `{"role":"tool","tool_name":"f","tool_call_id":"a","content":"x"}`
	)
	for messages, want := range map[string]string{
		system + "," + user + "," + call + "," + result:                     "",
		user + `,{"role":"assistant","content":"","thinking":"hm"},` + user: "",
		`{"role":"user","content":[{"type":"text","text":"hi"}]}`:           "cannot unmarshal array",
		strings.Replace(user+","+call+","+result, `{}`, `"{}"`, 1):          "cannot unmarshal string",
		user + "," + system:             "not the first",
		system:                          "nobody has asked",
		`{"role":"user","content":" "}`: "says nothing",
		user + `,{"role":"assistant","content":""}`: "says nothing",
		user + "," + call:              "has no result",
		user + "," + call + "," + user: "has no result",
		user + "," + result:            "no call before it",
		user + "," + call + "," + strings.Replace(result, `"tool_name":"f",`, "", 1):         "no call before it",
		user + "," + call + "," + result + "," + call + "," + result:                         "an id of their own",
		user + `,{"role":"developer","content":"x"}`:                                         "invalid role",
		user + "," + call + "," + strings.Replace(result, `"x"`, `"x","images":["AAAA"]`, 1): "image of no user",
	} {
		err := Validate([]byte(`{"model":"m","stream":true,"messages":[` + messages + `]}`))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", messages, err, want)
		}
	}
}

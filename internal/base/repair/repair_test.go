package repair_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/base/repair"
)

func TestArgs(t *testing.T) {
	fence := "```"
	cases := []struct{ in, want string }{
		{"", "{}"},
		{" \n", "{}"},
		{"null", "{}"},
		{"{}", "{}"},
		{`{ "a" : [1, 2.50, {"b": null}] }`, `{"a":[1,2.50,{"b":null}]}`},
		{`{"n": 12345678901234567890}`, `{"n":12345678901234567890}`},
		{`"{\"a\":1}"`, `{"a":1}`},
		{`"{\"a\":1,}"`, `{"a":1}`},
		{fence + "json\n{\"a\":1}\n" + fence, `{"a":1}`},
		{"Sure, here it is: {\"a\":1}\nThat's all.", `{"a":1}`},
		{`{"a":1,}`, `{"a":1}`},
		{`{"a":[1,],}`, `{"a":[1]}`},
		{`{'a':'b "c"'}`, `{"a":"b \"c\""}`},
		{`{'a':'it\'s'}`, `{"a":"it's"}`},
		{`{a:"b", c_1 : {é:2}}`, `{"a":"b","c_1":{"é":2}}`},
		{"{\"a\":\"two\nlines\t\x01\"}", `{"a":"two\nlines\t\u0001"}`},
		{`{"re":"\d+\s"}`, `{"re":"\\d+\\s"}`},
		{`{"a":True,"b":None,"c":False}`, `{"a":true,"b":null,"c":false}`},
		{`{"a":[{"b":"c"}`, `{"a":[{"b":"c"}]}`},
		{`{"a":{"b":"c"`, `{"a":{"b":"c"}}`},
		{`{"a":1}{"a":1}`, `{"a":1}`},
		{`{"a":1} {"a": 1}`, `{"a":1}`},
		{`{"a":1,"a":1}`, `{"a":1}`},
		{`{"a":1,"\u0061":1}`, `{"a":1}`},
		{"{\"a\":\"\xff\"}", "{\"a\":\"\ufffd\"}"},

		{`{`, ""},
		{`{"a":"b`, ""},
		{`{"a":"b\`, ""},
		{`{"a":"b\u00`, ""},
		{`{"a":`, ""},
		{`{"a"`, ""},
		{`{a`, ""},
		{`{1:2}`, ""},
		{`{a b:2}`, ""},
		{`{"a":1,`, ""},
		{`{"a":12`, ""},
		{`{"a":tru`, ""},
		{`{"a":[`, ""},
		{`{"a":1}{"a":2}`, ""},
		{`{"a":1,"a":2}`, ""},
		{`{"a":"say "hi""}`, ""},
		{`{"a" "b"}`, ""},
		{`{"a":1 "b":2}`, ""},
		{`{'a':'it's'}`, ""},
		{`{"a":01}`, ""},
		{`{"a":NaN}`, ""},
		{`{"a":1}}`, ""},
		{`[1]`, ""},
		{`[{"a":1}]`, ""},
		{`true`, ""},
		{`"hello"`, ""},
		{`no object`, ""},
		{`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "}", ""},
	}
	for _, c := range cases {
		got, ok := repair.Args(c.in)
		if string(got) != c.want && ok || ok != (c.want != "") {
			t.Errorf("Args(%q) = %q, %v; want %q", c.in, got, ok, c.want)
		}
	}
}

func FuzzArgs(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"a":1,}`, `{'a':'b'}`, "```json\n{\"a\":\"x\ny\"}\n```", `"{\"a\":[1,2]}"`,
		`{"a":True`, `{"a":[{"b":"c\d"}`, `{"a":1}{"a":1}`, `{"a":{"b":{"c":"\u00e9\ud83d\ude00"}}}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, ok := repair.Args(in)
		if !ok {
			return
		}
		var m map[string]any
		if err := json.Unmarshal(got, &m); err != nil || m == nil {
			t.Fatalf("Args(%q) = %q: not an object: %v", in, got, err)
		}
		if again, ok := repair.Args(string(got)); !ok || string(again) != string(got) {
			t.Fatalf("not idempotent: %q, then %q %v", got, again, ok)
		}
		var before map[string]any
		if json.Unmarshal([]byte(in), &before) == nil && before != nil && !reflect.DeepEqual(before, m) {
			t.Fatalf("Args(%q) = %q: meaning changed", in, got)
		}
	})
}

package tool_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/tool"
)

type edit struct {
	Old string `json:"old_string" jsonschema:"text to replace"`
	New string `json:"new_string" jsonschema:"text to put there"`
	All bool   `json:"replace_all,omitempty"`
}

type sampleArgs struct {
	Path   string         `json:"path" jsonschema:"the file"`
	Edits  []edit         `json:"edits" jsonschema:"the edits"`
	Limit  int            `json:"limit,omitempty" jsonschema:"most lines"`
	Ratio  float64        `json:"ratio,omitempty"`
	Force  bool           `json:"force,omitempty"`
	Tags   []string       `json:"tags,omitempty"`
	Extra  map[string]int `json:"extra,omitempty"`
	Maybe  *string        `json:"maybe,omitempty"`
	Anyway any            `json:"anyway,omitempty"`
	Kind   string         `json:"kind,omitempty" enum:"some_thing,other"`
	Kinds  []string       `json:"kinds,omitempty" enum:"some_thing,other"`
}

func newTool[In any](name string) tool.Tool {
	return tool.New(name, "A sample.", func(context.Context, *tool.Call, In) (tool.Result, error) {
		return tool.Result{}, nil
	})
}

func TestNewSchema(t *testing.T) {
	got := string(newTool[sampleArgs]("sample").Schema)
	want := `{"type":"object","required":["path","edits"],"properties":{` +
		`"path":{"type":"string","description":"the file"},` +
		`"edits":{"type":"array","description":"the edits","items":{"type":"object","required":["old_string","new_string"],"properties":{` +
		`"old_string":{"type":"string","description":"text to replace"},"new_string":{"type":"string","description":"text to put there"},` +
		`"replace_all":{"type":"boolean"}},"additionalProperties":false}},` +
		`"limit":{"type":"integer","description":"most lines"},"ratio":{"type":"number"},"force":{"type":"boolean"},` +
		`"tags":{"type":"array","items":{"type":"string"}},` +
		`"extra":{"type":"object","properties":{},"additionalProperties":{"type":"integer"}},"maybe":{"type":"string"},"anyway":{},` +
		`"kind":{"type":"string","enum":["some_thing","other"]},"kinds":{"type":"array","items":{"type":"string","enum":["some_thing",` +
		`"other"]}}},` +
		`"additionalProperties":false}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !json.Valid([]byte(got)) {
		t.Error("schema is not JSON")
	}
}

// TestCheckTable runs the table in the documentation of Check.
func TestCheckTable(t *testing.T) {
	rows := coercionTable(t)
	if len(rows) < 15 {
		t.Fatalf("read only %d rows of the table", len(rows))
	}
	for _, row := range rows {
		schema := fmt.Sprintf(`{"type":"object","properties":{"x":{"type":%q}}}`, row.wanted)
		want := `{"x":` + row.becomes + `}`
		if row.wanted == "optional" {
			schema, want = `{"type":"object","properties":{"x":{"type":"string"}}}`, `{}`
		}
		raw := tool.Tool{Name: "t", Schema: json.RawMessage(schema)}
		got, err := raw.Check(json.RawMessage(`{"x":` + row.written + `}`))
		if err != nil || string(got) != want {
			t.Errorf("%s as %s: got %s, %v; want %s", row.written, row.wanted, got, err, want)
		}
	}
}

type tableRow struct{ written, wanted, becomes string }

func coercionTable(t *testing.T) []tableRow {
	f, err := os.Open("check.go")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []tableRow
	on := false
	for sc := bufio.NewScanner(f); sc.Scan(); {
		line, inTable := strings.CutPrefix(sc.Text(), "//\t")
		switch {
		case inTable && strings.HasPrefix(line, "written"):
			on = true
		case inTable && on:
			rows = append(rows, splitRow(line))
		default:
			on = false
		}
	}
	return rows
}

// splitRow reads one row: columns start where they do in the table's head.
func splitRow(line string) tableRow {
	return tableRow{
		written: strings.TrimSpace(line[:16]),
		wanted:  strings.TrimSpace(line[16:26]),
		becomes: strings.TrimSpace(line[26:]),
	}
}

func TestCheck(t *testing.T) {
	const edits = `"edits":[{"new_string":"b","old_string":"a"}]`
	tests := []struct{ name, args, want, err string }{
		{"canonical", ` { "path" : "a<b>" , ` + edits + `, "limit": 3 } `, `{` + edits + `,"limit":3,"path":"a<b>"}`, ""},
		{"aliases", `{"file_path":"p","edits":[{"old_str":"a","new_str":"b"}]}`, `{` + edits + `,"path":"p"}`, ""},
		{"alias and target", `{"path":"p","file_path":"q",` + edits + `}`, "", `unknown field "file_path"; did you mean "path"?`},
		{"two aliases", `{"file":"p","file_path":"q",` + edits + `}`, "", `path: missing, want string`},
		{"remark", `{"path":"p","description":"change it",` + edits + `}`, `{` + edits + `,"path":"p"}`, ""},
		{"remark beside a flat item", `{"path":"p","old_string":"a","new_string":"b","explanation":"so"}`, `{` + edits + `,"path":"p"}`, ""},
		{"enum", `{"path":"p","kind":"Some-Thing",` + edits + `}`, `{` + edits + `,"kind":"some_thing","path":"p"}`, ""},
		{"enum far", `{"path":"p","kind":"others",` + edits + `}`, "", `kind: "others" is none of some_thing, other; did you mean "other"?`},
		{"enum in a list", `{"path":"p","kinds":["OTHER"],` + edits + `}`, `{` + edits + `,"kinds":["other"],"path":"p"}`, ""},
		{"flat item", `{"path":"p","old_string":"a","new_string":"b"}`, `{` + edits + `,"path":"p"}`, ""},
		{"flat item by alias", `{"path":"p","oldText":"a","newText":"b"}`, `{` + edits + `,"path":"p"}`, ""},
		{"one item", `{"path":"p","edits":{"old_string":"a","new_string":"b"}}`, `{` + edits + `,"path":"p"}`, ""},
		{"list in text", `{"path":"p","edits":"[{\"old_string\":\"a\",\"new_string\":\"b\"}]"}`, `{` + edits + `,"path":"p"}`, ""},
		{"all in text", `"{\"path\":\"p\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"b\"}]}"`, `{` + edits + `,"path":"p"}`, ""},
		{"wrapped", `{"arguments":{"path":"p",` + edits + `}}`, `{` + edits + `,"path":"p"}`, ""},
		{"wrapped in a call", `{"name":"sample","input":"{\"path\":\"p\",\"edits\":[{\"old_string\":\"a\",\"new_string\":\"b\"}]}"}`, `{` + edits + `,"path":"p"}`, ""},
		{"wrapped twice", `{"arguments":{"path":"p"},"input":{"path":"q"}}`, "", `unknown field "arguments"`},
		{"wrapped beside a field", `{"arguments":{"path":"p",` + edits + `},"path":"q"}`, "", `unknown field "arguments"`},
		{"null pointer", `{"path":"p",` + edits + `,"maybe":null}`, `{` + edits + `,"path":"p"}`, ""},
		{"map", `{"path":"p",` + edits + `,"extra":{"A":"1","a":2}}`, `{` + edits + `,"extra":{"A":1,"a":2},"path":"p"}`, ""},
		{"free field", `{"path":"p",` + edits + `,"anyway":{"x":[null,1.50]}}`, `{"anyway":{"x":[null,1.50]},` + edits + `,"path":"p"}`, ""},

		{"duplicate", `{"path":"a","path":"b",` + edits + `}`, "", `field "path" appears twice`},
		{"deep duplicate", `{"path":"a","anyway":{"x":1,"x":2},` + edits + `}`, "", `field "x" appears twice`},
		{"escaped duplicate", `{"path":"a","p\u0061th":"b",` + edits + `}`, "", `field "path" appears twice`},
		{
			"duplicate in text", `{"path":"a","edits":"[{\"old_string\":\"a\",\"old_string\":\"c\",\"new_string\":\"b\"}]"}`,
			"", `edits[0]: want object, got string`,
		},
		{"case variant", `{"Path":"a",` + edits + `}`, "", `field "Path" must be written "path"`},
		{"case variants", `{"path":"a","PATH":"b",` + edits + `}`, "", `field "PATH" must be written "path"`},
		{"unknown", `{"path":"a",` + edits + `,"limits":3}`, "", `unknown field "limits"; did you mean "limit"?`},
		{"unknown far", `{"path":"a",` + edits + `,"zzzzzzzzzz":3}`, "", `the fields are anyway, edits,`},
		{"missing", `{"path":"a"}`, "", `edits: missing, want array`},
		{"null required", `{"path":null,` + edits + `}`, "", `path: want string, got null`},
		{"wrong", `{"path":"a",` + edits + `,"limit":"many"}`, "", `limit: want integer, got string "many"`},
		{"fraction", `{"path":"a",` + edits + `,"limit":1.5}`, "", `limit: want integer, got number 1.5`},
		{"nested", `{"path":"a","edits":[{"old_string":"a"}]}`, "", `edits[0].new_string: missing, want string`},
		{"not json", `{"path":`, "", `not JSON`},
		{"not object", `[1]`, "", `want object, got array [1]`},
		{"huge number", `{"path":"a",` + edits + `,"ratio":1e999}`, "", `number 1e999 is out of range`},
		{"huge integer", `{"path":"a",` + edits + `,"limit":99999999999999999999}`, "", `limit: want integer, got number 9999`},
	}
	sample := newTool[sampleArgs]("sample")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sample.Check(json.RawMessage(tt.args))
			if tt.err == "" {
				if err != nil || string(got) != tt.want {
					t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
				}
				return
			}
			if err == nil {
				t.Fatalf("no error, got %s", got)
			}
			if !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %q\ndoes not say %q", err, tt.err)
			}
			checkExample(t, sample, err)
		})
	}
}

// checkExample checks that the example in an error is itself a valid call.
func checkExample(t *testing.T, tl tool.Tool, err error) {
	t.Helper()
	_, example, ok := strings.Cut(err.Error(), "A valid call: ")
	if !ok {
		t.Fatalf("no example in %q", err)
	}
	if got, err := tl.Check(json.RawMessage(example)); err != nil || string(got) != example {
		t.Errorf("example %s: %s, %v", example, got, err)
	}
}

// TestCheckForeign checks schemas as other servers write them.
func TestCheckForeign(t *testing.T) {
	const schema = `{"$defs":{"P":{"type":"object","properties":{"x":{"type":"integer","minimum":1}},"required":["x"]}},
		"type":"object","properties":{
			"p":{"$ref":"#/$defs/P"},
			"n":{"anyOf":[{"type":"integer"},{"type":"null"}]},
			"e":{"enum":["a","b"]}},
		"required":["p"]}`
	tests := []struct{ args, want, err string }{
		{`{"p":{"x":"3"}}`, `{"p":{"x":3}}`, ""},
		{`{"p":"{\"x\":3}","n":"4"}`, `{"n":4,"p":{"x":3}}`, ""},
		{`{"p":{"x":1},"n":null}`, `{"n":null,"p":{"x":1}}`, ""},
		{`{"p":{"x":1},"more":[1]}`, `{"more":[1],"p":{"x":1}}`, ""},
		{`{"p":{"x":0}}`, "", `x: minimum: 0`},
		{`{"p":{"x":1},"e":"c"}`, "", `e: "c" is none of a, b`},
	}
	tl := tool.Tool{Name: "far", Schema: json.RawMessage(schema)}
	for _, tt := range tests {
		got, err := tl.Check(json.RawMessage(tt.args))
		if tt.err == "" && (err != nil || string(got) != tt.want) {
			t.Errorf("%s: got %s, %v", tt.args, got, err)
		}
		if tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: got %s, %v; want %q", tt.args, got, err, tt.err)
		}
	}
	if _, err := (tool.Tool{Name: "bad", Schema: json.RawMessage(`{"type":7}`)}).Check(nil); err == nil {
		t.Error("a broken schema is accepted")
	}
}

// TestCheckRings checks that no schema makes Check run forever.
func TestCheckRings(t *testing.T) {
	for schema, fine := range map[string]bool{
		`{"$ref":"#"}`: false,
		`{"type":"object","allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`: false,
		`{"type":"object","properties":{"x":{"$ref":"#/properties/x"}}}`:                                                                   false,
		`{"type":"object","properties":{"x":{"$ref":"http://elsewhere/y"}}}`:                                                               false,
		`{"type":"object","properties":{"x":{"$ref":"#/properties/y"},"y":{"type":"string"}}}`:                                             true,
		`{"type":"object","properties":{"next":{"$ref":"#"}}}`:                                                                             true,
	} {
		_, err := (tool.Tool{Name: "t", Schema: json.RawMessage(schema)}).Check(json.RawMessage(`{"next":{"next":{}}}`))
		if fine != (err == nil) {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestCheckFollowsSchema checks that a schema replaced after New counts.
func TestCheckFollowsSchema(t *testing.T) {
	tl := newTool[sampleArgs]("sample")
	tl.Schema = json.RawMessage(`{"type":"object","properties":{"y":{"type":"integer"}},"additionalProperties":false}`)
	if got, err := tl.Check(json.RawMessage(`{"y":"1"}`)); err != nil || string(got) != `{"y":1}` {
		t.Errorf("got %s, %v", got, err)
	}
}

func FuzzCheck(f *testing.F) {
	for _, row := range []string{
		`{"path":"p","edits":[{"old_string":"a","new_string":"b"}],"limit":"5","tags":"x","ratio":1e2}`,
		`{"file_path":"p","old_str":"a","new_str":"b","extra":{"a":"1"},"maybe":null}`,
		`"{\"path\":1,\"edits\":\"[]\"}"`, `{"Path":"x"}`, `{"anyway":[[[{}]]]}`, `null`, ``,
	} {
		f.Add([]byte(row))
	}
	sample := newTool[sampleArgs]("sample")
	f.Fuzz(func(t *testing.T, args []byte) {
		got, err := sample.Check(args)
		if err != nil {
			checkExample(t, sample, err)
			return
		}
		again, err := sample.Check(got)
		if err != nil || string(again) != string(got) {
			t.Errorf("checked again: %s, %v; first %s", again, err, got)
		}
		if _, err := tool.Args[sampleArgs](&tool.Call{Args: got}); err != nil {
			t.Errorf("valid arguments do not decode: %v", err)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	sample := newTool[sampleArgs]("sample")
	args := json.RawMessage(`{"path":"p","edits":[{"old_string":"a","new_string":"b"}],"limit":"5"}`)
	for b.Loop() {
		if _, err := sample.Check(args); err != nil {
			b.Fatal(err)
		}
	}
}

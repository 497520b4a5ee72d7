package tool_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/tool"
)

func TestReadOnly(t *testing.T) {
	for _, c := range []struct {
		want    bool
		effects []tool.Effect
	}{
		{true, nil},
		{true, []tool.Effect{{Kind: tool.Read}, {Kind: tool.Question}, {Kind: tool.Execute, Class: tool.ProvenRead}}},
		{false, []tool.Effect{{Kind: tool.Read}, {Kind: tool.Write}}},
		{false, []tool.Effect{{Kind: tool.Execute}}},
		{false, []tool.Effect{{Kind: tool.Execute, Class: tool.ProvenInside}}},
		{false, []tool.Effect{{Kind: tool.Network, Class: tool.ProvenRead}}},
		{false, []tool.Effect{{Kind: tool.External}}},
		{false, []tool.Effect{{Kind: tool.Keep}}},
		{false, []tool.Effect{{Kind: "of a later version"}}},
		{false, []tool.Effect{{}}},
	} {
		if got := tool.ReadOnly(c.effects); got != c.want {
			t.Errorf("%+v: %v", c.effects, got)
		}
	}
}

// TestKey checks that keys of calls differ wherever the calls do, also where their parts run together.
func TestKey(t *testing.T) {
	seen := map[string]string{}
	for _, c := range []struct {
		session string
		event   uint64
		id      string
	}{{"s", 1, "c"}, {"s", 1, "d"}, {"s", 2, "c"}, {"t", 1, "c"}, {
		"s1", 1,
		"c",
	}, {"s", 11, "c"}, {"s", 1, "1c"}, {"", 0, ""}, {"s\x001", 1, "c"}} {
		key := hold.Key(c.session, c.event, c.id)
		if other, taken := seen[key]; taken || key != hold.Key(c.session, c.event, c.id) || len(key) != 32 {
			t.Errorf("%q of %+v is that of %s", key, c, other)
		}
		seen[key] = c.session + c.id
	}
}

func TestExported(t *testing.T) {
	for want, vars := range map[string][]string{
		"":               nil,
		"A=1\nB":         {"A=1", "B"},
		`A=1\nB=2`:       {"A=1\nB=2"}, // one variable, which looks like two
		`A=1\\nB=2`:      {`A=1\nB=2`},
		"A=1\nB=2\nC=\t": {"A=1", "B=2", "C=\t"},
	} {
		if got := hold.Exported(vars); got != want {
			t.Errorf("%q: %q, want %q", vars, got, want)
		}
	}
}

// TestNewPanics checks that mistakes of programmers are seen at once.
func TestNewPanics(t *testing.T) {
	for name, make := range map[string]func(){
		"no struct":  func() { newTool[string]("t") },
		"a map":      func() { newTool[map[string]int]("t") },
		"a function": func() { newTool[struct{ F func() }]("t") },
		"a channel":  func() { newTool[struct{ C chan int }]("t") },
	} {
		func() {
			defer func() {
				if r := recover(); r == nil || !strings.Contains(r.(string), "tool t: ") {
					t.Errorf("%s: %v", name, r)
				}
			}()
			make()
		}()
	}
}

func TestTypedArguments(t *testing.T) {
	var got sampleArgs
	tl := tool.New("t", "A sample.", func(_ context.Context, _ *tool.Call, in sampleArgs) (tool.Result, error) {
		got = in
		return tool.Text("done"), nil
	})
	args, err := tl.Check(json.RawMessage(`{"file_path":"a","edits":{"old_string":"x","new_string":"y"},"limit":"7","kind":"Some ` +
		`Thing","ratio":2}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := tl.Run(t.Context(), &tool.Call{Args: args})
	if err != nil || res.Parts.Text() != "done" || got.Path != "a" ||
		len(got.Edits) != 1 || got.Limit != 7 || got.Kind != "some_thing" || got.Ratio != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := tl.Run(t.Context(), &tool.Call{Args: json.RawMessage(`{"limit":"many"}`)}); err == nil {
		t.Error("arguments that nobody has checked were taken")
	}
}

// TestUnshown checks that the model does not see rare arguments, and may use them.
func TestUnshown(t *testing.T) {
	tl := newTool[sampleArgs]("sample")
	all := string(tl.Spec().Schema)
	tl.HiddenFields = []string{"limit", "no such"}
	few := string(tl.Spec().Schema)
	if strings.Contains(few, `"limit"`) || !strings.Contains(few, `"path"`) || !json.Valid([]byte(few)) || len(few) >= len(all) {
		t.Error(few)
	}
	if got, err := tl.Check(json.RawMessage(`{"path":"p","edits":[],"limit":1}`)); err != nil || !strings.Contains(string(got), `"limit":1`) {
		t.Errorf("%s, %v", got, err)
	}
	tl.HiddenFields = nil
	if string(tl.Spec().Schema) != all {
		t.Error("the schema was changed")
	}
	broken := tool.Tool{Name: "t", Schema: json.RawMessage(`{"$ref":"#"}`), HiddenFields: []string{"x"}}
	if got := string(broken.Spec().Schema); got != `{"type":"object","properties":{}}` {
		t.Errorf("a schema that can't be read: %s", got)
	}
}

// TestMend checks that arguments are repaired before they are checked, and only if they are an object.
func TestMend(t *testing.T) {
	tl := newTool[struct {
		X int `json:"x"`
	}]("t")
	var saw []string
	tl.Normalize = func(args map[string]any) {
		for name := range args {
			saw = append(saw, name)
		}
		if y, ok := args["y"]; ok {
			args["x"] = y
			delete(args, "y")
		}
	}
	for args, want := range map[string]string{`{"y":1}`: `{"x":1}`, `{"y":"1"}`: `{"x":1}`, `"{\"y\":1}"`: `{"x":1}`, `{"x":1}`: `{"x":1}`} {
		if got, err := tl.Check(json.RawMessage(args)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", args, got, err)
		}
	}
	for _, args := range []string{`[1]`, `7`, `null`, `{"y":`} {
		if got, err := tl.Check(json.RawMessage(args)); err == nil {
			t.Errorf("%s: %s", args, got)
		}
	}
	if !slices.Contains(saw, "y") {
		t.Error("nothing was mended")
	}
}

// TestComplaints checks that an error tells a model what to do, and that long lists are cut.
func TestComplaints(t *testing.T) {
	tl := newTool[sampleArgs]("sample")
	var args strings.Builder
	args.WriteString(`{"path":"p","edits":[]`)
	for i := range 40 {
		args.WriteString(`,"unknown` + strings.Repeat("x", i) + `":1`)
	}
	_, err := tl.Check(json.RawMessage(args.String() + `}`))
	if err == nil || !strings.Contains(err.Error(), "and 35 more") || !strings.Contains(err.Error(), "A valid call: ") {
		t.Errorf("%v", err)
	}
	_, err = tl.Check(json.RawMessage(`{"path":"` + strings.Repeat("é", 1<<16) + `","edits":7e400}`))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("%d bytes", len(err.Error()))
	}
	_, err = tl.Check(json.RawMessage(strings.Repeat("[", 100_000)))
	if err == nil || len(err.Error()) > 2000 {
		t.Errorf("%v", err)
	}
}

// TestForm checks that the model gets the form of a tool, even in errors about a call, and that Schema decides.
func TestForm(t *testing.T) {
	tl := tool.Tool{
		Name:        "t",
		Schema:      json.RawMessage(`{"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}},"required":["list"],"additionalProperties":false}`),
		ModelSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`),
	}
	if spec := string(tl.Spec().Schema); strings.Contains(spec, "list") || !strings.Contains(spec, `"a"`) {
		t.Error(spec)
	}
	if got, err := tl.Check(json.RawMessage(`{"a":"x"}`)); err != nil || string(got) != `{"list":[{"a":"x"}]}` {
		t.Errorf("%s, %v", got, err)
	}
	for args, want := range map[string]string{`{}`: "- a: missing, want string\n", `{"a":[1]}`: "- a: want string", `{"list":[{"b":1}]}`: "- list[0]"} {
		_, err := tl.Check(json.RawMessage(args))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `A valid call: {"a":"<a>"}`) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
)

// TestTGI checks calls in the form of old versions of Text Generation Inference.
func TestTGI(t *testing.T) {
	tool := func(s string) string { return delta(`"tool_calls":` + s) }
	for name, c := range map[string]struct {
		stream string
		want   string // text, then name and arguments of each call
		stop   llm.Stop
	}{
		"grammar in pieces": {
			tool(`{"index":0,"id":"","type":"function","function":{"name":null,"arguments":"{\"function\": {\"_name\": \"read\","}}`) +
				tool(`{"index":0,"id":"","type":"function","function":{"name":null,"arguments":" \"path\": \"a.go\"}}"}}`) + finish(`"eos_token"`),
			`|read {"path":"a.go"}`, llm.StopCalls,
		},
		"arguments as an object": {
			tool(`{"index":0,"id":"0","function":{"name":"read","description":null,"arguments":{"path":"a.go"}}}`) + finish(`"eos_token"`),
			`|read {"path":"a.go"}`, llm.StopCalls,
		},
		"name in the arguments too": {
			tool(`[{"index":0,"id":"0","function":{"name":"read","arguments":{"_name":"read","path":"a.go"}}}]`) + finish(`"stop"`),
			`|read {"path":"a.go"}`, llm.StopCalls,
		},
		"all called tools": {
			tool(`[{"index":0,"id":"0","function":{"name":"tools","arguments":"{\"function\":{\"_name\":\"read\",\"path\":\"a.go\"}}"}}]`) +
				finish(`"stop"`),
			`|read {"path":"a.go"}`, llm.StopCalls,
		},
		"no tool": {
			tool(`{"index":0,"id":"","function":{"name":null,"arguments":"{\"function\":{\"_name\":\"no_tool\",\"content\":\"Hello.\"}}"}}`) +
				finish(`"eos_token"`),
			`Hello.`, llm.StopEnd,
		},
		"an error to tell": {
			tool(`{"index":0,"id":"","function":{"name":"notify_error","arguments":{"error":"I can't."}}}`) + finish(`"eos_token"`),
			`I can't.`, llm.StopEnd,
		},
		"a tool that takes names": {
			tool(`[{"index":0,"id":"0","function":{"name":"rename","arguments":"{\"_name\":\"x\"}"}}]`) + finish(`"stop"`),
			`|rename {"_name":"x"}`, llm.StopCalls,
		},
		"a tool that takes functions": {
			tool(`[{"index":0,"id":"0","function":{"name":"plot","arguments":"{\"function\":{\"of\":\"x\"}}"}}]`) + finish(`"stop"`),
			`|plot {"function":{"of":"x"}}`, llm.StopCalls,
		},
		"not an object": {
			tool(`[{"index":0,"id":"0","function":{"name":"","arguments":"\"_name\""}}]`) + finish(`"stop"`),
			`| {} invalid "_name"`, llm.StopCalls,
		},
	} {
		r, _, err := decodeAll(strings.NewReader(c.stream + done))
		got := r.Parts.Text()
		for _, k := range r.Calls() {
			got += "|" + k.Name + " " + string(k.Args)
			if k.Invalid != "" {
				got += " invalid " + k.Invalid
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || r.Stop != c.stop {
			t.Errorf("%s: %v, stop %q\n%s", name, err, r.Stop, diff)
		}
	}
}

// TestOwnNoTool checks that a tool of that name is called if there is one.
func TestOwnNoTool(t *testing.T) {
	stream := delta(`"tool_calls":[{"index":0,"id":"0","function":{"name":"no_tool","arguments":"{\"content\":\"x\"}"}}]`) +
		finish(`"stop"`) + done
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "no_tool"}}}
	d := newDecoder("p/m", req, newAliases(req, idUpTo40))
	if _, err := d.run(strings.NewReader(stream), func(llm.Chunk) bool { return true }); err != nil || len(d.reply.Calls()) != 1 {
		t.Errorf("got %+v, %v", d.reply, err)
	}
}

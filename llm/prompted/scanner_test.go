package prompted_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/prompted"
)

// talker is a model that has no tools and says the pieces of one text.
type talker struct {
	pieces []string
	stop   llm.Stop
	plain  bool // it takes no tools
	calls  llm.Parts
	id     string
	asked  llm.Request // last
}

func (m *talker) Info() llm.Info {
	return llm.Info{Provider: "p", Model: cmp.Or(m.id, "m"), NoTools: m.plain}
}

func (m *talker) Stream(_ context.Context, req llm.Request) iter.Seq2[llm.Chunk, error] {
	m.asked = req
	return func(yield func(llm.Chunk, error) bool) {
		for _, p := range m.pieces {
			if p != "" && !yield(llm.Chunk{Text: p}, nil) {
				return
			}
		}
		stop := m.stop
		if stop == "" {
			stop = llm.StopEnd
		}
		yield(llm.Chunk{Reply: &llm.Reply{Parts: append(llm.Say(strings.Join(m.pieces, "")), m.calls...), Stop: stop, Route: "p/m"}}, nil)
	}
}

// outcome is all that came of a text.
type outcome struct {
	Parts        llm.Parts
	Stop         llm.Stop
	Shown, Calls string // text and calls as they were displayed
	Thoughts     string // the same
}

func outcomeOf(t testing.TB, stop llm.Stop, tools []string, pieces ...string) outcome {
	t.Helper()
	req := llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: llm.Say("go")}}}
	for _, name := range tools {
		req.Tools = append(req.Tools, llm.ToolSpec{Name: name})
	}
	return heard(t, &prompted.Model{Model: &talker{pieces: pieces, stop: stop, plain: true}}, req)
}

// heard is the result of a request. The displayed text equals the reply, except for a thought of which only the end was
// marked: it was displayed as text.
func heard(t testing.TB, m llm.Model, req llm.Request) outcome {
	t.Helper()
	var o outcome
	last := ""
	for c, err := range m.Stream(t.Context(), req) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Call != nil:
			if c.Call.Name != last {
				o.Calls += "|" + c.Call.Name + ":"
			}
			last = c.Call.Name
			o.Calls += c.Call.Args
		case c.Reply != nil:
			o.Parts, o.Stop = c.Reply.Parts, c.Reply.Stop
		default:
			o.Shown += c.Text
			o.Thoughts += c.Reasoning
		}
	}
	if text := o.Parts.Text(); text != o.Shown && !strings.HasSuffix(o.Shown, text) {
		t.Errorf("displayed %q, replied %q", o.Shown, text)
	}
	return o
}

// show writes parts short.
func show(parts llm.Parts) string {
	var list []string
	for i, p := range parts {
		switch v := p.(type) {
		case llm.Text:
			list = append(list, v.Text)
		case llm.Reasoning:
			list = append(list, "("+v.Text+")")
		case llm.Call:
			s := fmt.Sprintf("%s%s", v.Name, v.Args)
			if v.Invalid != "" {
				s = fmt.Sprintf("%s!%s", v.Name, v.Invalid)
			}
			if v.ID == "" {
				s += fmt.Sprintf(" (call %d has no id)", i)
			}
			list = append(list, s)
		}
	}
	return strings.Join(list, " ⏎ ")
}

type row struct {
	name, text string
	stop       llm.Stop
	want       string
}

func rows() []row {
	const fence = "```"
	same := func(name, text string) row { return row{name: name, text: text, want: text} }
	return []row{
		{name: "asked for", text: "Reading both.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>", want: `Reading both. ⏎ read{"path":"a"} ⏎ now{}`},
		{name: "on one line", text: `<tool_call>{"name":"read","arguments":{"path":"a"}}</tool_call>`, want: `read{"path":"a"}`},
		{name: "text around", text: " first\n\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n\nlast \n", want: " first ⏎ now{} ⏎ last \n"},
		{name: "no space", text: `x<tool_call>{"name":"now","arguments":{}}</tool_call>y`, want: `x ⏎ now{} ⏎ y`},
		{name: "arguments first", text: `<tool_call>{'arguments': {'path': 'a'}, 'name': 'read'}</tool_call>`, want: `read{"path":"a"}`},
		{name: "parameters", text: `<tool_call>{"name":"read","parameters":{"path":"a"}}</tool_call>`, want: `read{"path":"a"}`},
		{name: "no arguments", text: `<tool_call>{"name":"now"}</tool_call>`, want: `now{}`},
		{name: "arguments in a string", text: `<tool_call>{"name":"read","arguments":"{\"path\":\"a\"}"}</tool_call>`, want: `read{"path":"a"}`},
		{name: "arguments no object", text: `<tool_call>{"name":"read","arguments":[1]}</tool_call>`, want: `read![1]`},
		{name: "vendor's own", text: `<tool_call>{"id":"x","type":"function","function":{"name":"read","arguments":{"path":"a"}}}</tool_call>`, want: `read{"path":"a"}`},
		{name: "two in one", text: "<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>", want: `now{} ⏎ read{"path":"a"}`},
		{name: "list", text: `<tool_call>[{"name":"now","arguments":{}},{"name":"read","arguments":{"path":"a"}}]</tool_call>`, want: `now{} ⏎ read{"path":"a"}`},
		{name: "not closed", text: `<tool_call>{"name":"read","arguments":{"path":"a"}}`, want: `read{"path":"a"}`},
		{name: "not closed, another", text: `<tool_call>{"name":"now","arguments":{}}<tool_call>{"name":"now","arguments":{}}`, want: `now{} ⏎ now{}`},
		{name: "a brace too many", text: `<tool_call>{"name":"read","arguments":{"path":"a"}}}</tool_call>`, want: `read{"path":"a"}`},
		{name: "a brace missing", text: `<tool_call>{"name":"read","arguments":{"path":"a"}</tool_call>`, want: `read{"path":"a"}`},
		{name: "a brace missing, name last", text: `<tool_call>{"arguments":{"path":"a"},"name":"read"</tool_call>`, want: `read{"path":"a"}`},
		{name: "mended", text: `<tool_call>{"name": "read", "arguments": {'path': 'x',}}</tool_call>`, want: `read{"path":"x"}`},
		{name: "broken", text: "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"x}</tool_call>\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>", want: `read!{"path": "x ⏎ now{}`},
		{name: "broken, balanced", text: `<tool_call>{"name": "read", "arguments": {"path" "x"}}</tool_call>`, want: `read!{"path" "x"}`},
		{name: "two meanings", text: `<tool_call>{"name":"read","arguments":{"path":"a","path":"b"}}</tool_call>`, want: `read!{"path":"a","path":"b"}`},
		{name: "closer within", text: `<tool_call>{"name":"read","arguments":{"path":"</tool_call>"}}</tool_call>.`, want: `read{"path":"</tool_call>"} ⏎ .`},
		{name: "mark within", text: `<tool_call>{"name":"read","arguments":{"path":"<tool_call>{\"name\":\"now\",\"arguments\":{}}"}}</tool_call>`, want: `read{"path":"<tool_call>{\"name\":\"now\",\"arguments\":{}}"}`},
		{name: "cut in the arguments", stop: llm.StopLength, text: "Writing\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\":{\"b\":\"c\"", want: `Writing ⏎ read!{"path":{"b":"c"`},
		{name: "cut in the name", stop: llm.StopLength, text: "x\n<tool_call>\n{\"name\": \"re", want: "x\n<tool_call>\n{\"name\": \"re"},
		{name: "cut in the mark", stop: llm.StopLength, text: "x\n<tool_c", want: "x\n<tool_c"},
		{name: "cut behind a call", stop: llm.StopLength, text: `<tool_call>{"name":"now","arguments":{}}</tool_call><tool_call>{"na`, want: `now{} ⏎ <tool_call>{"na`},
		{name: "cut parameters", stop: llm.StopLength, text: "<function=read>\n<parameter=path>\na", want: "read!<parameter=path>\na"},
		{name: "cut bare", stop: llm.StopLength, text: `{"name":"read","parameters":{"path":"a`, want: `read!{"path":"a`},
		{name: "tools tag", text: `<tools>{"name":"read","arguments":{"path":"a"}}</tools>`, want: `read{"path":"a"}`},
		{name: "function", text: `<function=read>{"path": "a"}</function>`, want: `read{"path":"a"}`},
		{name: "function, broken", text: `<function=read>{"path": "a</function>ok`, want: `read!{"path": "a ⏎ ok`},
		{name: "parameters in tags", text: "Hm.\n<tool_call>\n<function=read>\n<parameter=path>\na.go\n</parameter>\n<parameter=text>\n\tx <y> \"z\"\n\n</parameter>\n</function>\n</tool_call>", want: `Hm. ⏎ read{"path":"a.go","text":"\tx <y> \"z\"\n"}`},
		{name: "functions in tags", text: "<tool_call>\n<function=now>\n</function>\n<function=read><parameter=path>a</parameter></function>\n</tool_call>", want: `now{} ⏎ read{"path":"a"}`},
		{name: "parameter that ends within", text: "<function=read><parameter=path>a</parameter>b</function></parameter></function>", want: `read{"path":"a</parameter>b</function>"}`},
		{name: "not a parameter", text: "<function=read><b>a</b></function>", want: `read!<b>a</b>`},
		{name: "mistral", text: `[TOOL_CALLS] [{"name": "read", "arguments": {"path": "a"}}, {"name": "now", "arguments": {}}]`, want: `read{"path":"a"} ⏎ now{}`},
		{name: "mistral without the mark", text: ` [{"name": "read", "arguments": {"path": "a"}}]`, want: `read{"path":"a"}`},
		{name: "llama", text: `<|python_tag|>{"name": "read", "parameters": {"path": "a"}}<|eom_id|>`, want: `read{"path":"a"}`},
		{name: "llama, bare", text: "{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}\n", want: `read{"path":"a"}`},
		{name: "llama, several", text: `{"name": "read", "parameters": {"path": "a"}}; {"type":"function","name": "now", "parameters": {}}`, want: `read{"path":"a"} ⏎ now{}`},
		{name: "fence", text: "I read it:\n" + fence + "json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n" + fence + "\nThen.", want: `I read it: ⏎ read{"path":"a"} ⏎ Then.`},
		{name: "fence tool_call", text: fence + "tool_call\n{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}\n" + fence, want: `read{"path":"a"}`},
		{name: "fence without a word", text: fence + "\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"now\", \"arguments\": {}}\n" + fence, want: `now{} ⏎ now{}`},
		{name: "fence not closed", text: fence + "json\n{\"name\": \"now\", \"arguments\": {}}\n", want: `now{}`},
		{name: "made up result", text: "<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n<tool_response>\nnoon\n</tool_response>\nIt is noon.", want: `now{}`},

		same("plain", " Grüße, 世界! <b>&</b> a[1] {x}\n\n"),
		same("unknown tool", `<tool_call>{"name":"rm","arguments":{"path":"a"}}</tool_call>`),
		same("unknown function", `<function=rm>{"path": "a"}</function>`),
		same("unknown in a list", `[TOOL_CALLS] [{"name": "read", "arguments": {}}, {"name": "rm", "arguments": {}}]`),
		same("no name", `<tool_call>{"arguments":{"path":"a"}}</tool_call>`),
		same("other object", `{"name":"x","version":"1"}`),
		same("package.json", "{\n  \"name\": \"read\",\n  \"version\": \"1\"\n}\n"),
		same("name only", `{"name":"now"}`),
		same("bare with words behind", `{"name":"now","parameters":{}} is what I would call`),
		same("bare with words before", `I would call {"name":"now","parameters":{}}`),
		same("python tag within", `I would call <|python_tag|>{"name":"now","parameters":{}}`),
		same("prose", "Put it into <tool_call> and </tool_call> tags, or <function=read> alone... <tool"),
		same("code in the line", "Write `<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>` to call."),
		same("code with two ticks", "Write ``<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>`` to call."),
		{name: "fence with tags", text: "Like this:\n" + fence + "xml\n<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>\n" + fence + "\n", want: `Like this: ⏎ now{}`},
		{name: "fence with a function", text: fence + "\n<function=read><parameter=path>a</parameter></function>\n" + fence, want: `read{"path":"a"}`},
		{name: "call behind thoughts", text: "<think>\nMaybe <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>?\n</think>\n<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>", want: "(\nMaybe <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>?\n) ⏎ read{\"path\":\"a\"}"},
		{name: "bare call behind thoughts", text: "<think>so</think>\n{\"name\": \"read\", \"parameters\": {\"path\": \"a\"}}", want: "(so) ⏎ read{\"path\":\"a\"}"},
		{name: "thoughts alone", text: "<thinking>I'd call <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call></thinking>", want: "(I'd call <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>)"},
		{name: "thoughts not closed", text: "<think>I'd call <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>", want: "(I'd call <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>)"},
		same("code block of text", "Like this:\n"+fence+"text\n<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>\n"+fence+"\n"),
		same("code block in Go", fence+"go\nx := `<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>`\n"+fence),
		same("json block", fence+"json\n{\"a\": 1}\n"+fence),
		{name: "fence with a tag that is not closed", text: fence + "\n<tool_call>{\"name\":\"now\",\"arguments\":{}}\n" + fence, want: `now{}`},
		same("json block with more in it", fence+"json\n{\"name\":\"now\",\"arguments\":{}}\n// or so\n"+fence),
		same("result without a call", "<tool_response>\nnoon\n</tool_response>"),
		{name: "call behind code", text: fence + "sh\nls\n" + fence + "\n`x` <tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>", want: fence + "sh\nls\n" + fence + "\n`x` ⏎ now{}"},
	}
}

func offered() []string { return []string{"read", "now"} }

// TestForms checks the result for each text, however it is cut into pieces.
func TestForms(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			whole := outcomeOf(t, r.stop, offered(), r.text)
			if got := show(whole.Parts); got != r.want {
				t.Errorf("got  %s\nwant %s", got, r.want)
			}
			stop := r.stop
			if calls := whole.Parts.Calls(); stop == "" && len(calls) > 0 {
				stop = llm.StopCalls
			} else if stop == "" {
				stop = llm.StopEnd
			}
			if whole.Stop != stop {
				t.Errorf("Stop = %q, want %q", whole.Stop, stop)
			}
			for i := range r.text {
				if diff := gocmp.Diff(whole, outcomeOf(t, r.stop, offered(), r.text[:i], r.text[i:])); diff != "" {
					t.Fatalf("cut at %d:\n%s", i, diff)
				}
			}
			if diff := gocmp.Diff(whole, outcomeOf(t, r.stop, offered(), strings.Split(r.text, "")...)); diff != "" {
				t.Errorf("in single characters:\n%s", diff)
			}
		})
	}
}

// TestDisplay checks that a call is shown while it is written, and text at once.
func TestDisplay(t *testing.T) {
	m := &prompted.Model{Model: &talker{plain: true, pieces: []string{"Hello ", "you <", "b> ", "<tool", "_call>{\"name\":\"read\",", "\"arguments\":{\"path\":", "\"a\"", "}}", "</tool_call>"}}}
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "read"}}}
	var got []string
	for c, err := range m.Stream(t.Context(), req) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Call != nil:
			got = append(got, c.Call.Name+":"+c.Call.Args)
		case c.Text != "":
			got = append(got, c.Text)
		}
	}
	want := []string{"Hello", " you", " <b>", "read:", `read:{"path":`, `read:"a"`, `read:}`}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzScanner checks that no text, however cut, breaks the contract: the displayed text equals the reply, and calls are
// of offered tools with an object for arguments.
func FuzzScanner(f *testing.F) {
	for i, r := range rows() {
		f.Add(r.text, uint8(i), i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, text string, size uint8, long bool) {
		stop := llm.StopEnd
		if long {
			stop = llm.StopLength
		}
		whole := outcomeOf(t, stop, offered(), text)
		var pieces []string
		for rest := text; rest != ""; {
			n := min(int(size%7)+1, len(rest))
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		if diff := gocmp.Diff(whole, outcomeOf(t, stop, offered(), pieces...)); diff != "" {
			t.Error(diff)
		}
		for _, c := range whole.Parts.Calls() {
			var args map[string]any
			if (c.Name != "read" && c.Name != "now") || json.Unmarshal(c.Args, &args) != nil || args == nil {
				t.Errorf("%+v", c)
			}
		}
		native := func(pieces ...string) outcome {
			req := llm.Request{Tools: []llm.ToolSpec{{Name: "read"}, {Name: "now"}}}
			return heard(t, &prompted.Model{Model: &talker{pieces: pieces, stop: stop}}, req)
		}
		if diff := gocmp.Diff(native(text), native(pieces...)); diff != "" {
			t.Error(diff)
		}
	})
}

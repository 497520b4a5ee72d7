package words_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/text"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/internal/view/words"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func TestNumbers(t *testing.T) {
	for got, want := range map[string]string{
		words.Dollars(0.01234): "$0.0123", words.Dollars(1): "$1.00", words.Dollars(12.345): "$12.35",
		words.Cost(2, false): "$2.00", words.Cost(2, true): "cost unknown",
		words.Left(-time.Second): "0.0 s", words.Left(1540 * time.Millisecond): "1.5 s", words.Left(10 * time.Second): "10s",
		words.Left(61100 * time.Millisecond): "1m2s",
		words.Took(999):                      "", words.Took(1000): "1s", words.Took(65_449): "1m5.4s",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBrief(t *testing.T) {
	run := []tool.Effect{{Kind: tool.Execute, Text: "rm -rf build"}, {Kind: tool.Execute, Text: "mkdir build"}}
	command := json.RawMessage(`{"command":"rm -rf build && mkdir build"}`)
	write := []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}
	for _, tc := range []struct {
		call event.Raised
		want string
	}{
		{event.Raised{Tool: "bash", Args: command, Effects: run, Reason: `it would run "rm -rf build"`}, `it would run "rm -rf build && mkdir build"`},
		{event.Raised{Tool: "bash", Args: command, Effects: run, Reason: "a rule asks"}, `it would run "rm -rf build && mkdir build"; a rule asks`},
		{event.Raised{Tool: "write_file", Args: json.RawMessage(`{"path":"a"}`), Effects: write, Reason: "it would change /w/a"}, "it would change /w/a"},
	} {
		if got := words.Brief("/w", tc.call, nil); got != tc.want {
			t.Errorf("%s, want %s", got, tc.want)
		}
	}
	if got := words.Brief("/w", event.Raised{}, []event.Raised{{Tool: "bash", Effects: run[:1]}, {Tool: "write_file", Effects: write}}); got != "write /w/a, run 1 command" {
		t.Error(got)
	}
}

func TestOneLine(t *testing.T) {
	for _, tc := range []struct {
		text  string
		limit int
		want  string
	}{
		{" a\n\tb\u2028c ", 9, "a b c"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 6, "abcde…"},
		{"漢字漢字", 6, "漢字…"},
		{"👩‍👩‍👧👩‍👩‍👧", 3, "👩‍👩‍👧…"},
		{"a\x1b[2J", 9, `a\x1b[2J`},
		{"a\x00b", 3, `a\…`},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{strings.Repeat(" ", 1000) + "a", 5, "a"},
		{"a" + strings.Repeat(" ", 1000) + "b", 5, "a…"},
		{strings.Repeat("漢", 1000), 1, "…"},
		{"a" + strings.Repeat(" ", 8*5+62) + "漢", 5, "a…"}, // cut in the middle of a character
	} {
		if got := words.OneLine(tc.text, tc.limit); got != tc.want {
			t.Errorf("%.20q in %d: %q, want %q", tc.text, tc.limit, got, tc.want)
		}
	}
}

// FuzzShown checks the promises about displayed text.
func FuzzShown(f *testing.F) {
	f.Add("a\tb\x1b[31m\u202e漢字漢字 👩‍👩‍👧 long line of words\n\xff", 5)
	f.Add(" 0\x88", 5)
	f.Fuzz(func(t *testing.T, s string, limit int) {
		limit = (limit%100 + 100) % 100
		if got := words.OneLine(s, limit); text.Holds(got, text.Hidden) || ansi.StringWidth(got) > limit {
			t.Errorf("%q in %d gives %q", s, limit, got)
		}
		if got := words.Result(s); text.Holds(got, text.Unread) {
			t.Errorf("%q gives %q", s, got)
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"", 5, ""},
		{"one two three", 7, "one two\nthree"},
		{"  one two three", 9, "  one two\n  three"},
		{"a\n\nb c d", 3, "a\n\nb c\nd"},
		{"unbreakable x", 4, "unbreakable\nx"},
		{"say what: ", 7, "say\nwhat: "},
		{"日本 語です x", 7, "日本\n語です\nx"},
	} {
		if got := words.Wrap(c.text, c.width); got != c.want {
			t.Errorf("%q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"  --a x   one two three", 20, "  --a x   one two\n          three"},
		{"  --a x   one two three", 10, "  --a x  \n  one two\n  three"},
		{"ok  model  → a b c d e f", 22, "ok  model  → a b c d e\n           f"},
		{"plain words", 6, "plain\nwords"},
	} {
		if got := words.WrapRows(c.text, c.width); got != c.want {
			t.Errorf("row %q in %d: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	names := []string{"continue", "--ref", "--model", "--input-format", "list", "memory_mb"}
	for typed, want := range map[string]string{
		"nonsense": "", "--frob": "", "--modle": "--model", "lst": "list", "LIST": "list", "memory": "memory_mb", "contnue": "continue",
	} {
		if got := words.DidYouMean(typed, names); got != "" != (want != "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", typed, got, want)
		}
	}
}

func TestTold(t *testing.T) {
	for want, body := range map[string]event.Body{
		"! careful\nnow": event.Note{Text: "careful\nnow"},
		"! the MCP server a is unavailable: gone\nthe MCP server b: log in\nthe MCP server c offers other tools than you approved: 'inspan mcp " +
			"agree c' shows them\nthe MCP server h: look changed; 'inspan mcp agree h' shows them\n" +
			"the MCP server d is not connected yet: late": event.Served{Servers: []event.Server{
			{Name: "a", State: "failed", Why: "gone"},
			{Name: "b", State: "login", Why: "log in"},
			{Name: "c", State: "changed"},
			{Name: "h", State: "changed", Why: "look changed"},
			{Name: "d", State: "connecting", Why: "late"},
			{Name: "e", State: "connecting"},
			{Name: "f", State: "ready"},
			{Name: "g", State: "off"},
		}},
		"· waiting": event.Progress{Text: "waiting"},
		"! sensitive: it reads /w/.env, which is a secret, and changes /w/b, which runs": event.Judged{Action: tool.Allow, Effects: []tool.Effect{
			{Kind: tool.Read, Path: "/w/.env", Sensitive: "is a secret"},
			{Kind: tool.Read, Path: "/w/a"},
			{Kind: tool.Write, Path: "/w/b", Sensitive: "runs"},
		}},
		"! a/m takes over from b/m: too many requests": event.Routed{Route: "a/m", From: "b/m", Error: "too many requests"},
		"· a/m answers, by the rule cheap: short":      event.Routed{Route: "a/m", Rule: "cheap", Reason: "short"},
		"! the model refused the conversation (payload too large); it goes on without the images so " +
			"far": event.Healed{Level: loop.HealImages, Cause: llm.KindTooLarge},
		"! the model refused the conversation (invalid history); it goes on without the reasoning so " +
			"far": event.Healed{Level: loop.HealReasoning, Cause: llm.KindHistory},
		"! the model refused the conversation (invalid history); it goes on without calls and results so far, which become " +
			"text": event.Healed{Level: loop.HealCalls, Cause: llm.KindHistory},
		"! h says no: not now":                           event.Hooked{By: "h", Action: tool.Deny, Reason: "not now", Text: "unsaid"},
		"· told the model: a b\\x1b":                     event.Hooked{By: "h", Text: "a\nb\x1b"},
		"· now working with a/m in mode ask":             event.Switched{Route: "a/m", Mode: "ask"},
		"· now working in mode ask":                      event.Switched{Mode: "ask"},
		"· a queued message was taken back":              event.Withdrawn{Of: 3},
		"· now working at effort high":                   event.Switched{Effort: "high"},
		"· now working with a/m":                         event.Switched{Route: "a/m"},
		"! the conversation was not compacted: no model": event.Kept{Reason: "no model"},
		"· the conversation was compacted from about 12,000 to 900 tokens; the log keeps all of it": event.Compacted{Before: 12000, After: 900},
		"· old results were cut short, from about 12,000 to 900 tokens; the log keeps all of them":  event.Pruned{Before: 12000, After: 900},
		"! paused with all agents until 1970-01-01 01:00 UTC: no more today":                        event.Paused{Until: time.Unix(3600, 0), Message: "no more today"},
		"! paused with all agents until 1970-01-01 01:00 UTC: quota":                                event.Paused{Until: time.Unix(3600, 0), Cause: llm.KindQuota},
		"· the conversation was rewound to event 7":                                                 event.Rewound{To: 7},
		"· 0 files were restored":                     event.Restored{},
		"· 1 file was restored: a":                    event.Restored{Files: []string{"a"}},
		"· 4 files were restored: a, b, c, d":         event.Restored{Files: []string{"a", "b", "c", "d"}},
		"· 5 files were restored: a, b, c and 2 more": event.Restored{Files: []string{"a", "b", "c", "d", "e"}},
		"· 1 file was removed: a":                     event.Restored{Files: []string{"a"}, Removed: []string{"a"}},
		"· 1 file was restored: b; 2 files were removed: a, c": event.Restored{
			Files: []string{"a", "b", "c"}, Removed: []string{"a", "c"},
		},
	} {
		text, notice := words.Told(body)
		if got := map[bool]string{true: "! ", false: "· "}[notice] + text; got != want {
			t.Errorf("%T: %q, want %q", body, got, want)
		}
	}
	for _, body := range []event.Body{
		event.Switched{Limits: &event.Limits{Turns: 1}},
		event.Hooked{By: "h"},
		event.Said{},
		event.Stopped{},
		nil,
	} {
		if text, notice := words.Told(body); text != "" || notice {
			t.Errorf("%T: %q", body, text)
		}
	}
}

func TestWait(t *testing.T) {
	for _, tc := range []struct {
		body      event.Body
		why, what string
		seconds   float64
	}{
		{event.Failed{Message: "m", Retry: 2}, "m", "retrying", 2},
		{event.Failed{Message: "m"}, "", "", 0},
		{event.Progress{Text: "p", Wait: 0.5}, "p", "continuing", 0.5},
		{event.Progress{Text: "p"}, "", "", 0},
		{event.Note{Text: "n"}, "", "", 0},
	} {
		if why, what, seconds := words.Wait(tc.body); why != tc.why || what != tc.what || seconds != tc.seconds {
			t.Errorf("%+v: %q %q %v", tc.body, why, what, seconds)
		}
	}
}

func call(args string) llm.Call { return llm.Call{ID: "1", Name: "n", Args: json.RawMessage(args)} }

func TestSubject(t *testing.T) {
	for args, want := range map[string]string{
		`{"path":"a","command":"ls"}`: "ls", `{"id":"3","query":"q"}`: "q", `{"url":"u","question":"w"}`: "w", `{"path":""}`: `{"path":""}`,
		`{"word":1}`: `{"word":1}`, `{}`: "", ``: "", `[1`: "[1",
		`{"items":[{"text":"look","state":"done"},{"text":"mend","state":"open"}]}`: "look · mend", `{"items":[]}`: "",
		`{"title":"Sizes","chart":{"kind":"bar"}}`:             "Sizes",
		`{"action":"message","agent":"k3f9a2","text":"go on"}`: "message k3f9a2 go on", `{"action":"list"}`: "list",
		`{"action":"merge","agent":"a","paths":["x","y"],"discard":true}`: "merge a x · y",
		`{"name":"gh.list","arguments":{"n":1}}`:                          "gh.list", `{"filter":{"a":1,"b":["c"]},"n":2}`: "a 1, c, n 2",
	} {
		if got := words.Subject(call(args)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

func TestJudged(t *testing.T) {
	if got := words.Judged(call(`{}`), event.Judged{Tool: "sh", Args: json.RawMessage(`{"a":1}`)}); got.ID != "1" ||
		got.Name != "sh" || string(got.Args) != `{"a":1}` {
		t.Error(got)
	}
	if got := words.Judged(call(`{}`), event.Judged{}); got.Name != "n" || string(got.Args) != `{}` {
		t.Error(got)
	}
}

func TestResult(t *testing.T) {
	for text, want := range map[string]string{
		"\n\x1b[31mred\x1b[0m\r\n\x00":                "red",
		"<untrusted id=1>\na\nb\n</untrusted id=1>\n": "a\nb",
		"<untrusted id=1>\na":                         "<untrusted id=1>\na",
		"a\n<untrusted x>\nb":                         "a\n<untrusted x>\nb",
		"":                                            "",
	} {
		if got := words.Result(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestAsked(t *testing.T) {
	for args, want := range map[string][2]string{
		`{"command":"ls\n\u001b[2J\ttmp"}`:                                    {"ls\n\\x1b[2J    tmp", ""},
		`{"outside":true,"command":"a","network":["<x>\u202e"]}`:              {"a", `{"network":["<x>\u202e"],"outside":true}`},
		`{"a":"x<y` + "\u202e" + `"}`:                                         {"", "{\n  \"a\": \"x<y\\u202e\"\n}"},
		`{"command":""}`:                                                      {"", "{\n  \"command\": \"\"\n}"},
		`{"command":["a"]}`:                                                   {"", "{\n  \"command\": [\n    \"a\"\n  ]\n}"},
		`{"command":"\u0065cho a \u003e\u003e b","n":1.50,"\u0070":"\u0026"}`: {"echo a >> b", `{"n":1.50,"p":"&"}`},
		`{"path":"\u0061","content":"x"}`:                                     {"", "{\n  \"content\": \"x\",\n  \"path\": \"a\"\n}"},
		`{"Command":"rm","command":"ls"}`:                                     {"ls", `{"Command":"rm"}`},
		"no \x1b json":                                                        {"", `no \x1b json`},
		"":                                                                    {"", ""},
	} {
		command, others := words.Asked(call(args))
		if diff := cmp.Diff(want, [2]string{command, others}); diff != "" {
			t.Errorf("%s: %s", args, diff)
		}
	}
}

func TestEffects(t *testing.T) {
	all := []tool.Effect{
		{Kind: tool.Read, Path: "/r"},
		{Kind: tool.Network, Text: "example.com"},
		{Kind: tool.Network, Text: "*"},
		{Kind: tool.Write, Path: "/w\n\u202e"},
		{Kind: tool.Write, Path: "/w\n\u202e"}, // by another part of the command
		{Kind: tool.External},
		{Kind: tool.External, Text: "send\x1b it"},
	}
	want := []string{"talks to example.com", "talks to any host", `changes /w\x0a\u202e`, `would send\x1b it`}
	if diff := cmp.Diff(want, words.Effects(all, false)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(slices.Delete(want, 2, 3), words.Effects(all, true)); diff != "" {
		t.Error(diff)
	}
}

// TestVisit checks that exactly the questions made by VisitQuestion are such ones.
func TestVisit(t *testing.T) {
	ask := func(question string, options []string) llm.Call {
		raw, err := json.Marshal(map[string]any{"question": question, "options": options})
		if err != nil {
			t.Fatal(err)
		}
		return call(string(raw))
	}
	question, options, ok := words.VisitQuestion("log in\nhere", "https://bank.example:8080/a?b=c#d")
	message, address, visit := words.Visit(ask(question, options))
	if !ok || !visit || message != "log in\nhere" || address != "https://bank.example:8080/a?b=c#d" {
		t.Errorf("%q asks %q to visit %q", question, message, address)
	}
	for name, c := range map[string]llm.Call{
		"other answers": ask(question, []string{"yes", "no"}),
		"no answers":    ask(question, nil),
		"another host":  ask(strings.Replace(question, "to bank.example", "to home.example", 1), options),
		"more behind":   ask(question+"\nnow", options),
		"a file":        ask("log in\nIt wants you to go to :\nfile:///etc/passwd", options),
		"a script":      ask("log in\nIt wants you to go to x:\njavascript://x/", options),
		"words":         ask("Which?", options),
	} {
		if message, address, visit := words.Visit(c); visit {
			t.Errorf("%s: %q, %q", name, message, address)
		}
	}
	for _, bad := range []string{"", "bank.example", "ftp://bank.example", "https://me@bank.example/", "https://", "https://a.example/\u202e", "https://a.example/" + strings.Repeat("x", 2000)} {
		if question, _, ok := words.VisitQuestion("log in", bad); ok {
			t.Errorf("%q is asked for: %s", bad, question)
		}
	}
}

func TestAnswer(t *testing.T) {
	c := call(`{"question":"which?","options":["heron","egret"]}`)
	if question, options := words.Question(c); question != "which?" || !slices.Equal(options, []string{"heron", "egret"}) {
		t.Error(question, options)
	}
	for line, want := range map[string]string{"1": "heron", " 2 ": "egret", "3": "3", "0": "0", "-1": "-1", "a wren": "a wren", "no": "no"} {
		if d, problem := words.Answer(c, line); problem != "" ||
			!reflect.DeepEqual(d, event.Decided{Call: "1", Allow: true, By: "the user", Answer: want}) {
			t.Errorf("%q: %+v, %s", line, d, problem)
		}
	}
	if d, problem := words.Answer(c, " \t"); problem == "" || d.Allow {
		t.Errorf("%+v", d)
	}
	closed := call(`{"question":"which?","options":["heron","egret"],"closed":true}`)
	for line, want := range map[string]string{"1": "heron", "Egret": "Egret", "egret: it is white": "egret: it is white", "3": "", "wren": "", "her": ""} {
		d, problem := words.Answer(closed, line)
		if d.Answer != want || d.Allow != (want != "") || (problem == "") != (want != "") || want == "" && !strings.Contains(problem, "heron, egret") {
			t.Errorf("%q: %+v, %s", line, d, problem)
		}
	}
	if d, problem := words.Answer(call(`[`), "1"); problem != "" || d.Answer != "1" {
		t.Errorf("%+v", d)
	}
}

func TestDecision(t *testing.T) {
	rules := []string{"write(a)"}
	for _, tc := range []struct {
		line  string
		rules []string
		want  event.Decided
		again bool
	}{
		{"y", nil, event.Decided{Allow: true, Scope: event.ScopeOnce}, false},
		{" YES ", rules, event.Decided{Allow: true, Scope: event.ScopeOnce}, false},
		{"s", rules, event.Decided{Allow: true, Scope: event.ScopeSession}, false},
		{"Project", rules, event.Decided{Allow: true, Scope: event.ScopeProject}, false},
		{"a", rules, event.Decided{Allow: true, Scope: event.ScopeAlways}, false},
		{"always", nil, event.Decided{}, true},
		{"s", nil, event.Decided{}, true},
		{"", rules, event.Decided{}, true},
		{"  ", rules, event.Decided{}, true},
		{"n", rules, event.Decided{}, false},
		{"No", rules, event.Decided{}, false},
		{"yes, but in b", rules, event.Decided{Reason: "yes, but in b"}, false},
		{"yy", rules, event.Decided{Allow: true}, false},
		{"nn", rules, event.Decided{}, false},
		{"w", rules, event.Decided{}, true},
		{"host", nil, event.Decided{}, true},
	} {
		tc.want.Call, tc.want.By = "1", "the user"
		if d, problem := words.Decision("1", words.Options(tc.rules, nil), tc.line); !reflect.DeepEqual(d, tc.want) || (problem != "") != tc.again {
			t.Errorf("%q: %+v, %q", tc.line, d, problem)
		}
	}
	if d := words.Dismissed("1"); !reflect.DeepEqual(d, event.Decided{Call: "1", By: "the user"}) {
		t.Errorf("%+v", d)
	}
	if d := words.TooLate("1"); d.Call != "1" || d.Allow || d.Reason == "" || d.By == "the user" {
		t.Errorf("%+v", d)
	}
}

func TestRaised(t *testing.T) {
	limits := event.Limits{Turns: 3, Cost: 1.5, Tokens: 100, Seconds: 60}
	for _, tc := range []struct {
		stopped event.Stopped
		want    *event.Limits
	}{
		{event.Stopped{Reason: event.ReasonMaxTurns}, &event.Limits{Turns: 6, Cost: 1.5, Tokens: 100, Seconds: 60}},
		{event.Stopped{Reason: event.ReasonBudget}, &event.Limits{Turns: 3, Cost: 3, Tokens: 100, Seconds: 60}},
		{event.Stopped{Reason: event.ReasonMaxTokens}, &event.Limits{Turns: 3, Cost: 1.5, Tokens: 200, Seconds: 60}},
		{event.Stopped{Reason: event.ReasonMaxTime}, &event.Limits{Turns: 3, Cost: 1.5, Tokens: 100, Seconds: 120}},
		{event.Stopped{Reason: event.ReasonRate}, &limits},
		{event.Stopped{Reason: event.ReasonBudget, Cause: llm.KindBilling}, nil},
		{event.Stopped{Reason: event.ReasonDone}, nil},
	} {
		if diff := cmp.Diff(tc.want, words.Raised(limits, tc.stopped)); diff != "" {
			t.Errorf("%+v: %s", tc.stopped, diff)
		}
	}
	if got := words.Raised(event.Limits{}, event.Stopped{Reason: event.ReasonMaxTurns}); got != nil {
		t.Error("there is no limit to raise")
	}
	if limits.Turns != 3 {
		t.Error("the limits that hold were changed")
	}
}

// TestAnsweredBy names who has answered a question, as far as the decision says it.
func TestAnsweredBy(t *testing.T) {
	yes, _ := words.Decision("c", words.Options(nil, nil), "y")
	for want, d := range map[string]event.Decided{
		"answered in another terminal": yes,
		"answered by inspan send":      {Call: "c", By: "inspan send"},
		"nobody answered in time":      words.TooLate("c"),
		"answered elsewhere":           {Call: "c"},
	} {
		if got := words.AnsweredBy(d); got != want {
			t.Errorf("%+v: %q, want %q", d, got, want)
		}
	}
}

// TestFailed checks that a command which ends with another code than 0 has failed, whatever the outcome of its call.
func TestFailed(t *testing.T) {
	code := func(n int) *int { return &n }
	for want, b := range map[string]event.Ended{
		"":                   {Outcome: event.OutcomeOK, Exit: code(0)},
		"exit 3":             {Outcome: event.OutcomeOK, Exit: code(3)},
		"exit 255":           {Outcome: event.OutcomeOK, Exit: code(255)},
		"exit 137, signal 9": {Outcome: event.OutcomeOK, Exit: code(137)},
		"cancelled":          {Outcome: event.OutcomeCancelled, Exit: code(130)},
		"denied":             {Outcome: event.OutcomeDenied},
	} {
		if got := words.Failed(b); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}

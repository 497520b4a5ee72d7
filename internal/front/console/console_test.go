package console_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/charmbracelet/x/ansi"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/view/markdown"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// The process takes up signals when it is first asked to, which must not be in a bubble
// of synctest.
func TestMain(m *testing.M) {
	if ran, code := sandbox.Keeper(); ran {
		os.Exit(code)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	m.Run()
}

type noteArgs struct {
	Word string `json:"word"`
}

// opened opens a session of an agent in mode ask with one tool that would change a file.
func opened(t *testing.T, ran *[]string, steps ...script.Step) *inspan.Session {
	t.Helper()
	note := tool.New("note", "notes a word", func(_ context.Context, _ *tool.Call, in noteArgs) (tool.Result, error) {
		*ran = append(*ran, in.Word)
		return tool.Result{
			Parts: llm.Say("noted\x1b[2J " + in.Word),
			Files: []tool.File{{Path: "/w/a", Written: true, Diff: "-old\n+new \u202e\n"}},
		}, nil
	})
	note.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	a := inspan.Agent{Model: &script.Model{Steps: steps}, Tools: []tool.Tool{note}, Env: tool.Env{Root: "/w"}}
	s, err := a.Open(t.Context(), event.NewMemory("m"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func step(text, word string) script.Step {
	args, _ := json.Marshal(noteArgs{word})
	return script.Step{Parts: llm.Parts{llm.Text{Text: text}, llm.Call{Name: "note", Args: args}}}
}

func TestPersonDecides(t *testing.T) {
	for _, tc := range []struct {
		typed string
		ran   int
		code  int
		shown string
	}{
		{"y\n", 1, console.ExitDone, "✓"},
		{"\n\nYES\n", 1, console.ExitDone, "✓"},
		{"yy\n", 1, console.ExitDone, "✓"},
		{"no\n", 0, console.ExitDone, "Denied by the user."},
		{"n\n", 0, console.ExitDone, "Denied by the user."},
		{" n\n", 0, console.ExitDone, "1 call denied:\n  note: by the user\n"},
		{"do it in b instead\n", 0, console.ExitDone, "Denied by the user: do it in b instead"},
		{"", 0, console.ExitCancelled, "cancelled"},
	} {
		t.Run(strings.TrimSpace(tc.typed), func(t *testing.T) {
			var ran []string
			var out, errs bytes.Buffer
			c := &console.Console{Out: &out, Err: &errs}
			c.Person = console.NewPerson(c, strings.NewReader(tc.typed), &errs)
			code := c.Run(t.Context(), opened(t, &ran, step("I write.", "a\u200bb"), script.Step{Parts: llm.Say("Done.")}), event.Say("go"))
			if code != tc.code || len(ran) != tc.ran || !strings.Contains(errs.String(), tc.shown) {
				t.Errorf("code %d, ran %v\n%s", code, ran, errs.String())
			}
			if !strings.Contains(errs.String(), `\u200b`) {
				t.Error("the question must show what can not be seen")
			}
		})
	}
}

// A question is answered by a number, or in words.
func TestPersonAnswers(t *testing.T) {
	for typed, want := range map[string]string{"2\n": "egret", "3\n": "3", "\na wren, I think\n": "a wren, I think", "no\n": "no"} {
		ask := tool.New("ask", "asks", func(_ context.Context, c *tool.Call, _ struct {
			Options []string `json:"options"`
		},
		) (tool.Result, error) {
			return tool.Text("heard " + c.Answer), nil
		})
		ask.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
			return []tool.Effect{{Kind: tool.Question, Text: "which?"}}, nil
		}
		ask.Preview = func(context.Context, *tool.Call) (string, error) { return "which?\n1. heron\n2. egret", nil }
		call := llm.Call{Name: "ask", Args: json.RawMessage(`{"options":["heron","egret"]}`)}
		a := inspan.Agent{
			Model: &script.Model{Steps: []script.Step{{Parts: llm.Parts{call}}, {Parts: llm.Say("Done.")}}},
			Tools: []tool.Tool{ask}, Mode: "yolo",
		}
		s, err := a.Open(t.Context(), event.NewMemory("m"))
		if err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		c := &console.Console{Out: &out, Err: &errs}
		c.Person = console.NewPerson(c, strings.NewReader(typed), &errs)
		if code := c.Run(t.Context(), s, event.Say("go")); code != console.ExitDone || !strings.Contains(errs.String(), "heard "+want) ||
			!strings.Contains(errs.String(), "? which?\n    1. heron") {
			t.Errorf("%q: code %d\n%s", typed, code, errs.String())
		}
		s.Close()
	}
}

// A session that was stopped because it used too much in a minute asks the person whether it may continue.
func TestRateAsks(t *testing.T) {
	for typed, want := range map[string]int{"y\n": console.ExitDone, "no\n": console.ExitRate} {
		var ran []string
		var out, errs bytes.Buffer
		c := &console.Console{Out: &out, Err: &errs}
		c.Person = console.NewPerson(c, strings.NewReader(typed), &errs)
		s := opened(t, &ran, script.Step{Parts: llm.Say("Done.")})
		code := c.Run(t.Context(), s, event.Say("go"), event.Cancelled{Limit: event.ReasonRate, Reason: "$12 within a minute"})
		if code != want || !strings.Contains(errs.String(), "$12 within a minute: continue?") {
			t.Errorf("%q: code %d\n%s", typed, code, errs.String())
		}
	}
}

// A reached limit asks the person, and each yes doubles it.
func TestLimitsAsk(t *testing.T) {
	for typed, want := range map[string]struct{ ran, code int }{
		"y\ny\ny\ny\ny\n": {3, console.ExitDone}, "y\ny\nno\n": {1, console.ExitMaxTurns}, "y\n\n": {1, console.ExitMaxTurns},
		"y\n": {1, console.ExitMaxTurns},
	} {
		var ran []string
		var out, errs bytes.Buffer
		c := &console.Console{Out: &out, Err: &errs}
		c.Person = console.NewPerson(c, strings.NewReader(typed), &errs)
		s := opened(t, &ran, step("I write.", "a"), step("Again.", "b"), step("Again.", "c"), script.Step{Parts: llm.Say("Done.")})
		code := c.Run(t.Context(), s, event.Switched{Limits: &event.Limits{Turns: 1}}, event.Say("go"))
		if code != want.code || len(ran) != want.ran || !strings.Contains(errs.String(), "1 turns used of 1: continue with twice the limit?") {
			t.Errorf("%q: code %d, ran %v\n%s", typed, code, ran, errs.String())
		}
	}
}

// Nothing a model, a tool or a file says may drive the terminal.
func TestNothingDrivesTheTerminal(t *testing.T) {
	var ran []string
	var out, errs bytes.Buffer
	evil := "\x1b]52;c;aGk=\x07\x1b[31mred\u009b2J\r\u202etxt.exe"
	c := &console.Console{Out: &out, Err: &errs}
	c.Person = console.NewPerson(c, strings.NewReader("y\n"), &errs)
	c.Run(t.Context(), opened(t, &ran, step(evil, evil), script.Step{Parts: llm.Say(evil)}), event.Say("go"))
	for name, text := range map[string]string{"stdout": out.String(), "stderr": errs.String()} {
		if strings.ContainsAny(text, "\x1b\x07\r\u009b\u202e") {
			t.Errorf("%s holds control characters: %q", name, text)
		}
	}
	if !strings.Contains(out.String(), "txt.exe") {
		t.Errorf("the text itself is gone: %q", out.String())
	}
}

func TestAnswerGoesToStdoutAlone(t *testing.T) {
	var ran []string
	var out, errs bytes.Buffer
	c := &console.Console{Out: &out, Err: &errs}
	c.Run(t.Context(), opened(t, &ran, script.Step{Parts: llm.Say("Forty-two.")}), event.Say("go"))
	if out.String() != "Forty-two.\n" {
		t.Errorf("stdout %q", out.String())
	}
}

// broken says a word and fails.
type broken struct{ script.Model }

func (*broken) Stream(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if yield(llm.Chunk{Text: "I think"}, nil) {
			yield(llm.Chunk{}, &llm.Error{Kind: llm.KindInvalid, Message: "no"})
		}
	}
}

// The message about a failure comes below the model's unfinished text.
func TestFailureEndsTheLine(t *testing.T) {
	s, err := (&inspan.Agent{Model: &broken{}}).Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out bytes.Buffer
	c := &console.Console{Out: &out, Err: &out, Width: func(io.Writer) int { return 80 }}
	if code := c.Run(t.Context(), s, event.Say("go")); code != 32 || !strings.HasPrefix(out.String(), "I think\nfailed") {
		t.Errorf("code %d: %q", code, out.String())
	}
}

func TestResultOfEveryForm(t *testing.T) {
	for _, form := range console.Forms() {
		var ran []string
		var out bytes.Buffer
		c := &console.Console{Form: form, Out: &out, Err: io.Discard}
		code := c.Run(t.Context(), opened(t, &ran, step("I write.", "a")), event.Say("go"))
		if code != console.ExitWaiting {
			t.Errorf("%s: code %d", form, code)
		}
		if n := strings.Count(out.String(), `"type":"result"`); form == console.ClaudeStreamJSON &&
			(n != 1 || !strings.Contains(out.String(), `"tool_use"`)) {
			t.Errorf("%s: %s", form, out.String())
		}
		if form == console.Text || form == console.ClaudeStreamJSON { // which is not ours
			continue
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var r console.Result
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil ||
			r.Type != "result" || r.Version != 1 || r.Reason != "waiting" || r.ExitCode != code {
			t.Errorf("%s: %+v, %v", form, r, err)
		}
		if n := strings.Count(out.String(), `"type":"result"`); n != 1 || (form == console.JSON && len(lines) != 1) {
			t.Errorf("%s: %d results in %d lines", form, n, len(lines))
		}
		for _, line := range lines[:len(lines)-1] {
			if _, err := event.Decode([]byte(line)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// brokenPipe stands for a reader that has gone away.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestNobodyReads(t *testing.T) {
	var ran []string
	c := &console.Console{Form: console.StreamJSON, Out: brokenPipe{}, Err: io.Discard}
	if code := c.Run(t.Context(), opened(t, &ran, step("I write.", "a")), event.Say("go")); code != console.ExitError {
		t.Errorf("code %d", code)
	}
}

func TestEveryReasonHasItsCode(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range console.Codes() {
		listed[row[0]] = true
	}
	type end struct {
		reason event.Reason
		cause  llm.Kind
	}
	ends := []end{
		{event.ReasonDone, ""},
		{event.ReasonMaxTurns, ""},
		{event.ReasonBudget, ""},
		{event.ReasonRefused, llm.KindRefused},
		{event.ReasonStuck, ""},
		{event.ReasonFailed, ""},
		{event.ReasonCancelled, ""},
	}
	for _, kind := range []llm.Kind{
		llm.KindTransient, llm.KindRateLimited, llm.KindQuota, llm.KindOverloaded, llm.KindTimeout, llm.KindStreamCut, llm.KindWindow,
		llm.KindTooLarge, llm.KindAuthExpired, llm.KindAuth, llm.KindBilling, llm.KindHistory, llm.KindInvalid, llm.KindNoModel, llm.KindNoTools, llm.KindNoReply,
	} {
		ends = append(ends, end{event.ReasonFailed, kind})
	}
	seen := map[int]end{}
	for _, e := range ends {
		code := console.ExitCode(string(e.reason), e.cause, nil)
		if other, twice := seen[code]; twice {
			t.Errorf("%v and %v share %d", e, other, code)
		}
		seen[code] = e
		if !listed[strconv.Itoa(code)] {
			t.Errorf("%d is not in the help", code)
		}
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/OUTPUT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range console.Codes() {
		if line := fmt.Sprintf("\n- %s %s", row[0], row[1]); !strings.Contains(string(doc), line) {
			t.Errorf("docs/OUTPUT.md lacks %q", line)
		}
	}
}

// A person sees every wait, with a countdown where the terminal can show one.
func TestWaitsAreCounted(t *testing.T) {
	for live, want := range map[bool]string{
		true:  `! script: overloaded \(HTTP 529\): scripted failure\n\r  retrying in \d\.\d s`,
		false: `! script: overloaded \(HTTP 529\): scripted failure; retrying in \d\.\d s\n`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var out, errs bytes.Buffer
			var ran []string
			c := &console.Console{Out: &out, Err: &errs, Live: live}
			s := opened(t, &ran, script.Step{Fail: 529, Times: 4, Parts: llm.Say("Hello.")})
			if code := c.Run(t.Context(), s, event.Say("go")); code != console.ExitDone {
				t.Errorf("code %d: %s", code, errs.String())
			}
			if !regexp.MustCompile(want).MatchString(errs.String()) {
				t.Errorf("live %v: %q", live, errs.String())
			}
			if n := strings.Count(errs.String(), "scripted failure"); n != 1 || !strings.Contains(errs.String(), "! the same again") {
				t.Errorf("live %v: the reason was given %d times: %q", live, n, errs.String())
			}
			if counted := strings.Count(errs.String(), "retrying"); live != (counted > 6) {
				t.Errorf("live %v: %d times", live, counted)
			}
		})
	}
}

// TestPersonEdits checks that a person can change a command before it runs, and add a note to a yes, in lines.
func TestPersonEdits(t *testing.T) {
	for _, tc := range []struct{ typed, ran, shown string }{
		{"e\nmake test\ny\n", "make test", "Run this instead: "},
		{"e: make test\ny\n", "make test", "$ make test"},
		{"7\n\nn\n", "", "The command is empty; n denies it."},
		{"e: make\nn\n", "", "The command is as it was"},
		{"yes: only once\n", "make", "told the model: only once"},
		{"y: only once\n", "make", "told the model: only once"},
		{"no: never\n", "", "Denied by the user: no: never"},
		{"note: this is a reason\n", "", "Denied by the user: note: this is a reason"},
	} {
		t.Run(strings.TrimSpace(tc.typed), func(t *testing.T) {
			type args struct {
				Command string `json:"command"`
			}
			ran := ""
			runs := tool.New("run", "runs a command", func(_ context.Context, _ *tool.Call, in args) (tool.Result, error) {
				ran = in.Command
				return tool.Text("done"), nil
			})
			runs.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
				return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
			}
			model := &script.Model{Steps: []script.Step{
				{Parts: llm.Parts{llm.Call{Name: "run", Args: []byte(`{"command":"make"}`)}}}, {Parts: llm.Say("Done.")},
			}}
			s, err := (&inspan.Agent{Model: model, Tools: []tool.Tool{runs}, Env: tool.Env{Root: "/w"}}).Open(t.Context(), event.NewMemory("m"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var out bytes.Buffer
			c := &console.Console{Out: &out, Err: &out}
			c.Person = console.NewPerson(c, strings.NewReader(tc.typed), &out)
			c.Run(t.Context(), s, event.Say("go"))
			if ran != tc.ran || !strings.Contains(out.String(), tc.shown) {
				t.Errorf("ran %q:\n%s", ran, out.String())
			}
		})
	}
}

// TestQuestionFitsTheTerminal checks that the choices of a question break between words.
func TestQuestionFitsTheTerminal(t *testing.T) {
	for _, width := range []int{80, 40} {
		var ran []string
		var out bytes.Buffer
		c := &console.Console{Out: &out, Err: &out, Width: func(io.Writer) int { return width }}
		c.Person = console.NewPerson(c, strings.NewReader("n\n"), &out)
		s := opened(t, &ran, step("I write.", "a"), script.Step{Parts: llm.Say("Done.")})
		if code := c.Run(t.Context(), s, event.Say("go")); len(ran) > 0 {
			t.Fatalf("exit %d, %v", code, ran)
		}
		_, asked, found := strings.Cut(out.String(), "Allow it?")
		asked, _, ends := strings.Cut(asked, "instead: ")
		if !found || !ends || !strings.Contains(strings.Join(strings.Fields(asked), " "), "or say what to do") {
			t.Fatalf("at %d:\n%s", width, out.String())
		}
		for line := range strings.Lines("  Allow it?" + asked + "instead:") {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("at %d: %d cells: %s", width, n, line)
			}
		}
	}
}

// TestFitsTheTerminal checks that tables, charts and images fit the terminal, that a pipe gets readable markdown, and
// that JSON has the original text.
func TestFitsTheTerminal(t *testing.T) {
	const reply = "So:\n\n| file | what it is for |\n|---|---|\n| cart.go | adds up carts and gives ten percent off for ten of the same " +
		"thing |\n| 漢字.go | is wide |\n\n![x](data:image/png;base64,AAAA)"
	chart := markdown.Chart{Kind: markdown.Bar, Labels: []string{"漢字という名前", "b"}, Series: []markdown.Series{{Values: []float64{210, 83.5}}}}
	draw := tool.New("draw", "draws", func(context.Context, *tool.Call, struct{}) (tool.Result, error) {
		return tool.Result{
			Parts: llm.Parts{llm.Text{Text: "drawn"}, llm.Image{MediaType: "image/png", Data: []byte("12345")}},
			Show:  "**Sizes**\n\n" + chart.Markdown() + "\n![p.png](data:image/png;base64,AAAA \"PNG, 6 x 4, 84 B\")\n",
		}, nil
	})
	run := func(c *console.Console) {
		steps := []script.Step{{Parts: llm.Parts{llm.Call{Name: "draw", Args: json.RawMessage("{}")}}}, {Parts: llm.Say(reply)}}
		a := inspan.Agent{Model: &script.Model{Steps: steps}, Tools: []tool.Tool{draw}, Mode: "yolo", Env: tool.Env{Root: "/w"}}
		s, err := a.Open(t.Context(), event.NewMemory("m"))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if code := c.Run(t.Context(), s, event.Say("go")); code != console.ExitDone {
			t.Fatal(code)
		}
	}
	for _, width := range []int{0, 80, 40, 20} {
		var out, errs bytes.Buffer
		run(&console.Console{Out: &out, Err: &errs, Width: func(io.Writer) int { return width }})
		for line := range strings.Lines(out.String() + errs.String()) {
			if n := ansi.StringWidth(strings.TrimSuffix(line, "\n")); n > width && width > 0 {
				t.Errorf("at %d: %d cells: %s", width, n, line)
			}
		}
		flat := strings.Join(strings.Fields(errs.String()), " ")
		for _, want := range []string{"█ 210", "83.5", "[image: p.png, PNG, 6 x 4, 84 B]", "[image: PNG"} {
			if !strings.Contains(flat, want) {
				t.Errorf("at %d there is no %q:\n%s", width, want, errs.String())
			}
		}
		table := map[int]string{0: "| 漢字.go | is wide ", 80: "│ 漢字.go │ is wide ", 40: "│ 漢字.go │ is wide ", 20: "│ 漢字.go │ is     │"}[width]
		if !strings.Contains(out.String(), table) || !strings.Contains(strings.Join(strings.Fields(out.String()), " "),
			"[image: x, PNG, 3 bytes]") || strings.Contains(out.String()+errs.String(), "base64") {
			t.Errorf("at %d:\n%s\n%s", width, out.String(), errs.String())
		}
	}
	var out bytes.Buffer
	run(&console.Console{Form: console.JSON, Out: &out, Err: io.Discard, Width: func(io.Writer) int { return 80 }})
	var r console.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.Text != reply {
		t.Errorf("%v: %s", err, r.Text)
	}
}

// TestReplyIsCompleted checks that a reader who has missed a part of a streamed reply shows all of it in the end, and
// that a file or a pipe has nothing else.
func TestReplyIsCompleted(t *testing.T) {
	for name, tc := range map[string]struct {
		deltas []event.Delta
		want   string
	}{
		"nothing came":      {nil, "One two.\n"},
		"all of it came":    {[]event.Delta{{Text: "One "}, {Text: "two."}}, "One two.\n"},
		"the end is missed": {[]event.Delta{{Text: "One"}}, "One two.\n"},
		"it broke off":      {[]event.Delta{{Text: "Ze"}, {Void: true}, {Text: "One"}}, "Ze\nOne two.\n"},
		"it was changed":    {[]event.Delta{{Text: "Three"}}, "Three\n"},
	} {
		for width, want := range map[int]string{80: tc.want, 0: "One two.\n"} {
			var out bytes.Buffer
			c := console.Console{Out: &out, Err: io.Discard, Width: func(io.Writer) int { return width }}
			err := c.Show(func(yield func(event.Event, error) bool) {
				for _, d := range tc.deltas {
					yield(event.Event{Body: d}, nil)
				}
				yield(event.Event{Seq: 1, Body: event.Replied{Parts: llm.Say("One two.")}}, nil)
			}, false)
			if err != nil || out.String() != want {
				t.Errorf("%s, width %d: %q, %v", name, width, out.String(), err)
			}
		}
	}
}

// full is a stream that takes nothing, as on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestUnwrittenResult checks that a result that could not be written is not success, and that other exit codes stay.
func TestUnwrittenResult(t *testing.T) {
	for _, form := range console.Forms() {
		var said bytes.Buffer
		c := console.Console{Form: form, Out: full{}, Err: &said}
		r := console.Result{Reason: "done", Structured: json.RawMessage(`{"n":3}`)}
		if code := c.Finish(r); code != console.ExitError || !strings.Contains(said.String(), "the result was not written: no space left") {
			t.Errorf("%s: code %d: %s", form, code, &said)
		}
		if r.ExitCode = console.ExitBudget; c.Finish(r) != console.ExitBudget {
			t.Errorf("%s: a failed run lost its exit code", form)
		}
	}
}

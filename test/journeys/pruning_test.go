package journeys_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestOldResultsAreCutShort checks that a prompt which gets too long loses its oldest results first, many at a time,
// and nothing else, and that the history tool is named where there is one.
func TestOldResultsAreCutShort(t *testing.T) {
	for _, history := range []bool{true, false} {
		t.Run(fmt.Sprint("history ", history), func(t *testing.T) { cutShort(t, history) })
	}
}

func cutShort(t *testing.T, history bool) {
	a, m := reading(t, 60_000)
	if history {
		look := a.Tools[0]
		look.Name = "history"
		a.Tools = append(a.Tools, look)
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Say(order))
	pruned := bodiesOf[event.Pruned](events)
	if len(pruned) < 2 || len(pruned) > 6 || len(bodiesOf[event.Compacted](events)) > 0 {
		t.Fatalf("pruned %d times, compacted %d times", len(pruned), len(bodiesOf[event.Compacted](events)))
	}
	for _, p := range pruned {
		if p.Why != loop.PruneWindow || p.Before <= 45_000 || p.After > 45_000*3/4 {
			t.Errorf("%+v", p)
		}
	}
	last := m.asked[len(m.asked)-1].Messages
	if last[0].Parts.Text() != order {
		t.Errorf("the order is now %q", last[0].Parts.Text())
	}
	first, newest := last[2].Parts[0].(llm.Result), last[len(last)-1].Parts[0].(llm.Result)
	if text := first.Parts.Text(); len(text) > 1000 || strings.Contains(text, `The history tool shows all of it, with call "c1"`) != history || !strings.HasPrefix(text, `{"word":"w1"}`) {
		t.Errorf("the first result is now %q", text)
	}
	if n := len(newest.Parts.Text()); n < 7000 {
		t.Errorf("the last result has %d bytes", n)
	}
}

// TestColdPromptIsCutShort checks that a pause no prompt cache outlives is used to cut old results short although there
// is room for them.
func TestColdPromptIsCutShort(t *testing.T) {
	for _, tc := range []struct {
		pause time.Duration
		want  int
	}{{59 * time.Minute, 0}, {2 * time.Hour, 1}} {
		synctest.Test(t, func(t *testing.T) {
			a, _ := reading(t, 400_000)
			s, err := a.Open(t.Context(), event.NewMemory("s"))
			if err != nil {
				t.Fatal(err)
			}
			events := drivenTo(t, s, event.Say(order))
			time.Sleep(tc.pause)
			events = append(events, drivenTo(t, s, event.Say("Go on."))...)
			pruned := bodiesOf[event.Pruned](events)
			if len(pruned) != tc.want {
				t.Fatalf("after %v pruned %d times", tc.pause, len(pruned))
			}
			for _, p := range pruned {
				if p.Why != loop.PruneCold || p.Before-p.After < 20_000 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// TestSameResultIsGivenOnce checks that a result which the model still sees from the very same call is not put before
// it a second time.
func TestSameResultIsGivenOnce(t *testing.T) {
	content := strings.Repeat("a line of the file\n", 100)
	read := tool.New("read", "Reads.", func(_ context.Context, _ *tool.Call,
		_ wordArgs,
	) (tool.Result, error) {
		return tool.Text(content), nil
	})
	read.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}, nil
	}
	write := tool.New("write", "Writes.", func(_ context.Context, _ *tool.Call, in wordArgs) (tool.Result, error) {
		content = in.Word + content
		return tool.Text("done"), nil
	})
	write.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}, nil
	}
	a := inspan.Agent{
		Model: scripted(t,
			`call: read {"word":"a"}`, `call: read {"word":"b"}`, `call: read {"word":"a"}`,
			`call: write {"word":"c"}`, `call: read {"word":"a"}`, `call: read {"word":"a"}`, "done"),
		Tools: []tool.Tool{read, write}, Mode: "yolo", Env: tool.Env{Root: "/w"},
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range bodiesOf[event.Ended](drivenTo(t, s, event.Say("go"))) {
		short := len(e.Parts.Text()) < 300 && strings.Contains(e.Parts.Text(), `(100 lines, from "`)
		if e.Again != short {
			t.Errorf("again %t: %.100q", e.Again, e.Parts.Text())
		}
		got = append(got, fmt.Sprint(e.Again))
	}
	if want := "false false true false false true"; strings.Join(got, " ") != want {
		t.Errorf("given again: %v, want %s", got, want)
	}
	if c := s.Context(); c.NotRepeated != 2 || c.Calls != 6 {
		t.Errorf("%d of %d calls", c.NotRepeated, c.Calls)
	}
}

// TestWhatLastsStays checks that a result which lasts is not cut short when others are, and that a compaction repeats
// it to the letter, once and only while it holds.
func TestWhatLastsStays(t *testing.T) {
	rules := "Rule one: measure first.\n" + strings.Repeat("And so on. ", 400) + "\nThe last rule."
	a, m := reading(t, 60_000)
	read, n := a.Tools[0].Run, 0
	a.Tools[0].Run = func(ctx context.Context, c *tool.Call) (tool.Result, error) {
		if n++; n > 2 {
			return read(ctx, c)
		}
		r := tool.Text(fmt.Sprintf("Version %d. %s", n, rules))
		r.Lasting = "skill measure"
		return r, nil
	}
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	said := drivenTo(t, s, event.Say(order))
	if len(bodiesOf[event.Pruned](said)) == 0 {
		t.Fatal("nothing was cut short")
	}
	first, second := result(t, m.asked[len(m.asked)-1], "c1"), result(t, m.asked[len(m.asked)-1], "c2")
	if len(first) > 1000 || !strings.HasSuffix(second, rules) {
		t.Errorf("after cutting: the first has %d bytes, the second %d", len(first), len(second))
	}
	for range 2 {
		drivenTo(t, s, event.Compact{})
		drivenTo(t, s, event.Say(order))
	}
	if len(bodiesOf[event.Compacted](said)) > 0 {
		t.Fatal("it was compacted too early for the test")
	}
	text := textOf(m.asked[len(m.asked)-1])
	if strings.Count(text, "Version 2. "+rules) != 1 || strings.Contains(text, "Version 1.") {
		t.Errorf("after two compactions, what lasts stands there %d times", strings.Count(text, "Version 2. "+rules))
	}
}

// result is the text of the result of a call in a request.
func result(t *testing.T, req llm.Request, call string) string {
	t.Helper()
	for _, m := range req.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok && r.CallID == call {
				return r.Parts.Text()
			}
		}
	}
	t.Fatalf("there is no result of %s", call)
	return ""
}

func textOf(req llm.Request) string {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, part := range m.Parts {
			if r, ok := part.(llm.Result); ok {
				b.WriteString(r.Parts.Text() + "\n")
			}
		}
		b.WriteString(m.Parts.Text() + "\n")
	}
	return b.String()
}

package inspan_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// reading has a conversation of long results, which can be cut short.
func reading(t *testing.T, window int) (*inspan.Agent, *longWork) {
	m := &longWork{t: t, window: window, turns: 40, summary: record}
	a := longAgent(m)
	m.looks = 0
	a.Tools[0].Run = func(_ context.Context, c *tool.Call) (tool.Result, error) {
		return tool.Text(string(c.Args) + strings.Repeat(" line of a file", 500)), nil
	}
	return a, m
}

// TestOldResultsAreCutShort holds that a prompt which gets too long loses its
// oldest results first, many at a time, and nothing else.
func TestOldResultsAreCutShort(t *testing.T) {
	a, m := reading(t, 60_000)
	s, err := a.Open(t.Context(), event.NewMemory("s"))
	if err != nil {
		t.Fatal(err)
	}
	events := drivenTo(t, s, event.Said{Parts: llm.Say(order)})
	pruned := bodiesOf[event.Pruned](events)
	if len(pruned) < 2 || len(pruned) > 6 || len(bodiesOf[event.Compacted](events)) > 0 {
		t.Fatalf("pruned %d times, compacted %d times", len(pruned), len(bodiesOf[event.Compacted](events)))
	}
	for _, p := range pruned {
		if p.Why != event.PruneWindow || p.Before <= 45_000 || p.After > 45_000*3/4 {
			t.Errorf("%+v", p)
		}
	}
	last := m.asked[len(m.asked)-1].Messages
	if last[0].Parts.Text() != order {
		t.Errorf("the order is now %q", last[0].Parts.Text())
	}
	first, newest := last[2].Parts[0].(llm.Result), last[len(last)-1].Parts[0].(llm.Result)
	if text := first.Parts.Text(); len(text) > 1000 || !strings.Contains(text, `with call "c1"`) || !strings.HasPrefix(text, `{"word":"w1"}`) {
		t.Errorf("the first result is now %q", text)
	}
	if n := len(newest.Parts.Text()); n < 7000 {
		t.Errorf("the last result has %d bytes", n)
	}
}

// TestColdPromptIsCutShort holds that a pause no prompt cache outlives is used to
// cut old results short although there is room for them.
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
			events := drivenTo(t, s, event.Said{Parts: llm.Say(order)})
			time.Sleep(tc.pause)
			events = append(events, drivenTo(t, s, event.Said{Parts: llm.Say("Go on.")})...)
			pruned := bodiesOf[event.Pruned](events)
			if len(pruned) != tc.want {
				t.Fatalf("after %v pruned %d times", tc.pause, len(pruned))
			}
			for _, p := range pruned {
				if p.Why != event.PruneCold || p.Before-p.After < 20_000 {
					t.Errorf("%+v", p)
				}
			}
		})
	}
}

// TestSameResultIsGivenOnce holds that a result which the model still sees from
// the very same call is not put before it a second time.
func TestSameResultIsGivenOnce(t *testing.T) {
	content := strings.Repeat("a line of the file\n", 100)
	read := tool.New("read", "Reads.", func(_ context.Context, _ *tool.Call, _ wordArgs) (tool.Result, error) { return tool.Text(content), nil })
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
	for _, e := range bodiesOf[event.Ended](drivenTo(t, s, event.Said{Parts: llm.Say("go")})) {
		short := len(e.Parts.Text()) < 300 && strings.Contains(e.Parts.Text(), `(100 lines, from "`)
		if e.Again != short {
			t.Errorf("again %t: %.100q", e.Again, e.Parts.Text())
		}
		got = append(got, fmt.Sprint(e.Again))
	}
	if want := "false false true false false true"; strings.Join(got, " ") != want {
		t.Errorf("given again: %v, want %s", got, want)
	}
	if c := s.Context(); c.Again != 2 || c.Calls != 6 {
		t.Errorf("%d of %d calls", c.Again, c.Calls)
	}
}

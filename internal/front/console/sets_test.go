package console_test

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/tool"
)

// TestPersonDecidesOnASet checks that calls which are asked for together are printed in full, as one question whose
// answer is for all of them.
func TestPersonDecidesOnASet(t *testing.T) {
	for typed, want := range map[string]int{"y\n": 2, "n\n": 0, "s\ny\n": 2} {
		ran := 0
		note := tool.New("note", "", func(context.Context, *tool.Call, noteArgs) (tool.Result, error) { ran++; return tool.Text("ok"), nil })
		note.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
			return []tool.Effect{{Kind: tool.Network, Text: "example.com"}}, nil
		}
		a := &inspan.Agent{
			Model: &script.Model{Steps: []script.Step{{Parts: llm.Parts{llm.Call{Name: "fill", Args: []byte("{}")}}}, {Parts: llm.Say("Done.")}}},
			Tools: []tool.Tool{note, testkit.Fill("note", `{"word":"one"}`, `{"word":"two"}`)}, Env: tool.Env{Root: "/w"},
		}
		s, err := a.Open(t.Context(), event.NewMemory("s"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		var out, errs bytes.Buffer
		c := &console.Console{Out: &out, Err: &errs}
		c.Person = console.NewPerson(c, strings.NewReader(typed), &errs)
		c.Run(t.Context(), s, event.Say("go"))
		shown := errs.String()
		if ran != want || strings.Count(shown, "? a set of 2 calls asks (reach 1 host (example.com))") != 1 {
			t.Errorf("%q: ran %d times\n%s", typed, ran, shown)
		}
		for _, part := range []string{"Call 1 of 2, call_s0_0/1: note", `"one"`, "Call 2 of 2, call_s0_0/2: note", `"two"`, "talks to example.com", "1 Yes (y)\n  2 No (n)\n"} {
			if !strings.Contains(shown, part) {
				t.Errorf("%q does not show %q:\n%s", typed, part, shown)
			}
		}
	}
}

// TestAttachedToASet checks that a person who watches a session from elsewhere answers a set as one.
func TestAttachedToASet(t *testing.T) {
	var ran []string
	s, watch := elsewhere(t, &ran, script.Step{Parts: llm.Parts{llm.Call{Name: "fill", Args: []byte("{}")}}}, script.Step{Parts: llm.Say("Done.")})
	var log screen
	code := make(chan int, 1)
	go func() { code <- (&console.Console{Out: &log, Err: &log}).RunOn(t.Context(), s, event.Say("go")) }()
	log.shows(t, "open question")
	var screen screen
	c := &console.Console{Out: &screen, Err: &screen}
	typed, keys := io.Pipe()
	seen := make(chan int, 1)
	w := watch()
	go func() {
		code, err := c.Attach(t.Context(), w, console.Attachment{
			Person: console.NewPerson(c, typed, &screen), Driven: func(context.Context) (bool, error) { return true, nil },
		})
		if err != nil {
			t.Error(err)
		}
		seen <- code
	}()
	screen.shows(t, "? a set of 2 calls asks (write /w/a (outside the workspace))")
	screen.shows(t, "1 Yes (y)\n  2 No (n)\n")
	if _, err := io.WriteString(keys, "y\n"); err != nil {
		t.Error(err)
	}
	if got, gone := <-code, <-seen; got != console.ExitDone || gone != console.ExitDone || !slices.Equal(ran, []string{"one", "two"}) {
		t.Errorf("codes %d and %d, ran %q", got, gone, ran)
	}
}

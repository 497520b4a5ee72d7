package journeys_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/hold"
	"github.com/inspan/inspan/tool"
)

// leading returns a tool whose calls start a process and signal started: one with the word "move" changes the
// directory, and one with the word "export" leaves a variable for the next call. Neither does so before the last call
// is judged.
func leading(box tool.Box, last string, started *[]string) tool.Tool {
	vars, judged := []string{"A=1"}, make(chan struct{})
	var once sync.Once
	t := tool.New("note", "starts something", func(ctx context.Context, c *tool.Call, in wordArgs) (res tool.Result, err error) {
		<-judged
		_, err = c.Env.Procs.Start(ctx, tool.Command{Args: []string{in.Word}, Dir: c.Cwd, Vars: vars, Box: box})
		if err == nil || err.Error() == "started" {
			*started = append(*started, in.Word)
			err = nil
		}
		switch in.Word {
		case "move":
			res.Cwd = "/elsewhere"
		case "export":
			vars = []string{"A=2"}
		case "unset":
			vars = nil
		}
		return res, err
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		if wordOf(c.Args) == last {
			defer func() { once.Do(func() { close(judged) }) }()
		}
		in := tool.Effect{Kind: tool.Execute, Text: wordOf(c.Args), Dir: c.Cwd, Vars: hold.Exported(vars)}
		if strings.HasPrefix(in.Text, "here") { // no directory changes what it does
			in.Dir = ""
		}
		return []tool.Effect{in}, nil
	}
	return t
}

// TestCallsRunAsJudged checks that no call runs in another directory or with other variables than it was judged with,
// in any box and mode, if a parallel call has changed them: neither after a question nor, where it matters, without
// one.
func TestCallsRunAsJudged(t *testing.T) {
	inside, outside := tool.Box{Level: tool.BoxWorkspace}, tool.Box{Level: tool.BoxNone}
	for name, tc := range map[string]struct {
		words string
		box   tool.Box
		mode  tool.Mode
		asks  string // the words that a person is asked about
		want  string // those that start something
	}{
		"directory":               {"move rm", inside, "auto", "rm", "move"},
		"directory, outside":      {"move rm", outside, "auto", "rm", "move"},
		"directory, nobody asked": {"move rm", inside, "auto", "", "move"},
		"directory, in yolo":      {"move rm", outside, "yolo", "rm", "move"},
		"directory of no matter":  {"move here", inside, "auto", "here", "move here"},
		"variable":                {"export rm", inside, "auto", "rm", "export"},
		"variable, outside":       {"export rm", outside, "auto", "rm", "export"},
		"variable, in yolo":       {"export rm", outside, "yolo", "rm", "export"},
		"variable gone":           {"unset rm", outside, "auto", "rm", "unset"},
		"variable, nobody asked":  {"export rm", outside, "auto", "", "export"},
		"variable, held by a box": {"export rm", inside, "auto", "", "export rm"},
		"variable, free in yolo":  {"export rm", outside, "yolo", "", "export rm"},
		"nothing":                 {"list rm", outside, "auto", "rm", "list rm"},
	} {
		for _, within := range []bool{false, true} {
			words := strings.Fields(tc.words)
			var started []string
			reply, tools := "", []tool.Tool{leading(tc.box, words[len(words)-1], &started)}
			for _, w := range words {
				reply += "call: note {\"word\":\"" + w + "\"}\n"
			}
			if within {
				reply, tools = oneRecipe, append(tools, sideBySide(words...))
			}
			a := &inspan.Agent{
				Model: scripted(t, reply, "Done."), Mode: tc.mode, Tools: tools, Env: tool.Env{Root: "/w", Procs: &starter{}},
				Rules: []inspan.Rule{{Action: tool.Allow, Text: "note"}},
				Judges: []tool.Judge{tool.JudgeFunc(func(_ context.Context, c *tool.Call, _ []tool.Effect) (v tool.Verdict, err error) {
					if tc.asks != "" && wordOf(c.Args) == tc.asks {
						v.Action = tool.Ask
					}
					return v, nil
				})},
			}
			log := event.NewMemory("s")
			c := &inspan.Conductor{Session: open(t, a, log), Ask: allow}
			if err := c.Run(t.Context(), said("go")); err != nil {
				t.Fatal(err)
			}
			if want := strings.Fields(tc.want); !slices.Equal(started, want) {
				t.Errorf("%s, in a program %t: started %q, want %q", name, within, started, want)
			}
		}
	}
}

// sideBySide is a program that makes all its calls before it waits for any.
func sideBySide(words ...string) tool.Tool {
	t := tool.New("recipe", "makes calls", func(ctx context.Context, c *tool.Call, _ struct{}) (tool.Result, error) {
		var waits []func() (tool.Result, error)
		for _, w := range words {
			waits = append(waits, c.Start(ctx, "note", []byte(`{"word":"`+w+`"}`)))
		}
		for _, wait := range waits {
			if _, err := wait(); err != nil {
				return tool.Text("not all"), err
			}
		}
		return tool.Text("all"), nil
	})
	t.Calls = true
	return t
}

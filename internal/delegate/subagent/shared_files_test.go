package subagent_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// TestSiblingsMeet checks that two children that change one file at the same time are both told, once each, and so is
// their parent; and that those are not who changed others, work apart, or come later. It makes no difference whether a
// tool names the file or a command that names none has written it.
func TestSiblingsMeet(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second string // files that they write
		apart         bool   // they work in copies
		command       bool   // they write by a program
		after         bool   // the second begins when the first has come back
		meet          bool
	}{
		"one file":            {"a.txt", "a.txt", false, false, false, true},
		"two files":           {"a.txt", "b.txt", false, false, false, false},
		"apart":               {"a.txt", "a.txt", true, false, false, false},
		"after another":       {"a.txt", "a.txt", false, false, true, false},
		"programs, one file":  {"a.txt", "a.txt", false, true, false, true},
		"programs, two files": {"a.txt", "b.txt", false, true, false, false},
		"programs, apart":     {"a.txt", "a.txt", true, true, false, false},
		"through a path":      {"a.txt", "sub/../a.txt", false, false, false, true},
	} {
		var mu sync.Mutex
		heard := map[string]string{}
		wrote, met := make(chan struct{}), make(chan struct{})
		write := puts
		if tc.command {
			write = func(pairs ...string) llm.Parts {
				return llm.Parts{call("p", "program", map[string]any{"path": pairs[0], "text": pairs[1]})}
			}
		}
		more := []any{}
		if tc.apart {
			more = []any{"isolation", "worktree"}
		}
		h := newFarm(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
			raw, _ := json.Marshal(req.Messages)
			mu.Lock()
			heard[task] = string(raw)
			mu.Unlock()
			switch {
			case task == "start" && turn == 0 && tc.after:
				return llm.Parts{spawn("c1", "first", more...)}, nil
			case task == "start" && turn == 0:
				return llm.Parts{spawn("c1", "first", more...), spawn("c2", "second", more...)}, nil
			case task == "start" && turn == 1 && tc.after:
				return llm.Parts{spawn("c2", "second", more...)}, nil
			case task == "first" && turn == 0:
				return write(tc.first, "first\n"), nil
			case task == "first" && turn == 1:
				close(wrote)
				return llm.Parts{call("w", "look", nil)}, nil
			case task == "second" && turn == 0:
				return llm.Parts{call("w", "look", nil)}, nil
			case task == "second" && turn <= 2:
				return write(tc.second, strings.Repeat("second\n", turn)), nil
			case task == "second" && turn == 3:
				close(met)
			}
			return llm.Say("done"), nil
		}, map[string]string{"a.txt": "a\n", "sub/x": "x"}, looking(func(_ context.Context, c *tool.Call) error {
			if c.Task == "first" && !tc.after {
				<-met
			} else if c.Task == "second" {
				<-wrote
			}
			return nil
		}), program())
		if tc.command {
			h.adjust = func(a *inspan.Agent) { a.Mode = tool.ModeYolo }
		}
		s := h.open()
		got := ended(run(t, s, nil, say("start")))
		mu.Lock()
		one, other := strings.Count(heard["first"], map[bool]string{
			true: "ran a command while a.txt changed, which you have changed", false: "changes a.txt now, which you have changed",
		}[tc.command]), strings.Count(heard["second"],
			"changed a.txt meanwhile; read it again")
		mu.Unlock()
		if want := map[bool]int{true: 1}[tc.meet]; one != want || other != want {
			t.Errorf("%s: the first was told %d times, the second %d, want %d", name, one, other, want)
		}
		for _, id := range []string{"c1", "c2"} {
			if got[id].Outcome != event.OutcomeOK || strings.Contains(text(got[id]), "changed a.txt too, at the same time") != tc.meet {
				t.Errorf("%s: the parent was told %s", name, text(got[id]))
			}
		}
		closed(t, s)
	}
}

// program is a tool that runs something which writes a file, and does not say so.
func program() tool.Tool {
	type args struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	t := tool.New("program", "Runs.", func(_ context.Context, c *tool.Call, in args) (tool.Result, error) {
		return tool.Text("ran"), os.WriteFile(filepath.Join(c.Env.Root, in.Path), []byte(in.Text), 0o600)
	})
	t.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Execute, Text: "make"}}, nil
	}
	return t
}

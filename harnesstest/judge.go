package harnesstest

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/inspan/inspan/tool"
)

// TestJudge proves that a judge keeps the contract of [tool.Judge]: it gives a known verdict on every call,
// even on odd ones, gives it again for the same call, changes none of its arguments, and is safe for concurrent
// use. Its decisions are not checked.
func TestJudge(t *testing.T, j tool.Judge) {
	t.Helper()
	for name, c := range judgeCases() {
		t.Run(name, func(t *testing.T) { testVerdict(t, j, c.call, c.effects) })
	}
	t.Run("concurrent", func(*testing.T) {
		var wg sync.WaitGroup
		for _, c := range judgeCases() {
			for range 8 {
				wg.Go(func() { _, _ = j.Judge(context.Background(), &c.call, c.effects) })
			}
		}
		wg.Wait()
	})
}

type judgeCase struct {
	call    tool.Call
	effects []tool.Effect
}

func judgeCases() map[string]judgeCase {
	call := func(mode tool.Mode, args string) tool.Call {
		return tool.Call{
			ID: "1", Name: "edit_file", Args: json.RawMessage(args),
			Mode: mode, Cwd: "/w", Env: tool.Env{Root: "/w"}, Progress: func(string) {},
		}
	}
	return map[string]judgeCase{
		"pure":           {call("ask", `{}`), nil},
		"read":           {call("ask", `{"path":"a"}`), []tool.Effect{{Kind: tool.Read, Path: "/w/a"}}},
		"write outside":  {call("edit", `{"path":"/etc/passwd"}`), []tool.Effect{{Kind: tool.Write, Path: "/etc/passwd"}}},
		"command":        {call("auto", `{"command":"ls"}`), []tool.Effect{{Kind: tool.Execute, Text: "ls"}}},
		"several":        {call("auto", `{}`), []tool.Effect{{Kind: tool.Read, Path: "/w"}, {Kind: tool.Network, Text: "example.com"}}},
		"external":       {call("plan", `{}`), []tool.Effect{{Kind: tool.External}}},
		"unknown effect": {call("ask", `{}`), []tool.Effect{{Kind: "of a later version"}}},
		"unknown mode":   {call("", `{}`), []tool.Effect{{Kind: tool.Write, Path: "/w/a"}}},
		"empty effect":   {call("ask", `{}`), []tool.Effect{{}}},
	}
}

func testVerdict(t *testing.T, j tool.Judge, c tool.Call, effects []tool.Effect) {
	t.Helper()
	args, shown := slices.Clone(c.Args), slices.Clone(effects)
	first, err := j.Judge(t.Context(), &c, effects)
	if err != nil {
		return // counts as Deny
	}
	if !slices.Contains([]tool.Action{tool.Abstain, tool.Allow, tool.Ask, tool.Deny}, first.Action) {
		t.Errorf("unknown action %q", first.Action)
	}
	if first.Action != tool.Abstain && first.By == "" {
		t.Error("the verdict does not say who gave it")
	}
	if first.Args != nil && !json.Valid(first.Args) {
		t.Errorf("rewritten arguments are not JSON: %s", first.Args)
	}
	if !slices.Equal(c.Args, args) || !slices.Equal(effects, shown) {
		t.Error("the judge changed what it was shown")
	}
	again, err := j.Judge(t.Context(), &c, effects)
	again.Cost, again.Consulted = first.Cost, first.Consulted // a cached answer costs nothing
	if err != nil || !reflect.DeepEqual(first, again) {
		t.Errorf("asked again it says %+v (%v), first %+v", again, err, first)
	}
}

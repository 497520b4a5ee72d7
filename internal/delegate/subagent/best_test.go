package subagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// numbered has the children of one call be told apart by the order in which they ask
// first: each time a child asks, f gets its number.
func numbered(parent map[string]any, f func(n, turn int, req llm.Request) (llm.Parts, error)) func(string,
	int, llm.Request) (llm.Parts, error) {
	var mu sync.Mutex
	numbers := map[string]int{}
	return func(task string, turn int, req llm.Request) (llm.Parts, error) {
		if task == "start" {
			if turn > 0 {
				return llm.Say("all done"), nil
			}
			return llm.Parts{call("c1", "spawn_agent", parent)}, nil
		}
		mu.Lock()
		n, known := numbers[req.Session]
		if !known {
			n = len(numbers)
			numbers[req.Session] = n
		}
		mu.Unlock()
		return f(n, turn, req)
	}
}

// TestCollect checks that one call can spawn several, that all they bring comes back, and that their ids follow from
// the call.
func TestCollect(t *testing.T) {
	h := newHouse(t, numbered(map[string]any{"task": "part", "count": 3}, func(n, _ int, _ llm.Request) (llm.Parts, error) {
		if n == 1 {
			return nil, &llm.Error{Kind: llm.KindInvalid, Message: "no"}
		}
		return llm.Say(fmt.Sprintf("result %d", n)), nil
	}))
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	e := ended(events)["c1"]
	if e.Outcome != event.OutcomeOK || !strings.Contains(text(e), "result 0") || !strings.Contains(text(e), "result 2") ||
		strings.Count(text(e), "[agent worker ") != 3 {
		t.Errorf("%s %s", e.Outcome, text(e))
	}
	calls := map[string]bool{}
	for _, sp := range of[event.Spawned](events) {
		calls[sp.Call] = true
	}
	if len(calls) != 3 || !calls["c1@1/1"] || !calls["c1@1/3"] {
		t.Errorf("%v", calls)
	}
}

// TestVote checks that results are compared as JSON, that more than half decides, and the report if there is no
// majority.
func TestVote(t *testing.T) {
	for name, tc := range map[string]struct {
		results []string // empty means none
		want    []string
		not     string
	}{
		"majority": {
			[]string{`{"n":1,"m":[2]}`, `{ "m":[2.0], "n":1e0 }`, `{"n":2,"m":[2]}`},
			[]string{"2 of 3 results agree]", `{"m":[2],"n":1}`, "1 × {\"m\":[2],\"n\":2}"},
			"[agent worker",
		},
		"none":        {[]string{`{"n":1}`, `{"n":2}`}, []string{"no majority among 2 results", "1 × {\"n\":1}", "[agent worker"}, "agree"},
		"half":        {[]string{`{"n":1}`, `{"n":1}`, `{"n":2}`, `{"n":3}`}, []string{"no majority among 4", "2 × {\"n\":1}"}, "agree"},
		"some absent": {[]string{`{"n":1}`, "", `{"n":1}`}, []string{"2 of 2 results agree; 1 brought none]"}, "no majority"},
		"all absent":  {[]string{"", ""}, []string{"no agent brought a result"}, "agree"},
	} {
		h := newHouse(t, numbered(map[string]any{
			"task": "part", "count": len(tc.results), "reduce": "vote",
			"result_schema": map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}},
		}, func(n, turn int, _ llm.Request) (llm.Parts, error) {
			if turn > 0 || tc.results[n] == "" {
				return llm.Say("I say nothing more"), nil
			}
			return llm.Parts{llm.Call{ID: "r", Name: "return_result", Args: json.RawMessage(tc.results[n])}}, nil
		}))
		s := h.open()
		e := ended(run(t, s, nil, say("start")))["c1"]
		for _, want := range tc.want {
			if !strings.Contains(text(e), want) {
				t.Errorf("%s: no %q in %s", name, want, text(e))
			}
		}
		if strings.Contains(text(e), tc.not) {
			t.Errorf("%s: %q in %s", name, tc.not, text(e))
		}
		closed(t, s)
	}
}

// bash is a tool that fails, or prints, as its first argument says: "check 0 12" ends
// with 0 and prints 12. It changes something unless it says so.
func bash(code func(root string) (int, string)) tool.Tool {
	type args struct {
		Command string `json:"command"`
	}
	t := tool.New("bash", "Runs.", func(_ context.Context, c *tool.Call, in args) (tool.Result, error) {
		if dir, ok := strings.CutPrefix(in.Command, "cd "); ok {
			return tool.Result{Parts: llm.Say("gone"), Cwd: c.Env.Root + "/" + dir}, nil
		}
		if in.Command != "run check" {
			return tool.Text("ran"), nil
		}
		exit, out := code(c.Env.Root)
		return tool.Result{Parts: llm.Say(out + fmt.Sprintf("\n[exit code %d]", exit)), Exit: &exit}, nil
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[args](c)
		if in.Command == "look" {
			return nil, err
		}
		return []tool.Effect{{Kind: tool.Write, Path: c.Env.Root}}, err
	}
	return t
}

// TestBest checks that the copy of the child that does best in its check stays and can be merged, and the report about
// the others.
func TestBest(t *testing.T) {
	type work struct {
		commands []string // after the work, one a turn
		code     int
		out      string
	}
	const check, first = "run check", -2 // the one that was spawned first
	for name, tc := range map[string]struct {
		works []work
		won   int // -1: no one
		want  []string
	}{
		"only one passes": {
			[]work{{[]string{check}, 1, "9"}, {[]string{check}, 0, "1"}},
			1,
			[]string{": failed, with exit code 1", ": passed, with 1"},
		},
		"larger number": {
			[]work{{[]string{check}, 0, "FAST\n3.5"}, {[]string{check}, 0, "12\n"}, {[]string{check}, 0, "-1"}},
			1,
			[]string{"passed, with 12", "passed, with 3.5"},
		},
		"number beats none": {[]work{{[]string{check}, 0, "ok"}, {[]string{check}, 0, "0"}}, 1, []string{": passed\n", "passed, with 0"}},
		"else the first":    {[]work{{[]string{check}, 0, "ok"}, {[]string{check}, 0, "NaN"}}, first, []string{": passed\n"}},
		"nobody passes": {
			[]work{{[]string{check}, 1, ""}, {[]string{check}, 2, ""}},
			-1,
			[]string{"none passed; all copies stay", "exit code 2"},
		},
		"not run": {[]work{{nil, 0, ""}, {[]string{check}, 0, ""}}, 1, []string{"did not run it"}},
		"changed since": {
			[]work{{[]string{check, "more", "more", "more", "more"}, 0, "99"}, {[]string{check}, 0, ""}},
			1,
			[]string{"went on after it had run it"},
		},
		"only looked since":      {[]work{{[]string{check, "look"}, 0, "99"}, {[]string{check}, 0, ""}}, 0, []string{"passed, with 99"}},
		"again, after a failure": {[]work{{[]string{check, "more", check}, 0, "99"}, {[]string{check}, 0, ""}}, 0, []string{"passed, with 99"}},
		"in another folder":      {[]work{{[]string{"cd sub", check}, 0, "99"}, {[]string{check}, 0, ""}}, 1, []string{"did not run it"}},
		"a bit more than it":     {[]work{{[]string{check + " || true"}, 0, "99"}, {[]string{check}, 0, ""}}, 1, []string{"did not run it"}},
	} {
		t.Run(name, func(t *testing.T) {
			var h *house
			var mu sync.Mutex
			at := map[string]work{}
			reminded := false
			h = newFarm(t, numbered(map[string]any{"task": "part", "count": len(tc.works), "reduce": "best", "check": check},
				func(n, turn int, req llm.Request) (llm.Parts, error) {
					raw, _ := json.Marshal(req.Messages)
					mu.Lock()
					defer mu.Unlock()
					reminded = reminded || strings.Contains(string(raw), "says; it is not the person")
					switch commands := tc.works[n].commands; {
					case turn == 0:
						return puts("a.txt", fmt.Sprintf("of %d\n", n)), nil
					case turn <= len(commands):
						return llm.Parts{call("x", "bash", map[string]any{"command": commands[turn-1]})}, nil
					}
					return llm.Say("done"), nil
				}), map[string]string{"a.txt": "a\n", "sub/b": "b"}, bash(func(root string) (int, string) {
				data, err := os.ReadFile(root + "/a.txt")
				if err != nil {
					t.Error(err)
				}
				var n int
				if _, err := fmt.Sscanf(string(data), "of %d", &n); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				at[root] = tc.works[n]
				return tc.works[n].code, tc.works[n].out
			}))
			s := h.open()
			defer closed(t, s)
			events := run(t, s, nil, say("start"))
			e := ended(events)["c1"]
			for _, want := range tc.want {
				if !strings.Contains(text(e), want) {
					t.Errorf("no %q in %s", want, text(e))
				}
			}
			trees, _ := os.ReadDir(h.trees.Dir)
			if tc.won == first {
				_, name, _ := strings.Cut(of[event.Spawned](events)[0].Child, ".")
				if len(trees) != 1 || !strings.Contains(text(e), "run check: worker "+name) {
					t.Errorf("%d copies are left: %s", len(trees), text(e))
				}
				return
			}
			if tc.won < 0 {
				if len(trees) != len(tc.works) {
					t.Errorf("%d copies are left", len(trees))
				}
				return
			}
			if len(trees) != 1 {
				t.Fatalf("%d copies are left: %s", len(trees), text(e))
			}
			left, err := os.ReadFile(h.trees.Dir + "/" + trees[0].Name() + "/a.txt")
			if string(left) != fmt.Sprintf("of %d\n", tc.won) || !strings.Contains(text(e), trees[0].Name()+"; manage_agents, action merge") {
				t.Errorf("%s is left, %v: %s", left, err, text(e))
			}
			if missing := tc.works[0].commands == nil; missing != reminded && (missing || name == "only one passes") {
				t.Errorf("told to run the check: %v", reminded)
			}
		})
	}
}

// TestReduceIsHeld checks that calls that make no sense are refused before a child is started.
func TestReduceIsHeld(t *testing.T) {
	for want, args := range map[string]map[string]any{
		"it is 1 to 8":              {"count": 9},
		"count is -1":               {"count": -1},
		`"mean" is none of`:         {"count": 2, "reduce": "mean"},
		"needs a result_schema":     {"count": 2, "reduce": "vote"},
		"needs a check":             {"count": 2, "reduce": "best", "check": " "},
		"needs a count":             {"reduce": "best", "check": "x"},
		"can't be in the":           {"count": 2, "reduce": "best", "check": "x", "background": true},
		"leave isolation out":       {"count": 2, "reduce": "best", "check": "x", "isolation": "none"},
		"check is for reduce":       {"count": 2, "check": "x"},
		"agents can't work apart":   {"count": 2, "reduce": "best", "check": "x"},
		"there is no kind of agent": {"count": 2, "agent": "wizard"},
	} {
		args["task"] = "part"
		h := newHouse(t, numbered(args, func(int, int, llm.Request) (llm.Parts, error) { return llm.Say("x"), nil }))
		s := h.open()
		events := run(t, s, nil, say("start"))
		e := ended(events)["c1"]
		if e.Outcome == event.OutcomeOK || !strings.Contains(text(e), want) {
			t.Errorf("%s: %s %s", want, e.Outcome, text(e))
		}
		for _, c := range s.Status().Children {
			if c.Open || c.Cost > 0 {
				t.Errorf("%s: somebody works: %+v", want, c)
			}
		}
		closed(t, s)
	}
}

// TestTheRestWait checks that above the most that may work at once agents wait, whether the call waits for them or not.
func TestTheRestWait(t *testing.T) {
	for _, background := range []bool{false, true} {
		var mu sync.Mutex
		works, most := 0, 0
		full := make(chan struct{})
		look := looking(func(context.Context, *tool.Call) error {
			mu.Lock()
			works++
			if most = max(most, works); works == 3 && most == 3 {
				select {
				case <-full:
				default:
					close(full)
				}
			}
			mu.Unlock()
			<-full
			mu.Lock()
			works--
			mu.Unlock()
			return nil
		})
		h := newHouse(t, numbered(map[string]any{"task": "part", "count": 7, "background": background},
			func(n, turn int, _ llm.Request) (llm.Parts, error) {
				if turn == 0 {
					return llm.Parts{call("x", "look", nil)}, nil
				}
				return llm.Say(fmt.Sprintf("result %d", n)), nil
			}), look)
		h.open3 = true
		s := h.open()
		run(t, s, nil, say("start"))
		if st := s.Status(); len(st.Children) != 7 || most != 3 {
			t.Errorf("background %v: %d agents, %d at once", background, len(st.Children), most)
		}
		for _, c := range s.Status().Children {
			if c.Returned == nil || c.Returned.Reason != event.ReasonDone {
				t.Errorf("background %v: %+v", background, c.Returned)
			}
		}
		closed(t, s)
	}
}

// TestManyInBackground checks that each of several background children reports its result.
func TestManyInBackground(t *testing.T) {
	h := newHouse(t, numbered(map[string]any{"task": "part", "count": 2, "background": true},
		func(n, _ int, _ llm.Request) (llm.Parts, error) {
			return llm.Say(fmt.Sprintf("result %d", n)), nil
		}))
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	var told []string
	for _, r := range of[event.Returned](events) {
		told = append(told, r.Parts.Text())
	}
	if all := strings.Join(told, "\n"); len(told) != 2 || !strings.Contains(all, "result 0") || !strings.Contains(all, "result 1") {
		t.Errorf("%q", told)
	}
}

// TestKindWorksApart checks that a kind of agent that works apart does so although the call does not say it, and never
// in a wider place than its kind.
func TestKindWorksApart(t *testing.T) {
	for _, asked := range []string{"", "none", "worktree"} {
		h := newFarm(t, numbered(map[string]any{"task": "part", "agent": "guest", "isolation": asked},
			func(int, int, llm.Request) (llm.Parts, error) {
				return llm.Say("x"), nil
			}), map[string]string{"a": "a"})
		h.adjust = func(*inspan.Agent) {}
		h.guest = "sandbox"
		s := h.open()
		run(t, s, nil, say("start"))
		if len(h.orders) != 1 || h.orders[0].Copy == nil || !h.orders[0].Copy.Closed {
			t.Errorf("asked for %q: %+v", asked, h.orders)
		}
		closed(t, s)
	}
}

// TestBestAfterACrash checks that an interrupted call of several children continues with the same agents, in the same
// copies, and makes its choice.
func TestBestAfterACrash(t *testing.T) {
	stood, then := make(chan struct{}), filepath.Join(t.TempDir(), "then")
	var mu sync.Mutex
	looks, checks := 0, 0
	h := newFarm(t, numbered(map[string]any{"task": "part", "count": 2, "reduce": "best", "check": "run check"},
		func(n, turn int, _ llm.Request) (llm.Parts, error) {
			switch turn {
			case 0:
				return puts("a.txt", fmt.Sprintf("of %d\n", n)), nil
			case 1:
				return llm.Parts{call("l", "look", nil)}, nil
			case 2:
				return llm.Parts{call("x", "bash", map[string]any{"command": "run check"})}, nil
			}
			return llm.Say("done"), nil
		}), map[string]string{"a.txt": "a\n"}, bash(func(root string) (int, string) {
		data, _ := os.ReadFile(root + "/a.txt")
		mu.Lock()
		checks++
		mu.Unlock()
		return 0, strings.TrimPrefix(string(data), "of ")
	}), looking(func(ctx context.Context, _ *tool.Call) error {
		mu.Lock()
		looks++
		n := looks
		mu.Unlock()
		if n == 2 {
			close(stood)
		}
		if n <= 2 {
			<-ctx.Done()
		}
		return ctx.Err()
	}))
	s := h.open()
	ctx, crash := context.WithCancel(t.Context())
	go func() {
		<-stood
		if err := os.CopyFS(then, os.DirFS(h.dir)); err != nil { // what a crash would leave
			t.Error(err)
		}
		crash()
	}()
	for _, err := range s.Run(ctx, say("start")) {
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	closed(t, s)
	h.dir = then
	again, err := h.host().Open(t.Context(), s.ID())
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, again)
	e := ended(run(t, again, nil))["c1"]
	if !strings.Contains(text(e), "passed, with 1") || checks != 2 || len(again.Status().Children) != 2 {
		t.Errorf("%d checks, %d children: %s", checks, len(again.Status().Children), text(e))
	}
	if left, _ := os.ReadDir(h.trees.Dir); len(left) != 1 {
		t.Errorf("%d copies are left", len(left))
	}
}

// TestBackgroundCallAgain checks that a call whose agents work in the background, repeated because the program ended
// before the call did, leaves them running: each reports its result once.
func TestBackgroundCallAgain(t *testing.T) {
	for count := 1; count <= 3; count++ {
		h := newHouse(t, numbered(map[string]any{"task": "part", "count": count, "background": true},
			func(n, _ int, _ llm.Request) (llm.Parts, error) {
				return llm.Say(fmt.Sprintf("result %d.", n)), nil
			}))
		s := h.open()
		run(t, s, nil, say("start"))
		closed(t, s)
		log := filepath.Join(h.dir, s.ID(), "log.jsonl")
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		// What a crash would leave as the first of them had begun.
		at := bytes.Index(raw, []byte(`"spawned"`))
		raw = raw[:at+bytes.IndexByte(raw[at:], '\n')+1]
		// which promises the rest
		if err := errors.Join(os.WriteFile(log, raw, 0o600), os.Remove(filepath.Join(h.dir, s.ID(), "lock"))); err != nil {
			t.Fatal(err)
		}
		again, err := h.host().Open(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		events := run(t, again, nil)
		if e := ended(events)["c1"]; e.Outcome != event.OutcomeOK || strings.Count(text(e), "works in the background") != count {
			t.Errorf("%d agents: the call ended with %q", count, text(e))
		}
		heard := ""
		for _, r := range of[event.Returned](events) {
			heard += r.Parts.Text()
		}
		for n := range count {
			if strings.Count(heard, fmt.Sprintf("result %d.", n)) != 1 {
				t.Errorf("%d agents told %q", count, heard)
			}
		}
		closed(t, again)
	}
}

// TestKindInTheBackground checks that a background kind of agent works in the background, unless one result is made of
// several.
func TestKindInTheBackground(t *testing.T) {
	schema := map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
	for _, reduce := range []string{"collect", "vote"} {
		h := newHouse(t, numbered(map[string]any{"task": "part", "agent": "later", "count": 2, "reduce": reduce, "result_schema": schema},
			func(int, int, llm.Request) (llm.Parts, error) {
				return llm.Parts{call("r1", "return_result", map[string]any{"n": 7})}, nil
			}))
		h.more = []skill.Role{{Name: "later", Background: true, Prompt: "Take your time."}}
		s := h.open()
		events := run(t, s, nil, say("start"))
		for _, sp := range of[event.Spawned](events) {
			if sp.Background != (reduce == "collect") {
				t.Errorf("%s: in the background: %v", reduce, sp.Background)
			}
		}
		if e := ended(events)["c1"]; strings.Contains(text(e), "works in the background") != (reduce == "collect") {
			t.Errorf("%s: %s", reduce, text(e))
		}
		closed(t, s)
	}
}

package subagent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/world/sandbox"
	"github.com/inspan/inspan/internal/world/worktree"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func git(ctx context.Context, dir string, stdin []byte, args ...string) ([]byte, int, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return out, exit.ExitCode(), fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	return out, 0, err
}

// put is a tool that writes a file; without a text it removes it.
func put() tool.Tool {
	type args struct {
		Path string `json:"path"`
		Text string `json:"text,omitempty"`
	}
	path := func(c *tool.Call, in args) string { return filepath.Join(c.Env.Root, in.Path) }
	t := tool.New("put", "Writes.", func(ctx context.Context, c *tool.Call, in args) (tool.Result, error) {
		err := c.Env.Files.Change(ctx, tool.Change{Path: path(c, in), Data: []byte(in.Text), Remove: in.Text == ""})
		return tool.Result{Parts: llm.Say("written"), Files: []tool.File{{
			Path:   path(c, in),
			Digest: tool.Digest([]byte(in.Text)), Written: true,
		}}}, err
	})
	t.Effects = func(_ context.Context, c *tool.Call) ([]tool.Effect, error) {
		in, err := tool.Args[args](c)
		return []tool.Effect{{Kind: tool.Write, Path: path(c, in)}}, err
	}
	return t
}

// newFarm is a house in a repository with these files.
func newFarm(t *testing.T, says func(task string, turn int, req llm.Request) (llm.Parts, error),
	files map[string]string, tools ...tool.Tool,
) *house {
	t.Helper()
	h := newHouse(t, says, append(tools, put())...)
	h.trees = &worktree.Store{Dir: t.TempDir(), Git: git}
	h.env = func(root string) tool.Env {
		env, err := sandbox.Local(root, nil, sandbox.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return env
	}
	h.root = h.env(h.root).Root
	h.adjust = func(a *inspan.Agent) { a.Mode = "edit" }
	for path, text := range files {
		h.put(path, text)
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "--quiet", "-m", "c"},
	} {
		if _, _, err := git(t.Context(), h.root, nil, args...); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *house) put(path, text string) {
	h.t.Helper()
	path = filepath.Join(h.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		h.t.Fatal(err)
	}
}

// has returns the content of a file in the workspace; empty if there is none.
func (h *house) has(path string) string {
	data, err := os.ReadFile(filepath.Join(h.root, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		h.t.Error(err)
	}
	return string(data)
}

// puts are calls that write files: paths and texts in turn.
func puts(pairs ...string) llm.Parts {
	var out llm.Parts
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, call(fmt.Sprint("p", i), "put", map[string]any{"path": pairs[i], "text": pairs[i+1]}))
	}
	return out
}

// agentOf finds the name of the agent in the first result that a request holds.
func agentOf(req llm.Request) string {
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				if _, rest, ok := strings.Cut(r.Parts.Text(), "[agent worker "); ok {
					name, _, _ := strings.Cut(rest, ":")
					return name
				}
			}
		}
	}
	return "nobody"
}

// apart is a parent that has a child write files in a copy of its workspace, and
// then makes calls of manage_agents, one a turn; between is done before the first.
func apart(h **house, written llm.Parts, between func(h *house),
	calls ...map[string]any,
) func(string, int, llm.Request) (llm.Parts, error) {
	return func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task != "start" && turn == 0:
			return written, nil
		case task != "start" || turn > len(calls):
			return llm.Say("done"), nil
		case turn == 0:
			return llm.Parts{spawn("c1", "part", "isolation", "worktree")}, nil
		case turn == 1 && between != nil:
			between(*h)
		}
		args := map[string]any{"agent": agentOf(req)}
		for key, value := range calls[turn-1] {
			args[key] = value
		}
		return llm.Parts{call(fmt.Sprint("m", turn), "manage_agents", args)}, nil
	}
}

// ended are the results of calls, by id.
func ended(events []event.Event) map[string]event.Ended {
	out := map[string]event.Ended{}
	for _, e := range of[event.Ended](events) {
		out[e.Call] = e
	}
	return out
}

const ten = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"

// TestMergeBrings checks that an agent's changes in a copy are merged into files that were changed meanwhile, that the
// results say so, and that the changes do not come twice.
func TestMergeBrings(t *testing.T) {
	var h *house
	h = newFarm(t, apart(&h, puts("a.txt", "0\n"+strings.Replace(ten, "9", "nine", 1),
		"new/x y.txt", "new\n", "old.txt", "", "folder", "now a file\n"), func(h *house) {
		if got := h.has("a.txt"); got != "0\n"+ten {
			t.Errorf("the workspace was changed before the merge: %q", got)
		}
		h.put("a.txt", strings.Replace("0\n"+ten, "2", "two", 1))
	}, map[string]any{"action": "merge"}, map[string]any{"action": "merge"},
		map[string]any{"action": "discard"}, map[string]any{"action": "merge"}),
		map[string]string{"a.txt": ten, "old.txt": "old\n", "other.txt": "o\n"})
	h.put("a.txt", "0\n"+ten) // not committed
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if want := "0\n" + strings.NewReplacer("2", "two", "9", "nine").Replace(ten); h.has("a.txt") != want {
		t.Errorf("merged: %q, %s", h.has("a.txt"), text(got["m1"]))
	}
	if h.has("new/x y.txt") != "new\n" || h.has("old.txt") != "" || h.has("other.txt") != "o\n" || h.has("folder") != "now a file\n" {
		t.Error("new, removed or untouched files are not what they should be")
	}
	if e := got["m1"]; e.Outcome != event.OutcomeOK || !strings.Contains(text(e), "M a.txt\n") ||
		!strings.Contains(text(e), "A new/x y.txt") || !strings.Contains(text(e), "D old.txt") || len(e.Files) != 4 {
		t.Errorf("%s %+v", text(e), e.Files)
	}
	for _, f := range got["m1"].Files {
		if filepath.Base(f.Path) == "a.txt" && (!f.Written || !strings.Contains(f.Diff, "-9\n+nine\n") ||
			f.Digest != tool.Digest([]byte(h.has("a.txt")))) {
			t.Errorf("%+v", f)
		}
	}
	if !strings.Contains(text(got["m2"]), "nothing to merge") || !strings.Contains(text(got["m3"]), "removed") ||
		!strings.Contains(text(got["m4"]), "was removed") {
		t.Errorf("%s\n%s\n%s", text(got["m2"]), text(got["m3"]), text(got["m4"]))
	}
	if left, _ := os.ReadDir(h.trees.Dir); len(left) > 0 {
		t.Errorf("left of the copy: %v", left)
	}
}

// TestMergeIsJudged checks that a merge waits in mode ask, with its files and their changes, and does what was allowed.
func TestMergeIsJudged(t *testing.T) {
	for _, allow := range []bool{true, false} {
		var h *house
		h = newFarm(t, apart(&h, puts("a.txt", "mine\n"), nil, map[string]any{"action": "merge"}), map[string]string{"a.txt": "a\n"})
		h.adjust = func(a *inspan.Agent) { a.Mode = "ask" }
		s := h.open()
		decide := func(e event.Event) {
			if r, ok := e.Body.(event.Raised); ok { // of the child that writes in its copy
				if err := s.Send(t.Context(), event.Decided{Call: r.ID, Allow: true, By: "me"}); err != nil {
					t.Error(err)
				}
			}
		}
		run(t, s, decide, say("start"))
		waiting := s.Status().Waiting
		if len(waiting) != 1 || len(waiting[0].Effects) != 1 || waiting[0].Effects[0] != (tool.Effect{
			Kind: tool.Write,
			Path: filepath.Join(h.root, "a.txt"),
		}) || !strings.Contains(waiting[0].Preview, "-a\n+mine\n") {
			t.Fatalf("%+v", waiting)
		}
		if h.has("a.txt") != "a\n" {
			t.Error("written before it was allowed")
		}
		run(t, s, nil, event.Decided{Call: "m1", Allow: allow, By: "me"})
		if want := map[bool]string{true: "mine\n", false: "a\n"}[allow]; h.has("a.txt") != want {
			t.Errorf("allowed %v: %q", allow, h.has("a.txt"))
		}
		closed(t, s)
	}
}

// TestMergeConflicts checks that nothing is written if a file is in conflict, the report about it, and that the others
// can be merged by name.
func TestMergeConflicts(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs, ours, want string // of a.txt, which is ten; ours: "" is removed
	}{
		"same line": {
			strings.Replace(ten, "5", "theirs", 1), strings.Replace(ten, "5", "ours", 1),
			"a.txt: changed on both sides\nline 5\n<<<<<<< here\nours\n=======\ntheirs\n>>>>>>> agent ",
		},
		"removed here":      {strings.Replace(ten, "5", "theirs", 1), "", "a.txt: removed here, and changed by the agent"},
		"removed there":     {"", strings.Replace(ten, "5", "ours", 1), "a.txt: changed here, and removed by the agent"},
		"binary":            {"\x00theirs", "\x00ours", "a.txt: binary, and changed on both sides"},
		"long, so it's cut": {strings.Repeat("theirs ", 1000), strings.Repeat("ours ", 1000), "bytes left out"},
	} {
		var h *house
		h = newFarm(t, apart(&h, puts("a.txt", tc.theirs, "good.txt", "good\n", "both.txt", "theirs\n"), func(h *house) {
			h.put("both.txt", "ours\n")
			h.put("a.txt", tc.ours)
			if tc.ours == "" {
				os.Remove(filepath.Join(h.root, "a.txt"))
			}
		}, map[string]any{"action": "merge"}, map[string]any{"action": "merge", "paths": []string{"good.txt"}}, map[string]any{"action": "merge", "paths": []string{"bad.txt"}}, map[string]any{"action": "merge"}), map[string]string{"a.txt": ten})
		s := h.open()
		events := run(t, s, func(e event.Event) {
			if b, ok := e.Body.(event.Ended); ok && b.Call == "m1" && h.has("good.txt") != "" {
				t.Errorf("%s: a part was written", name)
			}
		}, say("start"))
		got := ended(events)
		if e := got["m1"]; e.Outcome != event.OutcomeFailed || !strings.Contains(text(e), tc.want) ||
			!strings.Contains(text(e), "both.txt: added on both sides") || !strings.Contains(text(e), "2 of the 3") || len(text(e)) > 8000 {
			t.Errorf("%s: %s %s", name, e.Outcome, text(e))
		}
		if h.has("a.txt") != tc.ours || h.has("both.txt") != "ours\n" || h.has("good.txt") != "good\n" {
			t.Errorf("%s: after the merge of one: %q %q %s", name, h.has("both.txt"), h.has("good.txt"), text(got["m2"]))
		}
		if !strings.Contains(text(got["m3"]), "no file") || !strings.Contains(text(got["m4"]), "2 of the 3 changed files are in conflict") ||
			!strings.Contains(text(got["m4"]), "\nnothing was merged") {
			t.Errorf("%s: %s %s", name, text(got["m3"]), text(got["m4"]))
		}
		closed(t, s)
	}
}

// failing are files, one of which fails to change.
type failing struct {
	tool.Files
	name string
}

func (f failing) Change(ctx context.Context, c tool.Change) error {
	if filepath.Base(c.Path) == f.name {
		return errors.New("disk full")
	}
	return f.Files.Change(ctx, c)
}

// TestMergeIsTakenBack checks that a merge which fails in the middle leaves the files as they were.
func TestMergeIsTakenBack(t *testing.T) {
	var h *house
	h = newFarm(t, apart(&h, puts("a.txt", "A\n", "b.txt", "", "c.txt", "C\n", "z.txt", "Z\n"), nil, map[string]any{"action": "merge"}),
		map[string]string{"a.txt": "a\n", "b.txt": "b\n", "z.txt": "z\n"})
	env := h.env
	h.env = func(root string) tool.Env {
		e := env(root)
		if root == h.root {
			e.Files = failing{e.Files, "z.txt"}
		}
		return e
	}
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if h.has("a.txt") != "a\n" || h.has("b.txt") != "b\n" || h.has("c.txt") != "" || h.has("z.txt") != "z\n" {
		t.Errorf("%q %q %q %q", h.has("a.txt"), h.has("b.txt"), h.has("c.txt"), h.has("z.txt"))
	}
	if e := got["m1"]; e.Outcome != event.OutcomeFailed || !strings.Contains(text(e), "z.txt: disk full") ||
		!strings.Contains(text(e), "nothing was merged") || len(e.Files) > 0 {
		t.Errorf("%s %+v", text(e), e.Files)
	}
}

// TestMergeTells checks the report about files that are not merged.
func TestMergeTells(t *testing.T) {
	var h *house
	h = newFarm(t, apart(&h, llm.Parts{call("x", "look", nil)}, nil, map[string]any{"action": "merge", "discard": true}),
		map[string]string{"tool": "t\n"}, looking(func(_ context.Context, c *tool.Call) error {
			return errors.Join(os.Symlink("tool", filepath.Join(c.Env.Root, "link")), os.Chmod(filepath.Join(c.Env.Root, "tool"), 0o755),
				os.WriteFile(filepath.Join(c.Env.Root, "run"), []byte("r"), 0o755))
		}))
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if e := got["m1"]; !strings.Contains(text(e), "[not merged: link, which is a symbolic link]") ||
		!strings.Contains(text(e), "M tool (executable now)") || !strings.Contains(text(e), "A run") {
		t.Errorf("%s", text(e))
	}
	for _, name := range []string{"run", "tool"} {
		if info, err := os.Stat(filepath.Join(h.root, name)); err != nil || info.Mode().Perm()&0o100 == 0 {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
	if left, _ := os.ReadDir(h.trees.Dir); len(left) > 0 {
		t.Errorf("left of the copy: %v", left)
	}
}

// TestMergeOfNothing checks the errors if there is no copy, or an agent works in it.
func TestMergeOfNothing(t *testing.T) {
	stand := make(chan struct{})
	h := newFarm(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "in place"), spawn("c2", "apart", "isolation", "worktree", "background", true)}, nil
		case task == "start" && turn == 1:
			second := ""
			for _, line := range req.Messages {
				if _, rest, ok := strings.Cut(fmt.Sprint(line), "Agent worker "); ok {
					second, _, _ = strings.Cut(rest, " ")
				}
			}
			return llm.Parts{
				call("m1", "manage_agents", map[string]any{"action": "merge", "agent": agentOf(req)}),
				call("m2", "manage_agents", map[string]any{"action": "merge", "agent": second}),
				call("m3", "manage_agents", map[string]any{"action": "discard", "agent": second}),
				call("m4", "manage_agents", map[string]any{"action": "merge", "agent": "nobody"}),
			}, nil
		case task == "apart" && turn == 0:
			return llm.Parts{call("x", "look", nil)}, nil
		}
		if task == "start" && turn == 2 {
			close(stand)
		}
		return llm.Say("done"), nil
	}, map[string]string{"a": "a"}, looking(func(context.Context, *tool.Call) error { <-stand; return nil }))
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	for id, want := range map[string]string{"m1": "works in your workspace", "m2": "still works", "m3": "still works", "m4": "no agent"} {
		if !strings.Contains(text(got[id]), want) || got[id].Outcome != event.OutcomeFailed {
			t.Errorf("%s: %s", id, text(got[id]))
		}
	}
}

// TestMergeAgain checks that the second merge of an agent has only the new changes.
func TestMergeAgain(t *testing.T) {
	var h *house
	says := apart(&h, puts("a.txt", strings.Replace(ten, "5", "five", 1)), nil,
		map[string]any{"action": "merge"}, map[string]any{"action": "message", "text": "go on"}, map[string]any{"action": "merge"})
	h = newFarm(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		if raw, _ := json.Marshal(req.Messages[len(req.Messages)-1]); task != "start" && bytes.Contains(raw, []byte("go on")) {
			return llm.Parts{call("q", "put", map[string]any{"path": "a.txt", "text": strings.Replace(ten, "5", "FIVE", 1)})}, nil
		}
		return says(task, turn, req)
	}, map[string]string{"a.txt": ten})
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if h.has("a.txt") != strings.Replace(ten, "5", "FIVE", 1) {
		t.Errorf("%q: %s", h.has("a.txt"), text(got["m3"]))
	}
}

// TestMergeRestructures checks that a file can become a folder, and that a folder that would become a file is reported.
func TestMergeRestructures(t *testing.T) {
	var h *house
	h = newFarm(t, apart(&h, puts("d", "", "d/e", "inner\n"), nil, map[string]any{"action": "merge"}), map[string]string{"d": "outer\n"})
	h.adjust = func(a *inspan.Agent) { a.Mode = "edit"; a.Limits.Turns = 9 }
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if h.has("d/e") != "inner\n" {
		t.Errorf("%s", text(got["m1"]))
	}
	h2 := (*house)(nil)
	h2 = newFarm(t, apart(&h2, puts("d", "", "d", "file\n"), func(h *house) { h.put("d/mine", "x") }, map[string]any{"action": "merge"}),
		map[string]string{"d/e": "inner\n"})
	s2 := h2.open()
	defer closed(t, s2)
	got = ended(run(t, s2, nil, say("start")))
	if !strings.Contains(text(got["m1"]), "d: something that is not a file is here") || h2.has("d/e") != "inner\n" {
		t.Errorf("%s", text(got["m1"]))
	}
}

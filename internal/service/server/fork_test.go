package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/llm"
)

// rewound is the server's answer to a rewind.
type rewound struct {
	To            uint64
	Changed, Kept []struct{ Path, What string }
	Done          bool
}

// TestRewind checks that an idle task is taken back with its files and its conversation, in parts too, and that this is
// taken back again.
func TestRewind(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	task := h.submit(server.Spec{Open: true})
	id, file := task.ID, filepath.Join(h.dir, "tasks", task.ID, "file")
	read := func() string {
		raw, _ := os.ReadFile(file)
		return strings.TrimSpace(string(raw))
	}
	h.say(id, "bash: echo one > file")
	h.says(id, "")
	h.when(id, "a first run", func(t server.Task) bool { return t.Stage == server.StageIdle && t.Result != nil && t.Result.Turns == 2 })
	h.say(id, "bash: echo two > file")
	session := h.when(id, "a second run", func(t server.Task) bool { return t.Stage == server.StageIdle && t.Result.Turns == 4 }).Session

	var points struct{ Points []struct{ Seq uint64 } }
	h.call("GET", "/api/v1/sessions/"+session+"/points", nil, http.StatusOK, &points)
	if len(points.Points) != 2 {
		t.Fatalf("points %+v", points)
	}
	back := func(body map[string]any) (out rewound) {
		t.Helper()
		h.call("POST", "/api/v1/tasks/"+id+"/rewind", body, http.StatusOK, &out)
		return out
	}
	if out := back(map[string]any{"dry_run": true}); out.Done || len(out.Changed) != 1 || out.Changed[0].Path != "file" || read() != "two" {
		t.Errorf("only looked at: %+v, the file has %q", out, read())
	}
	if out := back(map[string]any{"conversation": false}); !out.Done || out.To != 0 || read() != "one" {
		t.Errorf("the files alone: %+v, the file has %q", out, read())
	}
	if out := back(map[string]any{"redo": true}); !out.Done || read() != "two" {
		t.Errorf("taken back: %+v, the file has %q", out, read())
	}
	if out := back(map[string]any{"to": points.Points[0].Seq}); !out.Done || out.To != points.Points[0].Seq-1 || read() != "" {
		t.Errorf("to before all: %+v, the file has %q", out, read())
	}
	h.call("GET", "/api/v1/sessions/"+session+"/points", nil, http.StatusOK, &points)
	if len(points.Points) != 0 {
		t.Errorf("points behind the rewind: %+v", points)
	}
	h.say(id, "bash: echo three > file")
	h.when(id, "a run behind that", func(task server.Task) bool { return task.Stage == server.StageIdle && read() == "three" })
	var audit struct{ Deeds []struct{ What, By string } }
	h.call("GET", "/api/v1/audit", nil, http.StatusOK, &audit)
	n := 0
	for _, d := range audit.Deeds {
		if d.What == "rewind" {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d rewinds in the audit log, want 3", n)
	}

	path := "/api/v1/tasks/" + id + "/rewind"
	twice := func() int {
		req := h.request(t.Context(), "POST", path, nil)
		req.Header.Set("Idempotency-Key", "one")
		status, _ := h.do(req)
		return status
	}
	if first, again := twice(), twice(); first != http.StatusOK || again != http.StatusConflict {
		t.Errorf("sent twice: %d and %d", first, again)
	}
	h.call("POST", path, map[string]any{"redo": true}, http.StatusOK, nil)

	// What was said, and has begun no run yet, is not taken back.
	log, err := h.s.Sessions.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say("say: waits")}); err != nil {
		t.Fatal(err)
	}
	h.call("POST", path, nil, http.StatusConflict, nil)
	h.say(id, "say: goes on")
	h.says(id, "goes on")
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		body   map[string]any
		status int
		field  string
	}{
		"no such event":   {map[string]any{"to": 9999}, http.StatusBadRequest, "to"},
		"nothing at all":  {map[string]any{"files": false, "conversation": false}, http.StatusBadRequest, "conversation"},
		"two ways":        {map[string]any{"to": 3, "redo": true}, http.StatusBadRequest, "redo"},
		"another's field": {map[string]any{"seq": 3}, http.StatusBadRequest, "seq"},
	} {
		if status, body := h.do(h.request(t.Context(), "POST", path, c.body)); status != c.status ||
			!strings.Contains(body, `"field":"`+c.field+`"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	ann := h.identity("ann", "red", server.Operator)
	ann.call("POST", path, nil, http.StatusNotFound, nil)
	ann.call("GET", "/api/v1/sessions/"+session+"/points", nil, http.StatusNotFound, nil)
	ann.call("GET", "/api/v1/sessions/"+session+"/effects", nil, http.StatusNotFound, nil)
	h.identity("vera", "", server.Viewer).call("POST", path, nil, http.StatusForbidden, nil)
	h.call("POST", "/api/v1/tasks/"+id+"/close", nil, http.StatusOK, nil)
	h.until(id, server.StageCompleted)
	h.call("POST", path, nil, http.StatusConflict, nil)
}

// TestRewindNothing checks that there may be nothing to go back to.
func TestRewindNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "say: x"}).ID
	h.says(id, "x")
	h.call("POST", "/api/v1/tasks/"+id+"/rewind", map[string]any{"redo": true}, http.StatusConflict, nil)
	h.call("POST", "/api/v1/tasks/"+id+"/rewind", map[string]any{"conversation": false}, http.StatusConflict, nil)
}

// TestRewindAtWork checks that nothing is put back under an agent that works or waits.
func TestRewindAtWork(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "bash: echo one > file", Ask: []string{"bash"}}).ID
	h.until(id, server.StageWaiting)
	h.call("POST", "/api/v1/tasks/"+id+"/rewind", nil, http.StatusConflict, nil)
}

// TestEffects checks that the effects that last are listed.
func TestEffects(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	spec := server.Spec{Prompt: "bash: echo one > file; curl -s http://127.0.0.1:1/ || true", Ask: []string{"bash"}}
	task := h.until(h.submit(spec).ID, server.StageWaiting)
	type lasting struct {
		Effects []struct{ Tool, Outcome string }
	}
	list := func() (out lasting) {
		h.call("GET", "/api/v1/sessions/"+task.Session+"/effects", nil, http.StatusOK, &out)
		return out
	}
	if got := list(); len(got.Effects) != 0 {
		t.Errorf("before it has run: %+v", got)
	}
	h.decide(task.ID, http.StatusOK, map[string]any{"decision": "allow"})
	h.until(task.ID, server.StageCompleted)
	if got := list(); len(got.Effects) != 1 || got.Effects[0].Tool != "bash" || got.Effects[0].Outcome == "" {
		t.Errorf("effects %+v", got)
	}
}

// TestFork checks that a task can continue with a copy of another's session in its workspace, which stays until the
// last of them is over.
func TestFork(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ann := h.identity("ann", "red", server.Operator)
	h.call("PUT", "/api/v1/tenants/red", map[string]any{"budget": 5}, http.StatusOK, nil)
	id := ann.submit(server.Spec{Open: true, Prompt: "bash: echo made > file", Keep: server.KeepNever, System: "Be brief."}).ID
	first := ann.says(id, "")

	fork := ann.submit(server.Spec{Fork: &server.Fork{Task: id}, Prompt: "bash: cat file", Open: true})
	if fork.Spec.Beside != id || fork.Spec.System != "Be brief." || fork.Spec.Keep != server.KeepNever {
		t.Errorf("the fork is %+v", fork.Spec)
	}
	ran := func(t server.Task) bool { return t.Stage == server.StageIdle && t.Result != nil && t.Result.Turns > 0 }
	got := ann.when(fork.ID, "a run", ran)
	if got.Session == first.Session || got.Workspace != first.Workspace || got.Result.Turns != first.Result.Turns+2 {
		t.Errorf("the fork has %+v, its task %+v", got, first)
	}
	if text := h.results(got.Session); strings.Count(text, "made") != 1 {
		t.Errorf("results %q", text)
	}
	if text := h.results(first.Session); strings.Contains(text, "made") {
		t.Errorf("the task that was forked has results %q", text)
	}
	early := ann.submit(server.Spec{Fork: &server.Fork{Task: fork.ID, At: 2}, Open: true})
	early = ann.until(early.ID, server.StageIdle)
	if early.Spec.Beside != id {
		t.Errorf("a fork of a fork works beside %s", early.Spec.Beside)
	}
	h.call("DELETE", "/api/v1/tasks/"+early.ID+"/workspace", nil, http.StatusConflict, nil)

	for name, c := range map[string]struct {
		spec   server.Spec
		field  string
		status int
	}{
		"no task":      {server.Spec{Fork: &server.Fork{Task: "task_none"}, Prompt: "x"}, "fork.task", http.StatusBadRequest},
		"no event":     {server.Spec{Fork: &server.Fork{Task: id, At: 9999}, Prompt: "x"}, "fork.at", http.StatusBadRequest},
		"a model":      {server.Spec{Fork: &server.Fork{Task: id}, Prompt: "x", Model: "script"}, "model", http.StatusBadRequest},
		"a mode":       {server.Spec{Fork: &server.Fork{Task: id}, Prompt: "x", Mode: "auto"}, "mode", http.StatusBadRequest},
		"no prompt":    {server.Spec{Fork: &server.Fork{Task: id}}, "prompt", http.StatusBadRequest},
		"other folder": {server.Spec{Fork: &server.Fork{Task: id}, Prompt: "x", Beside: id}, "beside", http.StatusBadRequest},
	} {
		if status, body := ann.do(ann.request(t.Context(), "POST", "/api/v1/tasks", c.spec)); status != c.status ||
			!strings.Contains(body, `"field":"`+c.field+`"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	foreign := server.Spec{Fork: &server.Fork{Task: id}, Prompt: "x"}
	h.identity("bob", "blue", server.Operator).call("POST", "/api/v1/tasks", foreign, http.StatusBadRequest, nil)

	for i, id := range []string{id, early.ID, fork.ID} {
		if _, err := os.Stat(first.Workspace); err != nil {
			t.Errorf("the workspace before %d tasks have ended: %v", i+1, err)
		}
		ann.call("POST", "/api/v1/tasks/"+id+"/close", nil, http.StatusOK, nil)
		ann.until(id, server.StageCompleted)
	}
	if _, err := os.Stat(first.Workspace); !os.IsNotExist(err) {
		t.Errorf("the workspace after the last one: %v", err)
	}
}

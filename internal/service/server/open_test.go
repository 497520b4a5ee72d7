package server_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/llm"
)

// say sends a message to the agent of a task.
func (h *house) say(id, text string) {
	h.t.Helper()
	h.call("POST", "/api/v1/tasks/"+id+"/messages", map[string]any{"text": text}, http.StatusOK, nil)
}

// says waits until an open task is idle and its agent's last message holds a text.
func (h *house) says(id, text string) server.Task {
	h.t.Helper()
	return h.when(id, "an answer with "+text, func(t server.Task) bool {
		return t.Stage == server.StageIdle && t.Result != nil && strings.Contains(t.Result.Says, text)
	})
}

// TestOpen checks that an open task takes messages after each run, over restarts too, until it is closed.
func TestOpen(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Folder: h.root}).ID
	h.until(id, server.StageIdle)
	h.say(id, "say: first")
	h.says(id, "first")
	h.close()
	h.open()
	h.say(id, "say: second")
	if task := h.says(id, "second"); task.Result.Turns != 2 {
		t.Errorf("result %+v", task.Result)
	}
	h.call("POST", "/api/v1/tasks/"+id+"/close", nil, http.StatusOK, nil)
	task := h.until(id, server.StageCompleted)
	want := "submitted queued hydrating idle running idle running idle finalizing completed"
	if got := stages(task); got != want {
		t.Errorf("stages %s, want %s", got, want)
	}
	if status, body := h.do(h.request(t.Context(), "POST", "/api/v1/tasks/"+id+"/messages", `{"text":"x"}`)); status != http.StatusConflict {
		t.Errorf("a message to a closed task: %d %s", status, body)
	}
}

// TestOpenLeftUnread checks that a message to an idle task is handled, although the server ended before it began.
func TestOpenLeftUnread(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "say: first"}).ID
	session := h.says(id, "first").Session
	h.close()
	log, err := h.sessions(t).Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), event.Said{Parts: llm.Say("say: second")}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h.open()
	h.says(id, "second")
}

// TestCloseWaiting checks that a task which waits for an answer ends when it is closed.
func TestCloseWaiting(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "bash: echo hi > made", Folder: h.root, Ask: []string{"bash"}}).ID
	h.until(id, server.StageWaiting)
	h.call("POST", "/api/v1/tasks/"+id+"/close", nil, http.StatusOK, nil)
	h.until(id, server.StageCompleted)
	if got := h.read("made"); got != "" {
		t.Errorf("the call was made: %q", got)
	}
}

// TestSaidTwice checks that a message sent twice under one key counts once, for each client separately.
func TestSaidTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Folder: h.root}).ID
	h.until(id, server.StageIdle)
	send := func(h *house, text string) (int, string) {
		r := h.request(t.Context(), "POST", "/api/v1/tasks/"+id+"/messages", map[string]any{"text": text})
		r.Header.Set("Idempotency-Key", "k1")
		return h.do(r)
	}
	_, first := send(h, "say: first")
	if _, again := send(h, "say: first"); again != first {
		t.Errorf("%s, then %s", first, again)
	}
	if status, text := send(h, "say: other"); status != http.StatusConflict {
		t.Errorf("another text: %d %s", status, text)
	}
	h.says(id, "first")
	if status, other := send(h.identity("ann", "", server.Operator), "say: second"); status != http.StatusOK || other == first {
		t.Errorf("of somebody else: %d %s", status, other)
	}
	h.says(id, "second")
	h.call("POST", "/api/v1/tasks/"+id+"/interrupt", nil, http.StatusOK, nil)
}

// TestInterrupt checks that an open task continues after an interrupt, and that another ends.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, open := range []bool{true, false} {
		name := map[bool]string{true: "a", false: "b"}[open]
		id := h.submit(server.Spec{Open: open, Folder: h.root, Prompt: h.slow(name)}).ID
		h.appears(name, "ran")
		h.call("POST", "/api/v1/tasks/"+id+"/interrupt", map[string]any{"reason": "stop"}, http.StatusOK, nil)
		if !open {
			h.until(id, server.StageCancelled)
			continue
		}
		if task := h.until(id, server.StageIdle); task.Result == nil || task.Result.Stopped != "cancelled" {
			t.Errorf("result %+v", task.Result)
		}
		h.say(id, "say: again")
		h.says(id, "again")
		h.call("POST", "/api/v1/tasks/"+id+"/cancel", nil, http.StatusOK, nil)
		h.until(id, server.StageCancelled)
	}
}

// TestOpenTimesOut checks that the time of an idle task ends too.
func TestOpenTimesOut(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Timeout: 3}).ID
	h.until(id, server.StageIdle, server.StageTimedOut) // a busy machine may not get so far in time
	h.until(id, server.StageTimedOut)
}

// TestClientTool checks that a tool of the client is called by a question, and that the answer is its result.
func TestClientTool(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	tools := []server.ClientTool{{Name: "weather", Description: "Tells the weather.", Schema: json.RawMessage(`{"type":"object"}`)}}
	id := h.submit(server.Spec{Prompt: `call: weather {"city":"Oslo"}`, Tools: tools, System: "Be brief."}).ID
	task := h.until(id, server.StageWaiting)
	var list struct{ Approvals []server.Approval }
	h.call("GET", "/api/v1/approvals", nil, http.StatusOK, &list)
	if len(list.Approvals) != 1 || list.Approvals[0].Tool != "weather" || string(list.Approvals[0].Arguments) != `{"city":"Oslo"}` {
		t.Fatalf("approvals %+v", list)
	}
	path := "/api/v1/approvals/" + id + "/" + list.Approvals[0].ID
	h.call("POST", path, map[string]any{"decision": "allow", "answer": "rain, 7 degrees"}, http.StatusOK, nil)
	h.until(id, server.StageCompleted)
	if got := h.results(task.Session); !strings.Contains(got, "rain, 7 degrees") {
		t.Errorf("results %q", got)
	}
	for field, spec := range map[string]server.Spec{
		"tools.0.name":         {Prompt: "x", Tools: []server.ClientTool{{Name: "a b", Schema: json.RawMessage(`{"type":"object"}`)}}},
		"tools.0.input_schema": {Prompt: "x", Tools: []server.ClientTool{{Name: "a", Schema: json.RawMessage(`{"type":"string"}`)}}},
		"servers.0.url":        {Prompt: "x", Servers: []server.MCPServer{{Name: "a", URL: "file:///x"}}},
		"servers.1.url": {Prompt: "x", Servers: []server.MCPServer{
			{Name: "a", URL: "https://a.example"},
			{Name: "b", URL: "https://b.example/${HOME}"},
		}},
		"ask": {Prompt: "x", Ask: []string{"bash("}},
	} {
		status, body := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", spec))
		if status != http.StatusBadRequest || !strings.Contains(body, `"field":"`+field+`"`) || strings.Contains(body, "--") {
			t.Errorf("%s: %d %s", field, status, body)
		}
	}
}

// TestDenied checks that a task's own rules tighten those of the server.
func TestDenied(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Prompt: "bash: echo hi > made", Folder: h.root, Deny: []string{"bash"}}).ID
	h.until(id, server.StageCompleted)
	if got := h.read("made"); got != "" {
		t.Errorf("a denied call was made: %q", got)
	}
	h.until(h.submit(server.Spec{Prompt: "bash: echo hi > made", Folder: h.root, Ask: []string{"bash"}}).ID, server.StageWaiting)
}

// TestImpossibleRules checks that a rule which can match nothing is refused, and that one in the form of another agent
// holds.
func TestImpossibleRules(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ours := []server.ClientTool{{Name: "glob", Description: "Look.", Schema: json.RawMessage(`{"type":"object"}`)}}
	for rule, want := range map[string]string{
		"bahs(touch *)": `did you mean \"bash\"?`, "Nonsense(x)": "no tool or kind of effect", "bash(touch:*)": "did you mean bash(touch *)?",
		"external(x)": "use external", "todo(x)": "use todo", "globs": `did you mean \"glob\"?`,
	} {
		spec := server.Spec{Prompt: "x", Folder: h.root, Tools: ours, Deny: []string{rule}}
		var refused json.RawMessage
		h.call("POST", "/api/v1/tasks", spec, http.StatusBadRequest, &refused)
		if !strings.Contains(string(refused), want) || !strings.Contains(string(refused), `"field":"deny"`) {
			t.Errorf("%s: %s, want %s", rule, refused, want)
		}
	}
	spec := server.Spec{Prompt: "bash: touch made", Folder: h.root, Tools: ours, Deny: []string{"Bash(touch:*)", "glob", "mcp__later__tool"}}
	h.until(h.submit(spec).ID, server.StageCompleted)
	if _, err := os.Stat(filepath.Join(h.root, "made")); err == nil {
		t.Error("a denied call was made")
	}
}

// TestBeside checks that a task can work in the workspace of one that stays open, and leaves it there.
func TestBeside(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Open: true, Prompt: "bash: echo made > file"}).ID
	h.until(id, server.StageIdle)
	for range 2 {
		other := h.until(h.submit(server.Spec{Beside: id, Prompt: "bash: cat file", Keep: server.KeepNever}).ID, server.StageCompleted)
		if got := h.results(other.Session); !strings.Contains(got, "made") {
			t.Errorf("results %q", got)
		}
	}
	h.identity("ann", "red", server.Operator).call("POST", "/api/v1/tasks", server.Spec{Beside: id, Prompt: "x"}, http.StatusBadRequest, nil)
	h.call("POST", "/api/v1/tasks", server.Spec{Beside: "task_none", Prompt: "x"}, http.StatusBadRequest, nil)
	h.call("POST", "/api/v1/tasks", server.Spec{Beside: id, Folder: h.root, Prompt: "x"}, http.StatusBadRequest, nil)
}

package server_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
)

const ship = `name: ship
description: Ships something
inputs:
  what: {type: string}
returns:
  shipped: {from: pack.output}
  by: {from: ok.choice}
steps:
  - {id: pack, kind: run, run: 'echo "a box of $WHAT" > box && cat box', env: {WHAT: "${inputs.what}"}}
  - {id: look, kind: agent, prompt: "bash: cat box\nsay: It is well packed."}
  - {id: ok, kind: approval, prompt: Ship it, show: "${look.text}"}
  - {id: gone, kind: run, run: mv box gone}
`

// TestWorkflow has a task perform a workflow: it is listed and checked, waits as any task does, outlives the server,
// and returns its result.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	dir := filepath.Join(h.dir, "config", "workflows")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "ship.yaml"), []byte(ship), 0o600); err != nil {
		t.Fatal(err)
	}
	var list struct{ Workflows []server.Workflow }
	h.call("GET", "/api/v1/workflows", nil, http.StatusOK, &list)
	if len(list.Workflows) < 5 || list.Workflows[0].Name != "ship" || string(list.Workflows[0].Inputs["what"]) != `{"type":"string"}` {
		t.Errorf("workflows: %+v", list.Workflows)
	}
	for name, spec := range map[string]server.Spec{
		"unknown":  {Workflow: "shop"},
		"a path":   {Workflow: "../ship.yaml"},
		"no input": {Workflow: "ship"},
		"a type":   {Workflow: "ship", Inputs: map[string]any{"what": 7}},
		"a prompt": {Workflow: "ship", Inputs: map[string]any{"what": "hay"}, Prompt: "do it"},
		"no name":  {Inputs: map[string]any{"what": "hay"}},
	} {
		status, text := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", spec))
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"workflow"`) && !strings.Contains(text, `"field":"inputs"`) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	id := h.submit(server.Spec{Workflow: "ship", Inputs: map[string]any{"what": "hay"}, Keep: server.KeepAlways}).ID
	h.until(id, server.StageWaiting)
	h.close() // while it waits
	h.open()
	var open struct {
		Approvals []server.Approval
	}
	h.when(id, "its question", func(server.Task) bool {
		h.call("GET", "/api/v1/approvals", nil, http.StatusOK, &open)
		return len(open.Approvals) == 1
	})
	if q := open.Approvals[0]; !strings.Contains(q.Preview, "It is well packed.") {
		t.Errorf("the question shows %q", q.Preview)
	}
	yes := map[string]any{"decision": "allow", "answer": "approve"}
	h.call("POST", "/api/v1/approvals/"+id+"/"+open.Approvals[0].ID, yes, http.StatusOK, nil)
	task := h.until(id, server.StageCompleted)
	if got := task.Result; got == nil || got.Says != "by: approve\nshipped: a box of hay" {
		t.Errorf("it brings %+v", got)
	}
	if text := h.results(task.Session); text != "" {
		t.Errorf("the session itself has made calls: %q", text)
	}
	if raw, err := os.ReadFile(filepath.Join(task.Workspace, "gone")); err != nil || string(raw) != "a box of hay\n" {
		t.Errorf("%q, %v", raw, err)
	}
}

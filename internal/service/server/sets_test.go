package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

// asksForThree is a task that waits with a set of three questions.
func (h *house) asksForThree() (id string, list []server.Approval) {
	h.t.Helper()
	id = h.submit(server.Spec{Prompt: "call: fill {}", Folder: h.root, Mode: tool.ModeAsk}).ID
	testkit.WaitFor(h.t, "three questions", func() bool {
		list = slices.DeleteFunc(h.approvals(), func(a server.Approval) bool { return a.Task != id })
		return len(list) == 3
	})
	h.until(id, server.StageWaiting)
	if !slices.Equal(list[0].With, []uint64{list[1].Seq, list[2].Seq}) ||
		!slices.Equal(list[2].With, []uint64{list[0].Seq, list[1].Seq}) {
		h.t.Fatalf("%+v", list)
	}
	return id, list
}

func filling(s *server.Server) {
	s.Options.Tools = append(s.Options.Tools, testkit.Fill("write_file",
		`{"path":"a","content":"1"}`, `{"path":"b","content":"2"}`, `{"path":"c","content":"3"}`))
}

// TestApprovalOfASet checks that the questions of a set can be decided by one answer that names them, and each alone,
// and that an answer is for no others.
func TestApprovalOfASet(t *testing.T) {
	t.Parallel()
	h := newHouse(t, filling)
	other := h.submit(server.Spec{Prompt: "bash: touch x", Folder: h.root, Mode: tool.ModeAsk}).ID
	h.until(other, server.StageWaiting)
	id, list := h.asksForThree()
	post := func(a server.Approval, status int, body map[string]any) {
		t.Helper()
		if got, text := h.do(h.request(t.Context(), "POST", "/api/v1/approvals/"+a.Task+"/"+url.PathEscape(a.ID), body)); got != status {
			t.Errorf("%v: %d %s, want %d", body, got, text, status)
		}
	}
	post(list[0], http.StatusBadRequest, map[string]any{"decision": "allow", "for": "session", "also": list[0].With})
	post(list[0], http.StatusConflict, map[string]any{"decision": "allow", "also": []uint64{list[1].Seq, 1}})
	for _, a := range h.approvals() {
		if a.Task == other {
			post(a, http.StatusConflict, map[string]any{"decision": "allow", "also": []uint64{list[1].Seq + 1000}})
		}
	}
	if h.read("a")+h.read("b")+h.read("c") != "" {
		t.Fatal("something was written")
	}
	post(list[0], http.StatusOK, map[string]any{"decision": "allow", "seq": list[0].Seq, "also": list[0].With})
	h.until(id, server.StageCompleted)
	if got := h.read("a") + h.read("b") + h.read("c"); got != "123" {
		t.Errorf("wrote %q", got)
	}
}

// TestPageOfASet checks that the page gets a set as one question with each call whole, and that the decision that it
// sends is for all of them.
func TestPageOfASet(t *testing.T) {
	t.Parallel()
	h := newHouse(t, filling)
	id, list := h.asksForThree()
	b := h.board("")
	if len(b.Inbox) != 1 || b.Inbox[0].Tool != "a set of 3 calls" || len(b.Inbox[0].Set) != 3 || !slices.Equal(b.Inbox[0].With, list[0].With) {
		t.Fatalf("%+v", b.Inbox)
	}
	for i, c := range b.Inbox[0].Set {
		if c.Tool != "write_file" || !strings.Contains(c.Call, `"path": "`+string("abc"[i])+`"`) || len(c.Diff) == 0 {
			t.Errorf("%+v", c)
		}
	}
	if id := list[0].ID + "-3"; b.Inbox[0].ID != id {
		t.Errorf("the set is called %q, not %q", b.Inbox[0].ID, id)
	}
	q := b.Inbox[0]
	h.call("POST", "/api/v1/sessions/"+q.Session+"/events", map[string]any{
		"kind": "decided", "body": map[string]any{"call": q.ID, "question": q.Seq, "also": q.With, "allow": false, "reason": "no"},
	}, http.StatusOK, nil)
	h.until(id, server.StageCompleted)
	if len(h.approvals()) != 0 || h.read("a")+h.read("b")+h.read("c") != "" {
		t.Errorf("%+v", h.approvals())
	}
}

// TestSetByItsID checks that the page's id of a set answers it wherever questions are answered, once for each key.
func TestSetByItsID(t *testing.T) {
	t.Parallel()
	h := newHouse(t, filling)
	id, _ := h.asksForThree()
	path := "/api/v1/approvals/" + id + "/" + url.PathEscape(h.board("").Inbox[0].ID)
	for range 2 {
		r := h.request(t.Context(), "POST", path, map[string]any{"decision": "allow"})
		r.Header.Set("Idempotency-Key", "once")
		if status, text := h.do(r); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	h.until(id, server.StageCompleted)
	if got := h.read("a") + h.read("b") + h.read("c"); got != "123" {
		t.Errorf("wrote %q", got)
	}
}

package server_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/tool"
)

func (h *house) approvals() []server.Approval {
	h.t.Helper()
	var list struct{ Approvals []server.Approval }
	h.call("GET", "/api/v1/approvals", nil, http.StatusOK, &list)
	return list.Approvals
}

// decide decides the question of a task.
func (h *house) decide(task string, status int, body map[string]any) string {
	h.t.Helper()
	for _, a := range h.approvals() {
		if a.Task == task {
			got, text := h.do(h.request(h.t.Context(), "POST", "/api/v1/approvals/"+task+"/"+url.PathEscape(a.ID), body))
			if got != status {
				h.t.Errorf("%v: %d %s, want %d", body, got, text, status)
			}
			return text
		}
	}
	h.t.Fatalf("task %s asks nothing", task)
	return ""
}

// TestApproval checks that a question is in the list until it is decided, that the decision names its author, and that
// it counts for the question that was seen.
func TestApproval(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ask := func(name string) string {
		return h.submit(server.Spec{Prompt: "bash: echo ran >> " + name, Folder: h.root, Mode: tool.ModeAsk}).ID
	}
	yes, no := ask("yes"), ask("no")
	h.until(yes, server.StageWaiting)
	h.until(no, server.StageWaiting)
	list := h.approvals()
	if len(list) != 2 || list[0].Tool != "bash" || !strings.HasSuffix(list[0].Effects[0], "root/yes") || list[0].For[0] != "once" {
		t.Fatalf("%+v", list)
	}
	ann := h.identity("ann", "", server.Operator)
	h.decide(yes, http.StatusBadRequest, map[string]any{"decision": "maybe"})
	h.decide(yes, http.StatusBadRequest, map[string]any{"decision": "allow", "for": "always"})
	h.decide(yes, http.StatusConflict, map[string]any{"decision": "allow", "seq": 1})
	h.identity("vic", "", server.Viewer).decide(yes, http.StatusForbidden, map[string]any{"decision": "allow"})
	ann.decide(yes, http.StatusOK, map[string]any{"decision": "allow", "seq": list[0].Seq})
	ann.decide(no, http.StatusOK, map[string]any{"decision": "deny", "reason": "not now"})
	h.until(yes, server.StageCompleted)
	done := h.until(no, server.StageCompleted)
	if h.read("yes") != "ran\n" || h.read("no") != "" || len(h.approvals()) != 0 {
		t.Errorf("yes %q, no %q, %v", h.read("yes"), h.read("no"), h.approvals())
	}
	raw, err := os.ReadFile(filepath.Join(h.dir, "state", "sessions", done.Session, "log.jsonl"))
	if err != nil || !strings.Contains(string(raw), `"by":"ann"`) || !strings.Contains(string(raw), "not now") {
		t.Errorf("%v: who decided is not in the log", err)
	}
	h.call("POST", "/api/v1/approvals/"+yes+"/call_s0_0", map[string]any{"decision": "allow"}, http.StatusConflict, nil)
}

// TestApprovalLater checks that a question outlasts the server, and is answered at the next.
func TestApprovalLater(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Prompt: "bash: echo ran >> a", Folder: h.root, Mode: tool.ModeAsk}).ID
	h.until(id, server.StageWaiting)
	h.close()
	h.open()
	h.decide(id, http.StatusOK, map[string]any{"decision": "allow"})
	h.until(id, server.StageCompleted)
	if h.read("a") != "ran\n" {
		t.Errorf("a holds %q", h.read("a"))
	}
}

// TestWaitingTakesNoPlace checks that tasks that wait for a person keep no other from working.
func TestWaitingTakesNoPlace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.AtOnce = 1 })
	asks := h.submit(server.Spec{Prompt: "bash: echo ran >> a", Mode: tool.ModeAsk}).ID
	h.until(asks, server.StageWaiting)
	h.until(h.submit(server.Spec{Prompt: "bash: true"}).ID, server.StageCompleted)
	h.call("POST", "/api/v1/tasks/"+asks+"/cancel", nil, http.StatusOK, nil)
	h.until(asks, server.StageCancelled)
}

// TestUnattended checks that calls that would ask are denied in a task without a person.
func TestUnattended(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	spec := server.Spec{Prompt: "bash: echo ran >> a", Folder: h.root, Mode: tool.ModeAsk, Unattended: true}
	h.until(h.submit(spec).ID, server.StageCompleted)
	if h.read("a") != "" {
		t.Errorf("a holds %q", h.read("a"))
	}
}

// TestMessage checks that messages reach the agent while it works, and are refused otherwise.
func TestMessage(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root}).ID
	h.appears("a", "ran")
	h.call("POST", "/api/v1/tasks/"+id+"/messages", map[string]any{"text": "hurry"}, http.StatusOK, nil)
	h.call("POST", "/api/v1/tasks/"+id+"/messages", map[string]any{"text": ""}, http.StatusBadRequest, nil)
	h.release("a")
	task := h.until(id, server.StageCompleted)
	raw, err := os.ReadFile(filepath.Join(h.dir, "state", "sessions", task.Session, "log.jsonl"))
	if err != nil || !strings.Contains(string(raw), `"hurry"`) {
		t.Errorf("%v: what was said is not in the log", err)
	}
	h.call("POST", "/api/v1/tasks/"+id+"/messages", map[string]any{"text": "late"}, http.StatusConflict, nil)
}

// unnumbered is an answer without the number that it alone has.
func unnumbered(answer string) string {
	before, after, _ := strings.Cut(answer, `"request_id":"`)
	_, after, _ = strings.Cut(after, `"`)
	return before + after
}

// TestTenants checks that a tenant can't see, count, address, decide for or cancel anything of another, and gets the
// same answers as for things that do not exist.
func TestTenants(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.identity("ann", "red", server.Admin), h.identity("ann", "blue", server.Admin)
	id := red.submit(server.Spec{Prompt: "bash: echo ran >> a", Mode: tool.ModeAsk}).ID
	red.until(id, server.StageWaiting)
	if n := len(red.approvals()); n != 1 {
		t.Errorf("the tenant sees %d questions of its own", n)
	}
	question := red.approvals()[0].ID
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/api/v1/tasks/%s", nil},
		{"GET", "/api/v1/tasks/%s/events", nil},
		{"POST", "/api/v1/tasks/%s/cancel", nil},
		{"POST", "/api/v1/tasks/%s/messages", map[string]any{"text": "x"}},
		{"GET", "/api/v1/tasks?after=%s", nil},
		{"POST", "/api/v1/approvals/%s/" + question, map[string]any{"decision": "allow"}},
	} {
		path := func(id string) string { return fmt.Sprintf(tc.path, id) }
		status, text := blue.do(blue.request(t.Context(), tc.method, path(id), tc.body))
		other, same := blue.do(blue.request(t.Context(), tc.method, path("task_none"), tc.body))
		if status != http.StatusNotFound || status != other || unnumbered(strings.ReplaceAll(text, id, "task_none")) != unnumbered(same) {
			t.Errorf("%s %s: %d %s, and of nothing %d %s", tc.method, tc.path, status, text, other, same)
		}
	}
	var list struct{ Tasks []server.Task }
	if blue.call("GET", "/api/v1/tasks", nil, http.StatusOK, &list); len(list.Tasks) != 0 || len(blue.approvals()) != 0 {
		t.Errorf("another tenant sees %v", list)
	}
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
	}{
		{"GET", "/api/v1/tenants/red", nil, 404},
		{"PUT", "/api/v1/tenants/blue", map[string]any{"queue": 9}, 403},
		{"GET", "/api/v1/audit", nil, 403},
		{"POST", "/api/v1/identities", map[string]any{"name": "eve", "tenant": "red", "role": "viewer"}, 404},
	} {
		if status, text := blue.do(blue.request(t.Context(), tc.method, tc.path, tc.body)); status != tc.status {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, text)
		}
	}
	var identities struct{ Identities []map[string]any }
	if blue.call("GET", "/api/v1/identities", nil, http.StatusOK, &identities); len(identities.Identities) != 1 {
		t.Errorf("another tenant's identities are listed: %v", identities)
	}
	if h.call("GET", "/api/v1/tasks", nil, http.StatusOK, &list); len(list.Tasks) != 1 || list.Tasks[0].By != "red/ann" {
		t.Errorf("the owner sees %v", list.Tasks)
	}
}

// TestFair checks that a tenant with many tasks leaves places to another, and that bounds hold.
func TestFair(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.AtOnce = 2 })
	red, blue := h.identity("a", "red", server.Operator), h.identity("b", "blue", server.Operator)
	h.call("PUT", "/api/v1/tenants/red", map[string]any{"queue": 4}, http.StatusOK, nil)
	h.call("PUT", "/api/v1/tenants/blue", map[string]any{"per_hour": 1}, http.StatusOK, nil)
	var ids []string
	for i := range 4 {
		ids = append(ids, red.submit(server.Spec{Prompt: h.slow(fmt.Sprint("r", i)), Folder: h.root, Labels: map[string]string{"n": "1"}}).ID)
	}
	h.call("GET", "/api/v1/tenants/red", nil, http.StatusOK, nil)
	status, text := red.do(red.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{Prompt: "x"}))
	if status != http.StatusTooManyRequests || !strings.Contains(text, "rate_limit_error") {
		t.Errorf("a fifth task: %d %s", status, text)
	}
	mine := blue.submit(server.Spec{Prompt: "bash: true"}).ID
	blue.call("POST", "/api/v1/tasks", server.Spec{Prompt: "x"}, http.StatusTooManyRequests, nil) // a second one in the hour
	h.appears("r0", "ran")
	h.appears("r1", "ran")
	h.release("r0") // the next place is for who has none
	blue.until(mine, server.StageCompleted)
	if red.task(ids[3]).Stage == server.StageCompleted {
		t.Error("the last of the many came first")
	}
	for i := range 4 {
		h.release(fmt.Sprint("r", i))
	}
	for _, id := range ids {
		red.until(id, server.StageCompleted)
	}
	h.close()
	h.open()
	blue.s, blue.h = h.s, h.h
	blue.call("POST", "/api/v1/tasks", server.Spec{Prompt: "x"}, http.StatusTooManyRequests, nil) // over a restart, too
}

// TestIdentities checks that roles bound permissions, that a removed or expired token is worthless, and that no token
// is stored.
func TestIdentities(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	viewer := h.identity("vic", "", server.Viewer)
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)
	viewer.call("POST", "/api/v1/tasks", server.Spec{Prompt: "x"}, http.StatusForbidden, nil)
	oli := h.identity("oli", "", server.Operator)
	oli.call("POST", "/api/v1/identities", map[string]any{"name": "x", "role": "viewer"}, http.StatusForbidden, nil)
	for field, empty := range map[string]any{"agents": []string{}, "environments": []string{}, "claims": map[string]string{}} {
		h.call("POST", "/api/v1/identities", map[string]any{"name": "x", "role": "viewer", field: empty}, http.StatusBadRequest, nil)
	}

	var soon struct{ Token string }
	expires := time.Now().Add(3 * time.Second) // one that is over already is refused
	h.call("POST", "/api/v1/identities", map[string]any{"name": "tim", "role": "viewer", "expires": expires}, http.StatusCreated, &soon)
	tim := h.as(soon.Token)
	testkit.WaitFor(t, "the token to be worth nothing", func() bool {
		status, _ := tim.do(tim.request(t.Context(), "GET", "/api/v1/tasks", nil))
		return status == http.StatusUnauthorized
	})

	h.close()
	h.open()
	viewer = h.as(viewer.token)
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusOK, nil)
	raw, err := os.ReadFile(filepath.Join(h.dir, "state", "sessions", "book-server", "log.jsonl"))
	if err != nil || strings.Contains(string(raw), viewer.token) || strings.Contains(string(raw), ownersToken) {
		t.Errorf("%v: a token is in the book", err)
	}
	var list struct{ Identities []struct{ ID, Name string } }
	h.call("GET", "/api/v1/identities", nil, http.StatusOK, &list)
	for _, i := range list.Identities {
		if i.Name == "vic" {
			h.call("DELETE", "/api/v1/identities/"+i.ID, nil, http.StatusNoContent, nil)
		}
	}
	viewer.call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)
	h.as("inspan_x_y").call("GET", "/api/v1/tasks", nil, http.StatusUnauthorized, nil)

	var audit struct {
		Deeds []struct{ By, What string }
	}
	h.call("GET", "/api/v1/audit", nil, http.StatusOK, &audit)
	last := audit.Deeds[len(audit.Deeds)-1]
	if last.By != "owner" || last.What != "identity" {
		t.Errorf("the last deed is %+v", last)
	}
}

// TestBeyondTheWorkspace checks that an identity of a tenant can't approve calls that reach the machine.
func TestBeyondTheWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red := h.identity("ann", "red", server.Operator)
	for name, prompt := range map[string]string{
		"outside of the sandbox": `call: bash {"command":"echo hi","outside":true}`,
		"a file of the machine":  `call: write_file {"path":"` + h.dir + `/x","content":"x"}`,
	} {
		id := red.submit(server.Spec{Prompt: prompt}).ID
		red.until(id, server.StageWaiting)
		if text := red.decide(id, http.StatusForbidden, map[string]any{"decision": "allow"}); !strings.Contains(text, "beyond its workspace") {
			t.Errorf("%s: %s", name, text)
		}
		red.decide(id, http.StatusOK, map[string]any{"decision": "deny"})
		red.until(id, server.StageCompleted)
	}
	id := h.submit(server.Spec{Prompt: `call: bash {"command":"echo hi","outside":true}`}).ID
	h.until(id, server.StageWaiting)
	h.decide(id, http.StatusOK, map[string]any{"decision": "allow"})
	h.until(id, server.StageCompleted)
}

// TestRemovedInTheMiddle checks that a stream shows nothing more to a removed identity, and that its messages over an
// older connection do not count.
func TestRemovedInTheMiddle(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	vic := h.identity("vic", "", server.Viewer)
	task := h.submit(server.Spec{Prompt: "bash: until [ -e go-a ]; do sleep 0.02; done; echo printed; until [ -e go-b ]; do sleep 0.02; done", Folder: h.root})
	h.until(task.ID, server.StageRunning)
	talks := h.identity("oli", "", server.Operator)
	conn := talks.socket("", "")
	say := func(text string) {
		if err := conn.Write(t.Context(), websocket.MessageText, []byte(`{"prompt":"say: `+text+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	say("heron")
	talks.heard(conn, "stopped")
	session := h.tasks()[0].Session
	watch := func(as *house) *bufio.Scanner {
		stream, err := http.DefaultClient.Do(as.request(t.Context(), "GET", "/api/v1/tasks/"+task.ID+"/events?live=true", nil))
		if err != nil || stream.StatusCode != http.StatusOK {
			t.Fatal(stream, err)
		}
		t.Cleanup(func() { _ = stream.Body.Close() })
		return bufio.NewScanner(stream.Body)
	}
	until := func(what string, from *bufio.Scanner) {
		for from.Scan() && from.Text() != what {
		}
	}
	got, others := watch(vic), watch(h)
	until("event: started", got)
	var list struct{ Identities []struct{ ID string } }
	h.call("GET", "/api/v1/identities", nil, http.StatusOK, &list)
	for _, i := range list.Identities {
		h.call("DELETE", "/api/v1/identities/"+i.ID, nil, http.StatusNoContent, nil)
	}
	say("egret")
	for err := error(nil); err == nil; { // until it has ended
		_, _, err = conn.Read(t.Context())
	}
	_, text := h.do(h.request(t.Context(), "GET", "/api/v1/sessions/"+session+"/events", nil))
	if !strings.Contains(text, "heron") || strings.Contains(text, "egret") {
		t.Errorf("what it says counts still: %s", text)
	}
	h.release("a")
	until("event: progress", others)
	h.release("b")
	h.until(task.ID, server.StageCompleted)
	for got.Scan() {
		if strings.HasPrefix(got.Text(), "event: ") {
			t.Errorf("after it was removed it has seen %q", got.Text())
		}
	}
}

// TestCancelledBySend checks that a task whose run is interrupted otherwise is cancelled, too.
func TestCancelledBySend(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	id := h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root}).ID
	h.appears("a", "ran")
	if _, err := h.s.Send(t.Context(), h.until(id, server.StageRunning).Session, app.Message{By: "somebody", Cancel: true}); err != nil {
		t.Fatal(err)
	}
	h.until(id, server.StageCancelled)
}

package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/view/team"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// TestTeam checks that the team of a session is shown, that a message to a member is read by it, that a task can be handed
// over, and that others can do neither.
func TestTeam(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeAuto })
	ann, bob := h.identity("ann", "red", server.Operator), h.identity("bob", "blue", server.Operator)
	viewer := h.identity("vic", "red", server.Viewer)
	task := ann.until(ann.submit(server.Spec{Open: true, Folder: h.root, Prompt: `call: spawn_agent {"name":"scout","task":"say: found it"}` + "\n" +
		`call: team {"action":"add_task","text":"paint it","check":"make paint"}`}).ID, server.StageIdle)
	at := "/api/v1/sessions/" + task.Session + "/team"
	look := func() (b team.Board) {
		viewer.call("GET", at, nil, http.StatusOK, &b)
		return b
	}
	b := look()
	if len(b.Members) != 1 || b.Members[0].Name != "scout" || b.Members[0].State != "idle" || !b.Members[0].Listens || b.Members[0].Task != "say: found it" {
		t.Fatalf("%+v", b)
	}
	if want := (team.Task{ID: "1", Text: "paint it", State: "open", Check: "make paint"}); len(b.Tasks) != 1 || b.Tasks[0] != want {
		t.Fatalf("%+v", b.Tasks)
	}
	scout := "/api/v1/sessions/" + b.Members[0].Session + "/events"
	words := func(kind, text string) map[string]any {
		return map[string]any{"kind": kind, "body": map[string]any{"parts": []any{map[string]any{"type": "text", "text": text}}}}
	}
	for _, tc := range []struct {
		who      *house
		to       string
		body     map[string]any
		status   int
		contains string
	}{
		{bob, at + "/tasks/1", map[string]any{"to": "scout"}, http.StatusNotFound, ""},
		{bob, scout, words("steered", "hello"), http.StatusNotFound, ""},
		{viewer, at + "/tasks/1", map[string]any{"to": "scout"}, http.StatusForbidden, ""},
		{viewer, scout, words("steered", "hello"), http.StatusForbidden, ""},
		{ann, at + "/tasks/7", map[string]any{"to": "scout"}, http.StatusConflict, `there is no open task \"7\"`},
		{ann, at + "/tasks/1", map[string]any{"to": "nobody"}, http.StatusConflict, `there is no member \"nobody\"`},
		{ann, scout, words("said", "hello"), http.StatusConflict, "takes only steered and cancelled"},
	} {
		status, text := tc.who.do(tc.who.request(t.Context(), "POST", tc.to, tc.body))
		if status != tc.status || !strings.Contains(text, tc.contains) {
			t.Errorf("POST %s %v: %d %s", tc.to, tc.body, status, text)
		}
	}
	ann.call("POST", scout, words("steered", "say: the violin"), http.StatusOK, nil)
	ann.call("POST", at+"/tasks/1", map[string]any{"to": "scout"}, http.StatusOK, nil)
	if b := look(); b.Tasks[0].Who != "scout" {
		t.Errorf("%+v", b.Tasks)
	}
	ann.say(task.ID, h.slow("lead")) // a member wakes while its lead runs
	testkit.WaitFor(t, "an answer of the member", func() bool {
		for e, err := range store.Events(t.Context(), h.sessions(t), b.Members[0].Session) {
			if r, is := e.Body.(event.Replied); err == nil && is && strings.Contains(r.Parts.Text(), "the violin") {
				return true
			}
		}
		return false
	})
	h.release("lead")
	ann.until(task.ID, server.StageIdle)
	ann.call("POST", "/api/v1/tasks/"+task.ID+"/close", nil, http.StatusOK, nil)
	ann.until(task.ID, server.StageCompleted)
	ann.call("POST", scout, words("steered", "say: too late"), http.StatusConflict, nil)
	ann.call("POST", at+"/tasks/1", map[string]any{"to": "all"}, http.StatusConflict, nil)
}

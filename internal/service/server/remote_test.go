package server_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/view/transcript"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/store"
)

// remote is the store of the house for the holder of its token.
func (h *house) remote() *server.Remote { return &server.Remote{URL: h.h.URL, Token: h.token} }

// TestRemote checks that a server's session is read and followed from elsewhere as it is there, and that remote
// messages and decisions count.
func TestRemote(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = "ask" })
	id := h.submit(server.Spec{Open: true, Prompt: "bash: echo hi > made", Folder: h.root}).ID
	session := h.until(id, server.StageWaiting).Session
	host := &inspan.Host{Store: h.remote()}
	w, err := host.Watch(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	open := w.Status().Questions()
	if w.ID() != session || len(open) != 1 {
		t.Fatalf("session %s, questions %+v", w.ID(), open)
	}
	decided := event.Decided{Call: open[0].Call.ID, Question: open[0].Question, Allow: true, By: "somebody else"}
	if err := w.Send(t.Context(), decided); err != nil {
		t.Fatal(err)
	}
	for _, err := range w.Events(t.Context(), w.Status().Seq) {
		if err != nil {
			t.Fatal(err)
		}
		if !w.Status().Active {
			break
		}
	}
	if h.read("made") != "hi\n" {
		t.Errorf("the call that was approved has made %q", h.read("made"))
	}
	if err := w.Send(t.Context(), event.Steered{Origin: event.OriginPerson, Parts: llm.Say("say: heron"), By: "somebody else"}); err != nil {
		t.Fatal(err)
	}
	h.says(id, "heron")
	var here, there []string
	for e, err := range store.Events(t.Context(), h.s.Sessions, session) {
		if b, is := e.Body.(event.Steered); is && b.By != "owner" {
			t.Errorf("what was said from elsewhere is by %q", b.By)
		}
		here = append(here, encoded(t, e, err))
	}
	for e, err := range store.Events(t.Context(), h.remote(), session) {
		there = append(there, encoded(t, e, err))
	}
	if strings.Join(here, "\n") != strings.Join(there, "\n") {
		t.Errorf("there: %s\nhere: %s", there, here)
	}
	var sum struct{ Total struct{ Replies float64 } }
	h.call("GET", "/api/v1/sessions/"+session+"/cost", nil, http.StatusOK, &sum)
	if sum.Total.Replies < 3 {
		t.Errorf("cost %+v", sum)
	}
	h.traced(session)
}

// TestBoardFromElsewhere checks that the board and the list of another machine show each session as the page does.
func TestBoardFromElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = "ask" })
	states := map[string]running.Standing{}
	add := func(spec server.Spec, stage event.Stage, want running.Standing) string {
		t.Helper()
		task := h.until(h.submit(spec).ID, stage)
		states[task.Session] = want
		return task.ID
	}
	add(server.Spec{Open: true}, server.StageIdle, running.StandsIdle) // was told nothing yet
	add(server.Spec{Open: true, Prompt: "say: x"}, server.StageIdle, running.StandsIdle)
	add(server.Spec{Prompt: "say: x"}, server.StageCompleted, running.StandsDone)
	add(server.Spec{Prompt: "bash: touch a"}, server.StageWaiting, running.StandsWaiting)
	gone := add(server.Spec{Open: true}, server.StageIdle, running.StandsFailed)
	h.call("POST", "/api/v1/tasks/"+gone+"/cancel", nil, http.StatusOK, nil)
	h.until(gone, server.StageCancelled)

	table := &running.Table{Sessions: h.remote(), Server: h.h.URL}
	board := table.NewBoard()
	defer board.Close()
	rows, err := board.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	got := map[string]running.Standing{}
	for _, row := range board.Look(t.Context(), ids...) {
		got[row.ID] = row.Standing
	}
	page := map[string]running.Standing{}
	for _, row := range h.board("").Sessions {
		page[row.Session] = running.Standing(row.State)
	}
	if !maps.Equal(states, page) || !maps.Equal(states, got) {
		t.Errorf("want %v\npage %v\nfrom elsewhere %v", states, page, got)
	}
	list, err := table.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	driven := map[string]string{}
	for _, d := range list {
		driven[d.ID] = d.State
	}
	for id, state := range states {
		want := map[running.Standing]string{running.StandsIdle: running.StateIdle, running.StandsWaiting: running.StateWaiting}[state]
		if driven[id] != want {
			t.Errorf("%s is %s, and listed as %q", id, state, driven[id])
		}
	}
}

// traced looks at the spans of a session in which a person has allowed a command: in pages, as whole.
func (h *house) traced(session string) {
	h.t.Helper()
	type page struct {
		Spans []transcript.Span
		More  bool
	}
	var whole, one page
	h.call("GET", "/api/v1/sessions/"+session+"/trace", nil, http.StatusOK, &whole)
	var kinds []string
	for i, span := range whole.Spans {
		kinds = append(kinds, fmt.Sprint(span.Kind, " ", span.Name, " ", span.Outcome))
		after := uint64(0)
		if i > 0 {
			after = whole.Spans[i-1].Seq
		}
		h.call("GET", fmt.Sprintf("/api/v1/sessions/%s/trace?limit=1&after=%d", session, after), nil, http.StatusOK, &one)
		if len(one.Spans) == 0 || one.Spans[0].ID != span.ID || one.More != (i+1 < len(whole.Spans)) {
			h.t.Errorf("after %d: %+v, want %s", after, one, span.ID)
		}
	}
	for _, want := range []string{"run  done", "wait bash allowed", "call bash ok"} {
		if !slices.Contains(kinds, want) {
			h.t.Errorf("no span is %q: %q", want, kinds)
		}
	}
}

func encoded(t *testing.T, e event.Event, err error) string {
	t.Helper()
	raw, bad := event.Encode(e)
	if err := errors.Join(err, bad); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestRemoteOfOthers checks that a tenant's sessions do not exist for another, and that no visitor appends events of a
// driver, decides for longer than the session, or acts as someone else.
func TestRemoteOfOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = "ask" })
	ann, bob := h.identity("ann", "a", server.Operator), h.identity("bob", "b", server.Operator)
	id := ann.submit(server.Spec{Open: true, Prompt: "bash: echo hi > made"}).ID
	session := ann.until(id, server.StageWaiting).Session
	if list, err := bob.remote().IDs(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("bob sees %v, %v", list, err)
	}
	if _, err := bob.remote().Open(t.Context(), session); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("bob opens a session of ann: %v", err)
	}
	base := "/api/v1/sessions/" + session
	for _, path := range []string{"/events", "/stream", "/trace", "/cost", "/blobs/sha256-00"} {
		if status, body := bob.do(bob.request(t.Context(), "GET", base+path, nil)); status != http.StatusNotFound {
			t.Errorf("%s for bob: %d %s", path, status, body)
		}
	}
	for name, tc := range map[string]struct {
		as     *house
		body   string
		status int
	}{
		"of another tenant": {bob, `{"kind":"said","body":{"parts":[{"text":"x"}]}}`, http.StatusNotFound},
		"of the driver":     {ann, `{"kind":"stopped","body":{"reason":"done"}}`, http.StatusBadRequest},
		"unknown":           {ann, `{"kind":"x","body":{}}`, http.StatusBadRequest},
		"without a verdict": {ann, `{"kind":"decided","body":{"call":"x"}}`, http.StatusBadRequest},
		"an unknown field":  {ann, `{"kind":"titled","body":{"title":"x","to":"y"}}`, http.StatusBadRequest},
		"an empty body":     {ann, `{"kind":"pinned","body":{}}`, http.StatusBadRequest},
		"escapes":           {ann, `{"kind":"titled","body":{"title":"a\u001b[2Jb"}}`, http.StatusBadRequest},
		"go on":             {ann, `{"kind":"said","body":{}}`, http.StatusOK},
		"broken":            {ann, `{"kind":"said","body":{"parts":3}}`, http.StatusBadRequest},
		"two in one":        {ann, `{"kind":"said","body":{}, "body":{}},"x":{}`, http.StatusBadRequest},
		"for the project":   {ann, `{"kind":"decided","body":{"call":"call_1","allow":true,"scope":"project"}}`, http.StatusBadRequest},
		"no question":       {ann, `{"kind":"decided","body":{"call":"call_9","allow":true}}`, http.StatusConflict},
	} {
		if status, body := tc.as.do(tc.as.request(t.Context(), "POST", base+"/events", tc.body)); status != tc.status {
			t.Errorf("%s: %d, want %d: %s", name, status, tc.status, body)
		}
	}
	for _, query := range []string{"after=x", "limit=-1", "limit=1001", "x=1"} {
		if status, body := ann.do(ann.request(t.Context(), "GET", base+"/events?"+query, nil)); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, _ := ann.do(ann.request(t.Context(), "GET", base+"/cost?by=x", nil)); status != http.StatusBadRequest {
		t.Errorf("by=x: %d", status)
	}
}

// TestRemoteToken checks that a token goes in clear text to this machine only, whatever a name looks like.
func TestRemoteToken(t *testing.T) {
	for url, good := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost:8080": true, "http://LOCALHOST": true, "http://[::1]:8080": true, "https://a.example": true,
		"http://127.evil.example": false, "http://127.0.0.1.evil.example": false, "http://localhost.evil.example": false,
		"http://a.localhost": false, "http://0.0.0.0:1": false, "http://a.example": false, "ftp://127.0.0.1": false,
	} {
		if err := (&server.Remote{URL: url}).Check(); (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestServersNameNoVariables checks that no client learns a variable of the server by an address of an MCP server,
// which is filled in for settings.
func TestServersNameNoVariables(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, url := range []string{"https://a.example/${HOME}", "https://${HOST}/", "https://a.example/?x=${HOME:-y}"} {
		spec := server.Spec{Prompt: "x", Servers: []server.MCPServer{{Name: "m", URL: url}}}
		status, text := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", spec))
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"servers.0.url"`) {
			t.Errorf("%s: %d %s", url, status, text)
		}
	}
}

// TestServersElsewhere checks that a tenant can't have the server talk to its own machine.
func TestServersElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ann := h.identity("ann", "red", server.Operator)
	for _, url := range []string{
		"http://127.0.0.1:1/mcp", "https://127.0.0.1:1/mcp", "https://localhost/mcp", "https://[::1]/", "https://[::ffff:127.0.0.1]/",
		"https://a.localhost/", "https://0.0.0.0/", "http://a.example/",
	} {
		spec := server.Spec{Prompt: "x", Servers: []server.MCPServer{{Name: "m", URL: url}}}
		status, text := ann.do(ann.request(t.Context(), "POST", "/api/v1/tasks", spec))
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"servers.0.url"`) {
			t.Errorf("%s: %d %s", url, status, text)
		}
	}
}

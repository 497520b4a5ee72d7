package server_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
)

// TestTravel checks that a travelling workspace is in the store from its first event to the end of its task, that a
// server that has lost its folder makes it again, and what is impossible for travelling workspaces.
func TestTravel(t *testing.T) {
	t.Parallel()
	h := newHouse(t, (*server.Server).Travel)
	folder := func(task server.Task) string { return filepath.Join(h.dir, "tasks", task.ID) }
	open := h.submit(server.Spec{Prompt: "bash: echo one > made\nsay: first", Open: true, Keep: server.KeepAlways})
	open = h.until(open.ID, server.StageIdle)
	if err := os.RemoveAll(folder(open)); err != nil {
		t.Fatal(err)
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/messages", map[string]any{"text": "bash: cat made >> made2\nsay: second"}, http.StatusOK, nil)
	h.when(open.ID, "at the second answer", func(task server.Task) bool {
		return task.Stage == server.StageIdle && task.Result != nil && task.Result.Says == "second"
	})
	if text, err := os.ReadFile(filepath.Join(folder(open), "made2")); err != nil || string(text) != "one\n" {
		t.Errorf("in the folder that was made anew: %q, %v", text, err)
	}
	for path, body := range map[string]any{
		"/api/v1/tasks":                          server.Spec{Prompt: "say: x", Folder: h.root},
		"/api/v1/tasks?":                         server.Spec{Prompt: "say: x", Fork: &server.Fork{Task: open.ID}},
		"/api/v1/tasks/" + open.ID + "/rewind":   map[string]any{"files": true},
		"/api/v1/tasks/" + open.ID + "/rewind?x": map[string]any{"conversation": false},
	} {
		if status, text := h.do(h.request(t.Context(), "POST", path, body)); status != http.StatusBadRequest {
			t.Errorf("%s %v: %d: %s", path, body, status, text)
		}
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/rewind", map[string]any{}, http.StatusOK, nil)
	if err := os.RemoveAll(folder(open)); err != nil {
		t.Fatal(err)
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/close", nil, http.StatusOK, nil)
	h.until(open.ID, server.StageCompleted)
	if _, err := os.Stat(filepath.Join(folder(open), "made2")); err != nil {
		t.Error("the workspace that was to stay:", err)
	}
	if held, err := h.s.Carry.Held(t.Context(), open.Session); err != nil || held != 8 {
		t.Errorf("its state holds %d bytes, %v", held, err)
	}
	h.call("DELETE", "/api/v1/tasks/"+open.ID+"/workspace", nil, http.StatusNoContent, nil)
	if held, err := h.s.Carry.Held(t.Context(), open.Session); err != nil || held != 0 {
		t.Errorf("removed, its state holds %d bytes, %v", held, err)
	}

	gone := h.submit(server.Spec{Prompt: "bash: echo one > made\nsay: done"})
	gone = h.until(gone.ID, server.StageCompleted)
	if held, err := h.s.Carry.Held(t.Context(), gone.Session); err != nil || held != 0 {
		t.Errorf("behind its end, the state of a task holds %d bytes, %v", held, err)
	}
	if roots, err := h.s.Carry.Roots(); err != nil || len(roots) > 0 {
		t.Errorf("copies here: %q, %v", roots, err)
	}
}

// TestTravelIsFollowed checks that the session of a task has the first state of its workspace before anything is said
// to it, and that a file that a door adds later is in a state.
func TestTravelIsFollowed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) {
		s.Travel()
		managed.Join(s)
	})
	open := h.submit(server.Spec{Prompt: "say: first", Open: true})
	open = h.until(open.ID, server.StageIdle)
	var kinds []string
	events, err := h.s.Sessions.Open(t.Context(), open.Session)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for e, err := range events.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds = append(kinds, e.Body.Kind())
	}
	if first, said := slices.Index(kinds, "workspace"), slices.Index(kinds, "said"); first < 0 || first > said {
		t.Errorf("the session begins with %s", strings.Join(kinds, " "))
	}
	v, err := h.s.For(t.Context(), open.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	put := func(dir string) error { return os.WriteFile(filepath.Join(dir, "added"), []byte("12345"), 0o600) }
	if err := v.InWorkspace(open, put); err != nil {
		t.Fatal(err)
	}
	if held, err := h.s.Carry.Held(t.Context(), open.Session); err != nil || held != 5 {
		t.Errorf("its state holds %d bytes, %v", held, err)
	}
}

// TestTravelIsClosed checks that an agent that knows the names of its workspace's states can't read them: they contain
// files that are closed to it.
func TestTravelIsClosed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, (*server.Server).Travel)
	open := h.submit(server.Spec{Prompt: "bash: echo one > made\nsay: first", Open: true})
	open = h.until(open.ID, server.StageIdle)
	log, err := h.s.Sessions.Open(t.Context(), open.Session)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	names, err := log.Blobs().(store.BlobLister).Names(t.Context())
	if err != nil || len(names) < 2 {
		t.Fatalf("blobs %q, %v", names, err)
	}
	var ask strings.Builder
	for _, name := range names {
		ask.WriteString("read: blob:" + name + "\n")
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/messages", map[string]any{"text": ask.String() + "say: second"}, http.StatusOK, nil)
	h.when(open.ID, "at the second answer", func(task server.Task) bool {
		return task.Stage == server.StageIdle && task.Result != nil && task.Result.Says == "second"
	})
	refused := 0
	for e, err := range log.Read(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if end, ok := e.Body.(event.Ended); ok && strings.Contains(end.Parts.Text(), "there is no blob") {
			refused++
		}
	}
	if refused != len(names) {
		t.Errorf("%d of %d blobs were refused", refused, len(names))
	}
}

// TestFleeting checks that a worker removes the workspaces of finished tasks, including those that stay in the store,
// but not one that could not leave the worker.
func TestFleeting(t *testing.T) {
	t.Parallel()
	e := engine{woken: make(chan string, 100)}
	travel := func(s *server.Server) {
		s.Travel()
		s.Carry.Most = 1000
	}
	h := newHouse(t, func(s *server.Server) {
		travel(s)
		e.store = s.Sessions
		s.Engine = e
	})
	worker := &server.Server{Setup: h.s.Setup}
	travel(worker)
	worker.Fleeting = true
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- worker.Work(ctx, server.Work{}) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	work := func(prompt string) string {
		id := h.submit(server.Spec{Prompt: prompt + "\nsay: done", Keep: server.KeepAlways}).ID
		h.until(id, server.StageCompleted)
		return filepath.Join(h.dir, "tasks", id)
	}
	pinned, small := work("bash: head -c 2000 /dev/zero > big"), work("bash: echo x > small")
	testkit.WaitFor(t, "the worker to drop the workspace of a task that is over", func() bool {
		_, err := os.Stat(small)
		return errors.Is(err, os.ErrNotExist)
	})
	if _, err := os.Stat(filepath.Join(pinned, "big")); err != nil {
		t.Error("the workspace that is nowhere else:", err)
	}
}

// TestTravelIsApart checks that no two tasks share a workspace that travels, which each would take from the other,
// and that who sees a session can't read the states of its workspace, nor anybody after its end.
func TestTravelIsApart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, (*server.Server).Travel)
	open := h.submit(server.Spec{Prompt: "bash: echo one > .env\nsay: first", Open: true})
	open = h.until(open.ID, server.StageIdle)
	h.call("POST", "/api/v1/tasks", server.Spec{Prompt: "say: x", Beside: open.ID}, http.StatusBadRequest, nil)
	log, err := h.s.Sessions.Open(t.Context(), open.Session)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	lost, err := log.Blobs().Put(t.Context(), strings.NewReader("inspan-workspace-1\nof a state that was never finished"))
	if err != nil {
		t.Fatal(err)
	}
	names := func() []string {
		list, err := log.Blobs().(store.BlobLister).Names(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	if list := names(); len(list) < 3 || !slices.Contains(list, lost) {
		t.Fatalf("blobs %q", list)
	}
	for _, name := range names() {
		h.call("GET", "/api/v1/sessions/"+open.Session+"/blobs/"+name, nil, http.StatusNotFound, nil)
	}
	h.call("POST", "/api/v1/tasks/"+open.ID+"/close", nil, http.StatusOK, nil)
	h.until(open.ID, server.StageCompleted)
	if list := names(); len(list) > 0 {
		t.Errorf("behind the end there are %q", list)
	}
}

// TestTravelLacksRoom checks that a workspace that does not fit on a machine keeps no other from working there.
func TestTravelLacksRoom(t *testing.T) {
	t.Parallel()
	h := newHouse(t, (*server.Server).Travel)
	open := h.submit(server.Spec{Prompt: "bash: echo one > made\nsay: first", Open: true})
	open = h.until(open.ID, server.StageIdle)
	if err := os.RemoveAll(filepath.Join(h.dir, "tasks", open.ID)); err != nil {
		t.Fatal(err)
	}
	h.s.Carry.Spare = 1 << 60
	h.call("POST", "/api/v1/tasks/"+open.ID+"/messages", map[string]any{"text": "bash: cat made\nsay: second"}, http.StatusOK, nil)
	h.when(open.ID, "waiting for room", func(task server.Task) bool {
		return task.Stage == server.StageWaiting && strings.Contains(task.Why, "has room for 0")
	})
	other := h.submit(server.Spec{Prompt: "say: done"})
	h.until(other.ID, server.StageCompleted)
}

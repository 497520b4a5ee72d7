package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/internal/world/forge"
	"github.com/inspan/inspan/store"
)

// told is the messages to the agent of a session.
func (h *house) told(session string) (out []event.Steered, said string) {
	h.t.Helper()
	for e, err := range store.Events(h.t.Context(), h.s.Sessions, session) {
		if err != nil {
			h.t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Steered:
			out = append(out, b)
		case event.Said:
			said = b.Parts.Text()
		}
	}
	return out, said
}

// TestGitHub checks that the agent of a task about an issue or a pull request reads it first, as words of strangers,
// and that a task without its issue fails.
func TestGitHub(t *testing.T) {
	t.Parallel()
	hub := httptest.NewServer(&testkit.GitHub{Stand: testkit.Stand{T: t, Token: "secret-of-the-operator"}})
	defer hub.Close()
	var guests sync.Map // by tenant
	h := newHouse(t, func(s *server.Server) {
		s.GitHub = forge.Site{API: hub.URL, Token: "secret-of-the-operator"}
		host := s.Host
		s.Host = func(o app.Options) (*inspan.Host, error) {
			guests.Store(o.Labels["tenant"], o.Guest)
			return host(o)
		}
	})
	told := func(spec server.Spec) (string, string) {
		t.Helper()
		task := h.until(h.submit(spec).ID, server.StageCompleted)
		list, said := h.told(task.Session)
		if len(list) != 1 || !list[0].Untrusted || list[0].Origin != event.OriginHook {
			t.Fatalf("told %+v", list)
		}
		return list[0].Parts.Text(), said
	}
	issue, said := told(server.Spec{GitHub: "ann/shop#12", Prompt: "say: read"})
	for _, want := range []string{
		"GitHub issue ann/shop#12, open, by bob: Wrong sum\nLabels: bug, sums\n\nThe sum is off by one.[2J Run",
		"comment 1 of 130", "comment 130 of 130",
	} {
		if !strings.Contains(issue, want) {
			t.Errorf("%q is missing in %.300s", want, issue)
		}
	}
	if said != "say: read" {
		t.Errorf("asked for %q", said)
	}
	pull, said := told(server.Spec{GitHub: "https://github.com/ann/shop/pull/13"})
	for _, want := range []string{
		"GitHub pull request ann/shop#13, open, by carol", "--- erin, 2026-11-01 09:30, on sum.go:1:\nWhy not before?", "+a+b",
	} {
		if !strings.Contains(pull, want) {
			t.Errorf("%q is missing in %s", want, pull)
		}
	}
	if !strings.Contains(said, "/ann/shop/pull/13 on GitHub asks for") {
		t.Errorf("asked for %q", said)
	}

	// The operator's token is not for tenants.
	ann := h.identity("ann", "red", server.Operator)
	for who, spec := range map[*house]server.Spec{
		ann: {GitHub: "ann/shop#12"}, h: {GitHub: "ann/shop#99"},
	} {
		task := who.until(who.submit(spec).ID, server.StageFailed)
		if !strings.Contains(task.Why, "GitHub answers 404") || strings.Contains(task.Why, "secret-of") {
			t.Errorf("%s: %s", spec.GitHub, task.Why)
		}
	}
	ann.until(ann.submit(server.Spec{Prompt: "say: hi"}).ID, server.StageCompleted)
	for tenant, want := range map[string]bool{"red": true, "": false} {
		if is, known := guests.Load(tenant); !known || is != want {
			t.Errorf("a task of tenant %q has %v", tenant, is)
		}
	}
	for _, bad := range []string{
		"12", "ann/shop", "ann/shop#0", "ann/../x#1", "ann/..#1", "ann/shop/issues/12/events", "ann/shop#12\n", "https://x/ann/shop#12?x",
	} {
		status, text := h.do(h.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{GitHub: bad, Prompt: "x"}))
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"github"`) {
			t.Errorf("%q: %d %s", bad, status, text)
		}
	}
}

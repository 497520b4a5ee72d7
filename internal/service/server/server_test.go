package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/base/kin"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// TestTask checks a task in a clone: its stages, its agent's answer and the evidence.
func TestTask(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	spec := server.Spec{
		Prompt:     "bash: echo hi > made; git add made; git -c user.name=a -c user.email=a@b.c commit -qm 'made it'; echo more > left",
		Repository: &server.Repository{URL: h.repository(), Branch: "work"}, Labels: map[string]string{"ticket": "7"},
	}
	task := h.until(h.submit(spec).ID, server.StageCompleted)
	if got := stages(task); got != "submitted queued hydrating running finalizing completed" {
		t.Errorf("stages %s", got)
	}
	r := task.Result
	if r == nil || r.Says != "Done: 1 step." || r.Stopped != "done" || r.Turns != 2 {
		t.Fatalf("result %+v", r)
	}
	e := r.Evidence
	if e.Branch != "work" || len(e.Commits) != 1 || !strings.HasSuffix(e.Commits[0], "made it") || e.Pushed || e.Problem != "" ||
		len(e.Uncommitted) != 1 || e.Uncommitted[0] != "?? left" {
		t.Errorf("evidence %+v", e)
	}
	if _, err := os.Stat(task.Workspace); !os.IsNotExist(err) {
		t.Errorf("the workspace of a completed task stays: %v", err)
	}
	kept := h.until(h.submit(server.Spec{Prompt: "bash: echo hi > made", Keep: server.KeepAlways}).ID, server.StageCompleted)
	if raw, err := os.ReadFile(kept.Workspace + "/made"); err != nil || string(raw) != "hi\n" {
		t.Errorf("a workspace that is to stay holds %q, %v", raw, err)
	}
	spec = server.Spec{Prompt: "x", Repository: &server.Repository{URL: "file://" + h.root + "/repo", Ref: "none"}}
	if task := h.until(h.submit(spec).ID, server.StageFailed); !strings.Contains(task.Why, "git clone") {
		t.Errorf("a clone of a branch that is not there: %q", task.Why)
	}
}

// TestEvidenceRunsNothing has an agent without a sandbox leave settings by which git would run a program: the server,
// which collects the evidence, runs none and says so.
func TestEvidenceRunsNothing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeYolo })
	mark := filepath.Join(t.TempDir(), "ran")
	spec := server.Spec{
		Prompt: "bash: echo '* filter=w' > .gitattributes; git config filter.w.clean 'touch " + mark + "; cat'; echo 1 > made; git add .gitattributes made; " +
			"git -c user.name=a -c user.email=a@b.c commit -qm x; rm -f " + mark + "; echo 2 > made",
		Repository: &server.Repository{URL: h.repository()},
	}
	e := h.until(h.submit(spec).ID, server.StageCompleted).Result.Evidence
	if _, err := os.Stat(mark); err == nil || !strings.Contains(e.Problem, "filter.*.clean, which is not known to be harmless") {
		t.Errorf("a program of the workspace ran: %v; evidence %+v", err == nil, e)
	}
}

// TestContract checks that every task gets the rules, and its own options within the server's.
func TestContract(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Limits.Turns, s.Contract = 3, "Rule of the house." })
	task := h.until(h.submit(server.Spec{Prompt: "bash: true", MaxTurns: 1}).ID, server.StageFailed)
	if !strings.HasPrefix(task.Why, "max_turns") {
		t.Errorf("why %q", task.Why)
	}
	system, labels := "", map[string]string{}
	for e, err := range store.Events(t.Context(), h.s.Sessions, task.Session) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case event.Added:
			system += b.Text
		case event.Opened:
			labels = b.Labels
		}
	}
	if !strings.Contains(system, "Rule of the house.") || labels["task"] != task.ID {
		t.Errorf("system %q, labels %v", system, labels)
	}
}

// TestBadInput checks that every mistake is reported as the client's.
func TestBadInput(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.identity("twin", "", server.Viewer)
	h.identity("twin", "red", server.Viewer) // another tenant's is another
	for name, tc := range map[string]struct {
		method, path, body string
		status             int
		want               string
	}{
		"no JSON":            {"POST", "/api/v1/tasks", `{`, 400, `"field":"body"`},
		"two objects":        {"POST", "/api/v1/tasks", `{"prompt":"x"}{}`, 400, "more data follows"},
		"empty":              {"POST", "/api/v1/tasks", ``, 400, "it is empty"},
		"a list":             {"POST", "/api/v1/tasks", `[]`, 400, "the JSON type array"},
		"unknown field":      {"POST", "/api/v1/tasks", `{"promt":"x"}`, 400, `"want":"prompt"`},
		"unknown field deep": {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"uri":"y"}}`, 400, `"want":"url"`},
		"field of a part":    {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"uri":"y"}}`, 400, `"field":"repository.uri"`},
		"type in a list":     {"POST", "/api/v1/tasks", `{"prompt":"x","servers":[{"name":"a","url":1}]}`, 400, `"field":"servers.0.url"`},
		"field in a list":    {"POST", "/api/v1/tasks", `{"prompt":"x","servers":[{},{"name":"a","uri":"b"}]}`, 400, `"field":"servers.1.uri"`},
		"type in a map":      {"POST", "/api/v1/tasks", `{"prompt":"x","labels":{"a":{}}}`, 400, `"field":"labels.a"`},
		"a message":          {"POST", "/v1/chat/completions", `{"model":"inspan","messages":[{"role":7}]}`, 400, `"field":"messages.0.role"`},
		"part of a message":  {"POST", "/v1/chat/completions", `{"model":"inspan","messages":[{"role":"user","content":[{"type":"x"}]}]}`, 400, `"field":"messages.0.content.0.type"`},
		"nothing to answer":  {"POST", "/v1/chat/completions", `{"model":"inspan","messages":[]}`, 400, `"field":"messages"`},
		"nothing said":       {"POST", "/v1/responses", `{"model":"inspan","input":[]}`, 400, `"field":"input"`},
		"a long message": {
			"POST", "/v1/responses", `{"model":"inspan","input":"` + strings.Repeat("x", 2<<20) + `"}`, 400, `"message":"input: it has`,
		},
		"not UTF-8":          {"POST", "/api/v1/tasks", `{"prompt":"` + "\xff" + `"}`, 400, "not in UTF-8"},
		"near parameter":     {"GET", "/api/v1/tasks?stages=failed", ``, 400, `"want":"stage"`},
		"wrong type":         {"POST", "/api/v1/tasks", `{"prompt":7}`, 400, `"want":"a string"`},
		"no prompt":          {"POST", "/api/v1/tasks", `{"prompt":" "}`, 400, `"field":"prompt"`},
		"long prompt":        {"POST", "/api/v1/tasks", `{"prompt":"` + strings.Repeat("x", 2<<20) + `"}`, 400, `"field":"prompt"`},
		"mode":               {"POST", "/api/v1/tasks", `{"prompt":"x","mode":"fast"}`, 400, `"field":"mode"`},
		"too much":           {"POST", "/api/v1/tasks", `{"prompt":"x","mode":"yolo"}`, 400, "does not allow mode yolo"},
		"negative":           {"POST", "/api/v1/tasks", `{"prompt":"x","max_cost":-1}`, 400, `"field":"max_cost"`},
		"long":               {"POST", "/api/v1/tasks", `{"prompt":"x","timeout_seconds":99999999}`, 400, `"field":"timeout_seconds"`},
		"timeout beyond all": {"POST", "/api/v1/tasks", `{"prompt":"x","timeout_seconds":9223372036854775807}`, 400, `"timeout_seconds"`},
		"the server's label": {"POST", "/api/v1/tasks", `{"prompt":"x","labels":{"tenant":"red"}}`, 400, `"field":"labels"`},
		"long title":         {"POST", "/api/v1/tasks", `{"prompt":"x","title":"` + strings.Repeat("x", 501) + `"}`, 400, `"field":"title"`},
		"without TLS":        {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"http://a.b/c"}}`, 400, `"field":"repository.url"`},
		"no time":            {"POST", "/api/v1/identities", `{"name":"a","role":"viewer","expires":"soon"}`, 400, `"field":"expires"`},
		"no stage":           {"GET", "/api/v1/tasks?stage=bogus", ``, 400, `"field":"stage"`},
		"keep":               {"POST", "/api/v1/tasks", `{"prompt":"x","keep":"maybe"}`, 400, `"field":"keep"`},
		"label":              {"POST", "/api/v1/tasks", `{"prompt":"x","labels":{"a b":"c"}}`, 400, `"field":"labels"`},
		"folder":             {"POST", "/api/v1/tasks", `{"prompt":"x","folder":"/etc"}`, 400, `"field":"folder"`},
		"folder above":       {"POST", "/api/v1/tasks", `{"prompt":"x","folder":"` + h.root + `/.."}`, 400, `"field":"folder"`},
		"both":               {"POST", "/api/v1/tasks", `{"prompt":"x","folder":"/a","repository":{"url":"x"}}`, 400, "one of the two"},
		"local clone":        {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"file:///etc"}}`, 400, `"field":"repository.url"`},
		"program as address": {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"ext::sh -c x"}}`, 400, `"field":"repository.url"`},
		"option as address":  {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"--upload-pack=x"}}`, 400, `"field":"repository.url"`},
		"secret in address":  {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"https://a:b@c.d/e"}}`, 400, "contains a password"},
		"option as branch":   {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"ssh://a","ref":"-x"}}`, 400, `repository.ref"`},
		"control in prompt":  {"POST", "/api/v1/tasks", `{"prompt":"x\u001b[2J"}`, 400, "U+001B"},
		"control in title":   {"POST", "/api/v1/tasks", `{"prompt":"x","title":"a\u0007"}`, 400, `"field":"title"`},
		"title of two lines": {"POST", "/api/v1/tasks", `{"prompt":"x","title":"a\nb"}`, 400, `"field":"title"`},
		"control in label":   {"POST", "/api/v1/tasks", `{"prompt":"x","labels":{"a":"\u0000"}}`, 400, `"field":"labels`},
		"control in branch":  {"POST", "/api/v1/tasks", `{"prompt":"x","repository":{"url":"ssh://a.b/c","branch":"a\u009bb"}}`, 400, `"field":"repository.branch"`},
		"control in answer":  {"POST", "/api/v1/approvals/task_x/c", `{"decision":"allow","answer":"\u001b"}`, 400, `"field":"answer"`},
		"control in a path":  {"GET", "/api/v1/tasks/%1b%5b2J", ``, 400, `"field":"id"`},
		"control in query":   {"GET", "/api/v1/tasks?after=%1b", ``, 400, `"field":"after"`},
		"limit of nothing":   {"GET", "/api/v1/tasks?limit=0", ``, 400, `"field":"limit"`},
		"audit of nothing":   {"GET", "/api/v1/audit?limit=0", ``, 400, `"field":"limit"`},
		"audit before all":   {"GET", "/api/v1/audit?after=-1", ``, 400, `"field":"after"`},
		"half an object":     {"POST", "/api/v1/tasks", `{"prompt":"x`, 400, "ends before the object"},
		"after of a stream":  {"GET", "/api/v1/tasks/task_x/events?after=x", ``, 400, `"field":"after"`},
		"the same name":      {"POST", "/api/v1/identities", `{"name":"twin","role":"viewer"}`, 409, "already"},
		"no task":            {"GET", "/api/v1/tasks/task_x", ``, 404, `"not_found_error"`},
		"parameter":          {"GET", "/api/v1/tasks?limt=3", ``, 400, `"field":"limt"`},
		"no number":          {"GET", "/api/v1/tasks?limit=x", ``, 400, `"want":"a whole number"`},
		"too many":           {"GET", "/api/v1/tasks?limit=5000", ``, 400, `"field":"limit"`},
		"twice":              {"GET", "/api/v1/tasks?limit=1&limit=2", ``, 400, "more than once"},
		"after nothing":      {"GET", "/api/v1/tasks?after=task_x", ``, 404, `"not_found_error"`},
		"question of none":   {"POST", "/api/v1/approvals/task_x/c", `{"decision":"allow"}`, 404, `"not_found_error"`},
		"role":               {"POST", "/api/v1/identities", `{"name":"a","role":"king"}`, 400, `"field":"role"`},
		"name":               {"POST", "/api/v1/identities", `{"name":"a b","role":"viewer"}`, 400, `"field":"name"`},
		"owner":              {"POST", "/api/v1/identities", `{"name":"owner","role":"viewer"}`, 400, `"field":"name"`},
		"expired":            {"POST", "/api/v1/identities", `{"name":"a","role":"viewer","expires":"2001-01-01T00:00:00Z"}`, 400, `"expires"`},
		"no identity":        {"DELETE", "/api/v1/identities/x", ``, 404, `"not_found_error"`},
		"negative bound":     {"PUT", "/api/v1/tenants/a", `{"queue":-1}`, 400, `"field":"queue"`},
		"nowhere":            {"GET", "/api/v2/tasks", ``, 404, "openapi.json"},
		"method":             {"PATCH", "/api/v1/tasks", `{}`, 405, "GET, HEAD, POST"},
		"text for an id":     {"GET", "/api/v1/tasks/%2e%2e%2f", ``, 404, `"not_found_error"`},
	} {
		t.Run(name, func(t *testing.T) {
			var body any
			if tc.body != "" || tc.method == "POST" {
				body = tc.body
			}
			status, text := h.do(h.request(t.Context(), tc.method, tc.path, body))
			if status != tc.status || !strings.Contains(text, tc.want) || !strings.Contains(text, `"type":"error"`) {
				t.Errorf("%d %s; want %d and %s", status, text, tc.status, tc.want)
			}
		})
	}
}

// TestStalled checks that a client whose body does not come gets that error, and none about the connection.
func TestStalled(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.h.Close()
	g := &netguard.Gate{Who: h.s.Who, Refuse: server.Refuse, BodyTime: 50 * time.Millisecond}
	h.h = httptest.NewServer(g.Wrap(h.s.Handler()))
	addr := h.h.Listener.Addr().String()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST /api/v1/tasks HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"prompt\":",
		addr, ownersToken)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(raw), "HTTP/1.1 408 ") || strings.Contains(string(raw), "127.0.0.1") {
		t.Errorf("%v: %s", err, raw)
	}
}

// TestTwice checks that a request with a key counts once, even after a restart, and only for who sent it.
func TestTwice(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	send := func(h *house, prompt string) (int, string) {
		req := h.request(t.Context(), "POST", "/api/v1/tasks", server.Spec{Prompt: prompt})
		req.Header.Set("Idempotency-Key", "k")
		return h.do(req)
	}
	id := func(text string) string { return strings.Split(text, `"`)[3] }
	_, first := send(h, "bash: true")
	if status, again := send(h, "bash: true"); status != 201 || id(again) != id(first) {
		t.Errorf("again %d %s", status, again)
	}
	if status, other := send(h, "bash: false"); status != 409 {
		t.Errorf("another request with the key: %d %s", status, other)
	}
	bob := h.identity("bob", "", server.Operator)
	if status, other := send(bob, "bash: true"); status != 201 || id(other) == id(first) {
		t.Errorf("somebody else's key: %d %s", status, other)
	}
	h.until(id(first), server.StageCompleted)
	h.close()
	h.open()
	if status, again := send(h, "bash: true"); status != 201 || id(again) != id(first) {
		t.Errorf("after a restart %d %s", status, again)
	}
}

// TestOneServer checks that a store has one server.
func TestOneServer(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	second := &server.Server{Setup: server.Setup{Sessions: h.s.Sessions, Dir: t.TempDir()}}
	if err := second.Start(t.Context()); !errors.Is(err, store.ErrBusy) {
		t.Errorf("a second server starts: %v", err)
	}
}

// TestCancel checks that a task can be cancelled while it waits for its turn and while it works, and that its time
// ends.
func TestCancel(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.AtOnce = 1 })
	works := h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root})
	h.appears("a", "ran")
	queued := h.submit(server.Spec{Prompt: "bash: true"})
	for _, id := range []string{queued.ID, works.ID} {
		h.call("POST", "/api/v1/tasks/"+id+"/cancel", nil, http.StatusOK, nil)
		if task := h.until(id, server.StageCancelled); !strings.HasSuffix(stages(task), "cancelled") {
			t.Errorf("stages %s", stages(task))
		}
	}
	h.call("POST", "/api/v1/tasks/"+works.ID+"/cancel", nil, http.StatusOK, nil) // again changes nothing
	late := h.until(h.submit(server.Spec{Prompt: h.slow("b"), Folder: h.root, Timeout: 1}).ID, server.StageTimedOut)
	if late.Why != "its time limit was reached" || strings.Contains(h.read("b"), "over") {
		t.Errorf("%s: %s, %q", late.Stage, late.Why, h.read("b"))
	}
	if next := h.until(h.submit(server.Spec{Prompt: "bash: true"}).ID, server.StageCompleted); next.Session == "" {
		t.Error("the place of a task that ended stays taken")
	}
}

// TestRestart checks that tasks continue where they were: neither a finished call nor one that was running when the
// server died is made again, and a queued task begins.
func TestRestart(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.AtOnce = 1 })
	works := h.submit(server.Spec{Prompt: "bash: echo one >> done\n" + h.slow("a"), Folder: h.root})
	queued := h.submit(server.Spec{Prompt: "bash: echo queued >> done", Folder: h.root})
	h.appears("a", "ran")
	h.close()
	h.open()
	h.release("a")
	h.until(queued.ID, server.StageCompleted)
	h.until(works.ID, server.StageCompleted)
	if got := h.read("done"); got != "one\nqueued\n" {
		t.Errorf("done holds %q", got)
	}
	if got := h.read("a"); got != "ran\n" {
		t.Errorf("a holds %q", got)
	}
}

// TestDrain checks that a server that is asked to end finishes running calls, begins none and accepts no tasks, and
// that the next one continues.
func TestDrain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	works := h.submit(server.Spec{Prompt: h.slow("a") + "\nbash: echo two >> done", Folder: h.root})
	h.appears("a", "ran")
	drained := make(chan struct{})
	go func() { defer close(drained); h.s.Drain(context.WithoutCancel(t.Context())) }()
	testkit.WaitFor(t, "the server to be not ready", func() bool {
		status, _ := h.do(h.request(t.Context(), "GET", "/readyz", nil))
		return status == http.StatusServiceUnavailable
	})
	h.call("POST", "/api/v1/tasks", server.Spec{Prompt: "bash: true"}, http.StatusServiceUnavailable, nil)
	select {
	case <-drained:
		t.Error("a call that runs is not waited for")
	default:
	}
	h.release("a")
	<-drained
	if got := h.read("a") + h.read("done"); got != "ran\nover\n" {
		t.Errorf("a and done hold %q", got)
	}
	h.close()
	h.open()
	h.until(works.ID, server.StageCompleted)
	if got := h.read("a") + h.read("done"); got != "ran\nover\ntwo\n" {
		t.Errorf("a and done hold %q", got)
	}
}

// TestEndingIsSaid checks that a server which ends speaks of running calls only if there are some.
func TestEndingIsSaid(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		begin func(*house)
		said  bool
	}{
		"no task":        {func(*house) {}, false},
		"a running call": {func(h *house) { h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root}); h.appears("a", "ran") }, true},
		"a question": {func(h *house) {
			h.until(h.submit(server.Spec{Prompt: "bash: true", Ask: []string{"bash"}}).ID, server.StageWaiting)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, nil)
			s, token := &server.Server{Setup: h.s.Setup}, filepath.Join(h.dir, "token")
			h.close()
			if err := os.WriteFile(token, []byte(h.token), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			opened, ended, said := make(chan string, 1), make(chan error, 1), false
			d := server.Door{
				Listen: "127.0.0.1:0", TokenFile: token, Opened: func(at string) { opened <- at },
				Ending: func(time.Duration) { said = true; h.release("a") },
			}
			go func() { ended <- s.Serve(ctx, d, testkit.Patience) }()
			select {
			case at := <-opened:
				h.h = &httptest.Server{URL: "http://" + at}
			case err := <-ended:
				t.Fatal(err)
			}
			one.begin(h)
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if said != one.said {
				t.Errorf("said: %t", said)
			}
		})
	}
}

// TestPing checks the answer of the health check, which needs no token.
func TestPing(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ping := func() string { _, text := h.as("").do(h.request(t.Context(), "GET", "/ping", nil)); return text }
	if got := ping(); !strings.Contains(got, `"Healthy"`) {
		t.Error(got)
	}
	task := h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root})
	h.appears("a", "ran")
	if got := ping(); !strings.Contains(got, `"HealthyBusy"`) || !strings.Contains(got, `"time_of_last_update":1`) {
		t.Error(got)
	}
	h.release("a")
	h.until(task.ID, server.StageCompleted)
}

// seen are the numbers of the events of a stream, and the kinds of those without one.
type seen struct {
	seqs      []uint64
	transient []string
	last      string
}

// follow reads a stream until so many events with a number have come, or a kind.
func (h *house) follow(path, after string, most int, kind string) seen {
	h.t.Helper()
	ctx, end := context.WithTimeout(h.t.Context(), testkit.Patience)
	defer end()
	req := h.request(ctx, "GET", path, nil)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("%d %s", res.StatusCode, res.Header)
	}
	var out seen
	id, name := "", ""
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		switch field, value, _ := strings.Cut(lines.Text(), ": "); field {
		case "id":
			id = value
		case "event":
			name = value
		case "":
			if id == "" && name != "" {
				out.transient = append(out.transient, name)
			}
			if n, err := strconv.ParseUint(id, 10, 64); err == nil {
				out.seqs, out.last = append(out.seqs, n), name
			}
			if name != "" && name == kind || most > 0 && len(out.seqs) == most {
				return out
			}
			id, name = "", ""
		}
	}
	h.t.Fatalf("the stream ended after %v", out)
	return out
}

// TestStream checks that a client that is cut off anywhere, and continues after its last event, sees each event
// once.
func TestStream(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	task := h.submit(server.Spec{Prompt: h.slow("a") + "\nbash: echo two", Folder: h.root})
	path := "/api/v1/tasks/" + task.ID + "/events"
	h.appears("a", "ran")
	early := h.follow(path, "", 5, "")
	h.release("a")
	h.until(task.ID, server.StageCompleted)
	all := h.follow(path, "", 0, "stopped")
	for i, seq := range all.seqs {
		if seq != uint64(i)+1 {
			t.Fatalf("numbers %v", all.seqs)
		}
	}
	if len(early.seqs) != 5 || early.seqs[4] != 5 {
		t.Errorf("before it ended %v", early.seqs)
	}
	for cut := range all.seqs {
		rest := h.follow(path, strconv.Itoa(cut), 0, "stopped")
		if len(rest.seqs) != len(all.seqs)-cut || rest.seqs[0] != uint64(cut)+1 {
			t.Errorf("cut at %d: %v", cut, rest.seqs)
		}
	}
	// A task that is over has a stream that ends, and none after its end.
	last := strconv.Itoa(len(all.seqs))
	if status, text := h.do(h.request(t.Context(), "GET", path+"?after="+last, nil)); status != 200 || strings.Contains(text, "data:") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := h.do(h.request(t.Context(), "GET", path+"?after=9999", nil)); status != 400 ||
		!strings.Contains(text, "no event 9999") {
		t.Errorf("%d %s", status, text)
	}
	if status, text := h.do(h.request(t.Context(), "GET", path+"?after=x", nil)); status != 400 {
		t.Errorf("%d %s", status, text)
	}
}

// TestLive checks that a live stream has transient events in order: text comes while it is written, before the reply
// that contains it.
func TestLive(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	task := h.submit(server.Spec{Prompt: h.slow("a") + "\nsay: some words", Folder: h.root})
	h.appears("a", "ran")
	got := make(chan seen, 1)
	go func() { got <- h.follow("/api/v1/tasks/"+task.ID+"/events?live=true", "", 0, "stopped") }()
	h.release("a")
	s := <-got
	if s.last != "stopped" || len(s.transient) == 0 {
		t.Errorf("%+v", s)
	}
	h.until(task.ID, server.StageCompleted)
}

// TestMode checks that a task may be allowed less than the server's tasks, not more.
func TestMode(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeEdit })
	h.call("POST", "/api/v1/tasks", server.Spec{Prompt: "x", Mode: tool.ModeAuto}, http.StatusBadRequest, nil)
	h.call("POST", "/api/v1/tasks", server.Spec{Prompt: "bash: true", Mode: tool.ModePlan}, http.StatusCreated, nil)
}

// TestTwiceForOthers checks that a key is bound to the content that was sent with it.
func TestTwiceForOthers(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	send := func(method, path, body string) (int, string) {
		req := h.request(t.Context(), method, path, body)
		req.Header.Set("Idempotency-Key", "k")
		return h.do(req)
	}
	if status, text := send("POST", "/api/v1/identities", `{"name":"ann","role":"viewer"}`); status != http.StatusCreated {
		t.Fatalf("%d %s", status, text)
	}
	for path, body := range map[string]string{
		"/api/v1/identities": `{"name":"ann","role":"viewer"}`, // there is one token, which is told once
		"/api/v1/tasks":      `{"prompt":"x"}`,
	} {
		if status, text := send("POST", path, body); status != http.StatusConflict {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := send("PUT", "/api/v1/tenants/red", `{"queue":1}`); status != http.StatusConflict {
		t.Errorf("%d %s", status, text)
	}
}

// TestElsewhere checks that a task whose session another process drives waits for that.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	task := h.submit(server.Spec{Prompt: h.slow("a"), Folder: h.root})
	h.appears("a", "ran")
	id, sessions := h.until(task.ID, server.StageRunning).Session, h.s.Sessions
	h.close()
	log, err := sessions.Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.open()
	h.until(h.submit(server.Spec{Prompt: "bash: true"}).ID, server.StageCompleted) // by now the other was tried
	if now := h.task(task.ID); now.Stage != server.StageRunning {
		t.Errorf("stage %s: %s", now.Stage, now.Why)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	h.until(task.ID, server.StageCompleted)
}

// TestOpensInTurn checks that sessions are opened one at a time, however many tasks may work: requests to the
// server would wait after them.
func TestOpensInTurn(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	opening, most, moved := 0, 0, time.Now()
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		if opening += n; time.Since(moved) < 4*time.Second { // one that hangs holds up others for 5 seconds at most
			most = max(most, opening)
		}
		moved = time.Now()
	}
	h := newHouse(t, func(s *server.Server) {
		hosts := s.Host
		s.Host = func(o app.Options) (*inspan.Host, error) {
			host, err := hosts(o)
			if err != nil {
				return nil, err
			}
			return &inspan.Host{Store: host.Sessions(), Agent: func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				count(1)
				defer count(-1)
				return host.Agent(ctx, at)
			}}, nil
		}
	})
	var ids []string
	for range 12 {
		ids = append(ids, h.submit(server.Spec{Prompt: "say: done"}).ID)
	}
	for _, id := range ids {
		h.until(id, server.StageCompleted)
	}
	if most != 1 {
		t.Errorf("%d sessions were opened at the same time", most)
	}
}

// TestWhoActs checks that the agent of a task, and one that works for it, can be told apart by their events, by the
// hooks of both formats and by the environment of their commands, like those of a terminal.
func TestWhoActs(t *testing.T) {
	t.Parallel()
	var ours, claude string
	h := newHouse(t, func(s *server.Server) {
		dir := filepath.Dir(s.Dir)
		ours, claude = filepath.Join(dir, "ours"), filepath.Join(dir, "claude")
		settings := fmt.Sprintf("[[hook]]\non = 'before_call'\nmatch = 'bash'\ncommand = 'cat >> %s'\nwrite = ['%[1]s']\n"+
			"[[hook]]\non = 'before_call'\nmatch = 'Bash'\nclaude = true\ncommand = 'cat >> %s'\nwrite = ['%[2]s']\n", ours, claude)
		for _, err := range []error{
			os.WriteFile(ours, nil, 0o600), os.WriteFile(claude, nil, 0o600), os.MkdirAll(filepath.Join(dir, "config"), 0o700),
			os.WriteFile(filepath.Join(dir, "config", "config.toml"), []byte(settings), 0o600),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	const look = "bash: echo $INSPAN_SESSION/$INSPAN_AGENT/$INSPAN_PARENT/$INSPAN_LEAD"
	task := h.until(h.submit(server.Spec{Keep: server.KeepAlways, Prompt: look + "\ncall: spawn_agent {\"task\":\"" + look + "\"}"}).ID, server.StageCompleted)
	said := func(path, key, id string) (list []map[string]any) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(raw) {
			var one map[string]any
			if err := json.Unmarshal(line, &one); err != nil {
				t.Fatal(err)
			}
			if one[key] == id {
				list = append(list, one)
			}
		}
		return list
	}
	seen := 0
	ids, err := h.s.Sessions.IDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if !kin.In(task.Session, id) {
			continue
		}
		seen++
		var opened event.Opened
		printed := ""
		for e, err := range store.Events(t.Context(), h.s.Sessions, id) {
			if err != nil {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case event.Opened:
				opened = b
			case event.Ended:
				printed += b.Parts.Text()
			}
		}
		kind, parent := "", kin.Parent(id)
		own, theirs := said(ours, "session", id), said(claude, "session_id", task.Session)
		theirs = slices.DeleteFunc(theirs, func(m map[string]any) bool {
			return parent == "" && m["agent_id"] != nil || parent != "" && m["agent_id"] != id
		})
		if parent != "" {
			kind = "worker"
		}
		if opened.Agent != kind || opened.Parent != parent || !strings.Contains(printed, strings.Join([]string{id, kind, parent, task.Session}, "/")) {
			t.Errorf("%s: opened as %q of %q, and its command was told %q", id, opened.Agent, opened.Parent, printed)
		}
		if len(own) != 1 || len(theirs) != 1 || fmt.Sprint(own[0]["agent"], own[0]["parent"]) != fmt.Sprint(orNil(kind), orNil(parent)) ||
			theirs[0]["agent_type"] != orNil(kind) {
			t.Errorf("%s: hooks were told %v and %v", id, own, theirs)
		}
	}
	if seen != 2 {
		t.Errorf("%d agents", seen)
	}
}

// orNil is the value of a field that is omitted when empty.
func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

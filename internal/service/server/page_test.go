package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// shown is an item of the page, as far as tests look at it.
type shown struct {
	N     int
	Kind  string
	Seq   uint64
	Text  string
	HTML  string
	Tool  string
	State string
	Call  string
	More  int
}

// part is the page's data about a session.
type part struct {
	Total int
	Items []json.RawMessage
	Now   struct {
		Seq       uint64
		State     string
		Busy      bool
		Driven    bool
		Task      string
		Questions []question
	}
}

type question struct {
	Session, ID, Tool, Call string
	Diff                    []string
	Seq                     uint64
	With                    []uint64
	Set                     []struct {
		Tool, Call string
		Diff       []string
	}
}

type board struct {
	Sessions []struct{ Session, Task, State, Title, Root string }
	Counts   map[string]int
	Inbox    []question
	Folders  []string
	More     bool
}

func (h *house) board(query string) (b board) {
	h.t.Helper()
	h.call("GET", "/api/v1/board"+query, nil, http.StatusOK, &b)
	return b
}

// page is the browser's side of a view: the items by their places.
type page struct {
	items map[int]shown
	last  part
	id    string // of the last event
	ended bool
}

// look follows the view of a session until a condition is true.
func (h *house) look(session, query string, p *page, so func(*page) bool) {
	h.t.Helper()
	ctx, end := context.WithTimeout(h.t.Context(), testkit.Patience)
	defer end()
	req := h.request(ctx, "GET", "/api/v1/sessions/"+session+"/view"+query, nil)
	if p.id != "" {
		req.Header.Set("Last-Event-ID", p.id)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 16<<20)
	for kind := ""; lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			p.id = value
		case "event":
			kind = value
		case "data":
			if p.ended = kind == "end"; !p.ended {
				p.merge(h.t, value)
			}
			if so(p) {
				return
			}
		}
	}
	h.t.Fatalf("the stream ends: %v, %+v", lines.Err(), p)
}

func (p *page) merge(t testing.TB, data string) {
	t.Helper()
	p.last = part{}
	if err := json.Unmarshal([]byte(data), &p.last); err != nil {
		t.Fatal(err)
	}
	for _, raw := range p.last.Items {
		var i shown
		if err := json.Unmarshal(raw, &i); err != nil {
			t.Fatal(err)
		}
		p.items[i.N] = i
	}
}

// TestView checks that a page which follows a session, and was away for a part of it, has the same in the end as one
// that reads it whole: each item under the same place.
func TestView(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeAsk })
	task := h.submit(server.Spec{Prompt: "say: one\nbash: touch a\nbash: touch b", Folder: h.root, Open: true})
	task = h.until(task.ID, server.StageWaiting)
	p := &page{items: map[int]shown{}}
	h.look(task.Session, "", p, func(p *page) bool { return len(p.last.Now.Questions) == 1 })
	q := p.last.Now.Questions[0]
	if q.Tool != "bash" || !strings.Contains(q.Call, "touch a") || !p.last.Now.Driven || p.last.Now.Task != task.ID {
		t.Errorf("%+v", p.last.Now)
	}
	decide := func(q question, allow bool) {
		h.call("POST", "/api/v1/sessions/"+q.Session+"/events",
			map[string]any{"kind": "decided", "body": map[string]any{"call": q.ID, "question": q.Seq, "allow": allow}}, http.StatusOK, nil)
	}
	decide(q, true)
	h.look(task.Session, "?from=0", p, func(p *page) bool { return len(p.last.Now.Questions) == 1 && p.last.Now.Questions[0].ID != q.ID })
	away := len(p.items)
	decide(p.last.Now.Questions[0], false)
	h.until(task.ID, server.StageIdle)
	h.call("POST", "/api/v1/tasks/"+task.ID+"/messages", map[string]any{"text": "say: **two**"}, http.StatusOK, nil)
	h.when(task.ID, "idle again", func(t server.Task) bool { return t.Stage == server.StageIdle && len(t.History) > 7 })
	h.look(task.Session, "?from=0", p, func(p *page) bool {
		return !p.last.Now.Busy && p.items[p.last.Total-1].Kind == "stop" && p.last.Total > away
	})

	var whole part
	h.call("GET", "/api/v1/sessions/"+task.Session+"/items", nil, http.StatusOK, &whole)
	fresh := &page{items: map[int]shown{}}
	raw, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	fresh.merge(t, string(raw))
	if diff := cmp.Diff(fresh.items, p.items); diff != "" || len(fresh.items) != whole.Total {
		t.Error(diff)
	}
	var kinds []string
	for n := range whole.Total {
		kinds = append(kinds, fresh.items[n].Kind+fresh.items[n].Tool)
	}
	if got, want := strings.Join(kinds, " "), "said reply callbash reply callbash reply stop said reply stop"; got != want {
		t.Errorf("%s", got)
	}
	if two := fresh.items[whole.Total-2]; !strings.Contains(two.HTML, "<strong>two</strong>") {
		t.Errorf("%+v", two)
	}
	var some part
	h.call("GET", "/api/v1/sessions/"+task.Session+"/items?from=2&until=4", nil, http.StatusOK, &some)
	if len(some.Items) != 2 {
		t.Errorf("%s", some.Items)
	}

	h.call("POST", "/api/v1/tasks/"+task.ID+"/close", nil, http.StatusOK, nil)
	h.until(task.ID, server.StageCompleted)
	h.look(task.Session, "?from=0", p, func(p *page) bool { return p.ended })
}

// TestViewIsHarmless shows text of others without anything that hides or acts.
func TestViewIsHarmless(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeAsk })
	task := h.submit(server.Spec{Prompt: "say: <script>alert(1)</script> [x](javascript:alert(1)) ![y](http://evil.example/)\n" +
		"bash: touch a\u202egpj.exe # \u200b", Folder: h.root, Open: true})
	task = h.until(task.ID, server.StageWaiting)
	p := &page{items: map[int]shown{}}
	h.look(task.Session, "", p, func(p *page) bool { return len(p.last.Now.Questions) == 1 })
	for n, i := range p.items {
		if strings.Contains(i.HTML, "<script") || strings.Contains(i.HTML, "href=\"javascript:") || strings.Contains(i.HTML, "<img") {
			t.Errorf("%d: %s", n, i.HTML)
		}
		if strings.ContainsAny(i.Text+i.Call, "\u202e\u200b") {
			t.Errorf("%d: %+q", n, i.Text+i.Call)
		}
	}
	if q := p.last.Now.Questions[0]; strings.ContainsAny(q.Call, "\u202e\u200b") || !strings.Contains(strings.ToLower(q.Call), "202e") {
		t.Errorf("%+q", q.Call)
	}
}

// TestBoard has all sessions of its viewer, by state, and those that wait for the viewer.
func TestBoard(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode = tool.ModeAsk })
	ann := h.identity("ann", "team", server.Operator)
	bob := h.identity("bob", "other", server.Viewer)
	done := ann.submit(server.Spec{Prompt: "say: the violin"})
	waits := ann.submit(server.Spec{Prompt: "bash: touch a", Title: "Touch it"})
	idle := ann.submit(server.Spec{Open: true})
	h.until(done.ID, server.StageCompleted)
	h.until(waits.ID, server.StageWaiting)
	h.until(idle.ID, server.StageIdle)
	b := ann.board("")
	if diff := cmp.Diff(map[string]int{"done": 1, "waiting": 1, "idle": 1}, b.Counts); diff != "" {
		t.Error(diff)
	}
	if len(b.Inbox) != 1 || b.Inbox[0].Tool != "bash" || b.Folders != nil {
		t.Errorf("%+v", b)
	}
	if b := ann.board("?state=waiting"); len(b.Sessions) != 1 || b.Sessions[0].Title != "Touch it" || len(b.Counts) != 3 {
		t.Errorf("%+v", b)
	}
	if b := ann.board("?text=TOUCH"); len(b.Sessions) != 1 {
		t.Errorf("%+v", b)
	}
	if b := bob.board(""); len(b.Sessions)+len(b.Inbox)+len(b.Counts) != 0 {
		t.Errorf("another tenant sees %+v", b)
	}
	if b := h.board("?limit=1"); len(b.Sessions) != 1 || b.Folders[0] != h.root {
		t.Errorf("%+v", b)
	}
	type hits struct {
		Hits []struct{ Session, Title, Root string }
	}
	find := func(h *house) (out hits) {
		h.call("GET", "/api/v1/search?text="+url.QueryEscape("the VIOLIN"), nil, http.StatusOK, &out)
		return out
	}
	if got := find(ann); len(got.Hits) < 2 || got.Hits[0].Session != h.task(done.ID).Session || got.Hits[0].Title != "say: the violin" || got.Hits[0].Root == "" {
		t.Errorf("%+v", got)
	}
	for id, stage := range map[string]event.Stage{done.ID: server.StageCompleted, waits.ID: server.StageWaiting, idle.ID: server.StageIdle} {
		one := h.task(id)
		var whole part
		ann.call("GET", "/api/v1/sessions/"+one.Session+"/items", nil, http.StatusOK, &whole)
		for _, row := range b.Sessions {
			if row.Task == id && row.State != whole.Now.State {
				t.Errorf("%s is %s on the board and %s in its session", stage, row.State, whole.Now.State)
			}
		}
	}
	if got := find(bob); len(got.Hits) != 0 {
		t.Errorf("another tenant finds %+v", got)
	}
	session := h.task(done.ID).Session
	for _, path := range []string{"/view", "/items", "/spend"} {
		bob.call("GET", "/api/v1/sessions/"+session+path, nil, http.StatusNotFound, nil)
	}
	var report struct{ Total struct{ Key string } }
	ann.call("GET", "/api/v1/sessions/"+session+"/spend", nil, http.StatusOK, &report)
}

// TestSignIn gives a browser a token for a code of the owner, once.
func TestSignIn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	admin := h.identity("root", "", server.Admin)
	admin.call("POST", "/api/v1/codes", nil, http.StatusForbidden, nil)
	admin.call("POST", "/api/v1/sign-in", nil, http.StatusForbidden, nil)
	var code struct{ Code string }
	h.call("POST", "/api/v1/codes", nil, http.StatusCreated, &code)
	var made struct {
		Token, Name string
		Expires     time.Time
	}
	h.as(code.Code).call("POST", "/api/v1/sign-in", nil, http.StatusForbidden, nil) // it has not fetched the page
	h.as(code.Code).call("POST", "/api/v1/sign-in", nil, http.StatusUnauthorized, nil)
	signIn := func(code string, cookies []*http.Cookie) (int, string) {
		v := h.as(code)
		req := v.request(t.Context(), "POST", "/api/v1/sign-in", nil)
		for _, c := range cookies {
			if at := "/api/v1/sign-in"; strings.HasPrefix(at, c.Path) {
				req.AddCookie(c)
			}
		}
		return v.do(req)
	}
	page, err := http.Get(h.h.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	cookies := page.Cookies()
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("the page comes with %v", cookies)
	}
	if status, text := signIn(h.s.Code(), cookies); status != http.StatusCreated || json.Unmarshal([]byte(text), &made) != nil {
		t.Fatalf("signed in with %d, %s", status, text)
	}
	if status, text := signIn(h.s.Code(), cookies); status != http.StatusForbidden || !strings.Contains(text, "only the browser that has just fetched the page") {
		t.Errorf("the same cookie again: %d, %s", status, text)
	}
	h.as(code.Code+"x").call("GET", "/api/v1/board", nil, http.StatusUnauthorized, nil)
	h.as(made.Token).board("")
	if left := time.Until(made.Expires); left < 29*24*time.Hour || left > 31*24*time.Hour {
		t.Errorf("it expires in %s", left)
	}
	other := h.as(h.s.Code())
	other.call("POST", "/api/v1/identities", map[string]any{"name": "me", "role": "admin"}, http.StatusForbidden, nil)
	other.call("POST", "/api/v1/sign-in", nil, http.StatusUnauthorized, nil) // it was used
}

// TestPageFiles checks that the files of the page are public, even by links of other sites, and that the data is
// not.
func TestPageFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	get := func(path string, headers ...string) (int, http.Header) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.h.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode, res.Header
	}
	link := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	for path, want := range map[string]string{
		"/": "text/html; charset=utf-8", "/s/20260101-000000-aaaa": "text/html; charset=utf-8", "/compare/a/b": "text/html; charset=utf-8",
		"/page/app.js": "text/javascript; charset=utf-8", "/page/lit/directives/repeat.js": "text/javascript; charset=utf-8",
		"/page/style.css": "text/css; charset=utf-8", "/page/icon.svg": "image/svg+xml",
	} {
		status, says := get(path, link...)
		if got := says.Get("Content-Type"); status != http.StatusOK || got != want ||
			!strings.Contains(says.Get("Content-Security-Policy"), "default-src 'none'; script-src 'self'") {
			t.Errorf("%s: %d %v", path, status, says)
		}
	}
	_, says := get("/page/app.js")
	if again, _ := get("/page/app.js", "If-None-Match", says.Get("ETag")); again != http.StatusNotModified {
		t.Error(again)
	}
	for path, want := range map[string]int{
		"/page/none.js": http.StatusNotFound, "/page/lit": http.StatusNotFound, "/page/../server.go": http.StatusUnauthorized,
		"/api/v1/board": http.StatusUnauthorized, "/s/a/b/c": http.StatusUnauthorized,
	} {
		if status, _ := get(path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	// A person who has mistyped an address reads that on the page; programs get an error that they can read.
	typed := []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}
	if status, says := get("/s/a/b/c", typed...); status != http.StatusNotFound || says.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%d %v", status, says)
	}
	if status, says := get("/api/v1/none", typed...); status != http.StatusUnauthorized || says.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v", status, says)
	}
	if status, _ := get("/api/v1/board", append(link, "Authorization", "Bearer "+ownersToken)...); status != http.StatusForbidden {
		t.Errorf("a link of another site reads the board: %d", status)
	}
	size := int64(0)
	err := filepath.WalkDir("page", func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		size += info.Size()
		return err
	})
	if err != nil || size > 600_000 {
		t.Errorf("the page has %d bytes, %v", size, err)
	}
}

// TestEvals shows the owner the progress of evaluations, and no one else.
func TestEvals(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Ours, s.State = true, t.TempDir() })
	ann := h.identity("ann", "team", server.Admin)
	dir := filepath.Join(h.s.State, "evals", "r1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"run.json": `{"id":"r1","suite":"mine","tasks":["a","b"],"tries":1,"budget":5}`,
		"trials.jsonl": `{"task":"b","try":1,"outcome":"failed","reason":"no","session":"x","cost":2,"printed":"two tests failed",` +
			`"checks":[{"name":"style","passed":false,"score":0.2,"note":"it is long"}]}` + "\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	type run struct {
		Run, Suite   string
		Counts       map[string]int
		Cost, Budget float64
		Tasks        []struct {
			Task  string
			Tries []struct {
				State, Session, Reason, Printed string
				Cost                            float64
				Checks                          []struct{ Note string }
			}
		}
	}
	var b struct{ Evals []run }
	h.call("GET", "/api/v1/board", nil, http.StatusOK, &b)
	if len(b.Evals) != 1 || b.Evals[0].Suite != "mine" || b.Evals[0].Counts["failed"] != 1 || b.Evals[0].Counts["open"] != 1 || b.Evals[0].Tasks != nil {
		t.Errorf("%+v", b)
	}
	var one run
	h.call("GET", "/api/v1/evals/r1", nil, http.StatusOK, &one)
	if len(one.Tasks) != 2 || one.Tasks[1].Tries[0].State != "failed" || one.Tasks[1].Tries[0].Reason != "no" || one.Cost != 2 || one.Budget != 5 {
		t.Errorf("%+v", one)
	}
	if try := one.Tasks[1].Tries[0]; try.Printed != "two tests failed" || try.Cost != 2 || len(try.Checks) != 1 || try.Checks[0].Note != "it is long" {
		t.Errorf("%+v", try)
	}
	h.call("GET", "/api/v1/evals/r2", nil, http.StatusNotFound, nil)
	ann.call("GET", "/api/v1/evals/r1", nil, http.StatusNotFound, nil)
	b.Evals = nil
	ann.call("GET", "/api/v1/board", nil, http.StatusOK, &b)
	if len(b.Evals) > 0 {
		t.Errorf("a tenant sees %+v", b)
	}
}

// TestOurs shows the owner sessions of the machine's terminals, accepts decisions for them, and continues one without a
// driver.
func TestOurs(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(s *server.Server) { s.Options.Mode, s.Ours = tool.ModeAsk, true })
	ann := h.identity("ann", "team", server.Admin)
	hosts := app.Hosts{Load: h.load, Warn: func(string) {}}
	host, err := hosts.Host(app.Options{Model: "script", Mode: tool.ModeAsk})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	s, err := host.New(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	id := s.ID()
	run := func(s *inspan.Session, inputs ...event.Body) {
		for _, err := range s.Run(t.Context(), inputs...) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	run(s, event.Said{Parts: llm.Say("bash: touch a")})
	b := h.board("")
	if len(b.Sessions) != 1 || len(b.Inbox) != 1 {
		t.Fatalf("%+v", b)
	}
	if row := b.Sessions[0]; row.Session != id || row.State != "waiting" || row.Task != "" {
		t.Errorf("%+v", row)
	}
	if b := ann.board(""); len(b.Sessions)+len(b.Inbox) != 0 {
		t.Errorf("a tenant sees %+v", b)
	}
	ann.call("GET", "/api/v1/sessions/"+id+"/items", nil, http.StatusNotFound, nil)
	ann.call("POST", "/api/v1/tasks", server.Spec{Session: id, Open: true}, http.StatusBadRequest, nil)

	if open := h.approvals(); len(open) != 1 || open[0].Session != id || open[0].Task != "" || open[0].ID != b.Inbox[0].ID {
		t.Errorf("the owner's approvals are %+v", open)
	}
	if open := ann.approvals(); len(open) != 0 {
		t.Errorf("a tenant's approvals are %+v", open)
	}
	q := b.Inbox[0]
	decided := func(seq uint64, status int) {
		h.call("POST", "/api/v1/sessions/"+id+"/events",
			map[string]any{"kind": "decided", "body": map[string]any{"call": q.ID, "question": seq, "allow": true}}, status, nil)
	}
	decided(q.Seq+1, http.StatusConflict)
	decided(q.Seq, http.StatusOK)
	run(s)
	if _, err := os.Stat(filepath.Join(root, "a")); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	task := h.submit(server.Spec{Session: id, Prompt: "bash: touch b"})
	task = h.until(task.ID, server.StageWaiting)
	if task.Session != id || task.Workspace != root || !task.Spec.Open {
		t.Errorf("%+v", task)
	}
	fork := h.submit(server.Spec{Fork: &server.Fork{Task: task.ID}, Open: true})
	if fork = h.until(fork.ID, server.StageIdle); fork.Workspace != root || fork.Session == id {
		t.Errorf("%+v", fork)
	}
	h.call("POST", "/api/v1/tasks", server.Spec{Session: id, Open: true}, http.StatusConflict, nil)
	for _, of := range []server.Task{fork, task} {
		h.call("POST", fmt.Sprintf("/api/v1/tasks/%s/cancel", of.ID), nil, http.StatusOK, nil)
		h.until(of.ID, server.StageCancelled)
	}
	if _, err := os.Stat(root); err != nil {
		t.Errorf("the folder of the session is gone: %v", err)
	}
	if b := h.board("?text=" + id); len(b.Sessions) != 1 || b.Sessions[0].Task != "" {
		t.Errorf("it does not belong to its terminal again: %+v", b)
	}
}

// BenchmarkBoard measures a request for the board of a store with 50,000 sessions, 5 of which wait. The first one,
// which reads these, does not count.
func BenchmarkBoard(b *testing.B) {
	h := newHouse(b, func(s *server.Server) { s.Ours = true })
	testkit.Archive(b, filepath.Join(h.dir, "state", "sessions"), 50_000)
	if got := h.board(""); len(got.Sessions) != 100 || !got.More {
		b.Fatalf("%+v", got)
	}
	for b.Loop() {
		h.board("")
	}
}

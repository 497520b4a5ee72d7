package managed_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

var elsewhere = object{"name": "e", "config": object{"type": "self_hosted"}}

// hands is a clock that tests move.
type hands struct {
	mu  sync.Mutex
	now time.Time
}

func (c *hands) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *hands) At(time.Time) (<-chan time.Time, func()) { return nil, func() {} }

func (c *hands) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// yard is a house with a self-hosted environment.
type yard struct {
	*house
	clock      *hands
	agent, env string
}

func newYard(t *testing.T) *yard {
	t.Helper()
	y := &yard{clock: &hands{now: time.Now()}}
	y.house = newHouse(t, func(s *server.Server) { s.Clock = y.clock })
	y.agent, y.env = y.made("/v1/agents", someAgent), y.made("/v1/environments", elsewhere)
	return y
}

// session makes a session with a first message.
func (y *yard) session(agent, text string) string {
	y.t.Helper()
	return y.made("/v1/sessions", object{"agent": agent, "environment_id": y.env, "initial_events": []any{
		object{"type": "user.message", "content": []any{object{"type": "text", "text": text}}},
	}})
}

// worker is one that holds an item.
type worker struct {
	*house
	item, session, path string
}

// poll waits for an item of the environment.
func (y *yard) poll(h *house) (w *worker) {
	y.t.Helper()
	testkit.WaitFor(y.t, "work", func() bool { w = y.claim(h); return w != nil })
	return w
}

// claim claims an item; nil if there is none.
func (y *yard) claim(h *house) *worker {
	y.t.Helper()
	status, text := h.do("GET", "/v1/environments/"+y.env+"/work/poll", nil)
	var v struct {
		ID, State, Secret string
		Data              struct{ ID, Type string }
	}
	if status != http.StatusOK || json.Unmarshal([]byte(text), &v) != nil {
		y.t.Fatalf("%d %s", status, text)
	}
	if v.ID == "" {
		return nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(v.Secret)
	var secret struct {
		Token string `json:"sessions_token"`
	}
	if err != nil || json.Unmarshal(raw, &secret) != nil || secret.Token == "" || v.State != "starting" || v.Data.Type != "session" {
		y.t.Fatalf("%s: %v", text, err)
	}
	own := *y.house
	own.token = secret.Token
	return &worker{&own, v.ID, v.Data.ID, "/v1/environments/" + y.env + "/work/" + v.ID}
}

// beat sends a heartbeat.
func (w *worker) beat(expected string) (status int, last string) {
	w.t.Helper()
	status, text := w.do("POST", w.path+"/heartbeat?expected_last_heartbeat="+strings.ReplaceAll(expected, "+", "%2B"), nil)
	var v struct {
		Last string `json:"last_heartbeat"`
	}
	_ = json.Unmarshal([]byte(text), &v)
	return status, v.Last
}

// call waits for a call that no result is there for, and returns the id of its event.
func (w *worker) call(permission string) (id string) {
	w.t.Helper()
	testkit.WaitFor(w.t, "a call that is "+permission, func() bool { id = w.unanswered(permission); return id != "" }, w.events)
	return id
}

func (w *worker) events() string {
	w.t.Helper()
	status, text := w.do("GET", "/v1/sessions/"+w.session+"/events?limit=1000", nil)
	if status != http.StatusOK {
		w.t.Fatalf("%d %s", status, text)
	}
	return text
}

func (w *worker) unanswered(permission string) (id string) {
	w.t.Helper()
	var list struct {
		Data []struct {
			ID, Type   string
			Permission string `json:"evaluated_permission"`
			Answers    string `json:"tool_use_id"`
		}
	}
	if err := json.Unmarshal([]byte(w.events()), &list); err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Data {
		switch {
		case e.Type == "agent.tool_use" && e.Permission == permission:
			id = e.ID
		case e.Answers == id && strings.HasSuffix(e.Type, "tool_result"):
			id = ""
		}
	}
	return id
}

// result sends the result of a call.
func (w *worker) result(call, text string) (status int, answer string) {
	w.t.Helper()
	return w.do("POST", "/v1/sessions/"+w.session+"/events", object{"events": []any{object{
		"type": "user.tool_result", "tool_use_id": call, "content": []any{object{"type": "text", "text": text}},
	}}})
}

func (w *worker) expect(want int, status int, text string) {
	w.t.Helper()
	if status != want {
		w.t.Fatalf("%d %s, want %d", status, text, want)
	}
}

// TestWork has a worker make the calls of a session: they are shown as those of the toolset, and
// nothing of them happens on the server.
func TestWork(t *testing.T) {
	y := newYard(t)
	id := y.session(y.agent, `call: bash {"command":"touch made"}
call: write {"file_path":"w","content":"x"}
call: read_file {"path":"/etc/hostname"}
call: http_request {"url":"http://127.0.0.1/"}
call: str_replace_editor {"command":"create","path":"made","file_text":"x"}
say: done`)
	w := y.poll(y.house)
	if w.session != id {
		t.Fatalf("the work is %+v", w)
	}
	first := w.call("allow")
	if v := y.must("GET", "/v1/sessions/"+id, nil); v["status"] != "running" {
		t.Errorf("the session is %v while a worker makes its call", v["status"])
	}
	status, text := w.result(first, "made it")
	w.expect(200, status, text)
	if !strings.Contains(text, `"user.tool_result"`) || !strings.Contains(text, "made it") {
		t.Error(text)
	}
	status, text = w.result(first, "again")
	w.expect(400, status, text)
	status, text = w.result(w.call("allow"), "wrote it")
	w.expect(200, status, text)
	y.until("/v1/sessions/"+id, "idle")
	events := w.events()
	for _, want := range []string{`"name":"bash"`, `"command":"touch made"`, `"name":"write"`, `"file_path":"w"`, `"end_turn"`} {
		if !strings.Contains(events, want) {
			t.Errorf("%s is not in %s", want, events)
		}
	}
	for _, never := range []string{"again", "requires_action", "agent.custom_tool_use", `"evaluated_permission":"ask"`} {
		if strings.Contains(events, never) {
			t.Errorf("%s is in %s", never, events)
		}
	}
	if strings.Count(events, `"is_error":true`) != 3 { // the tools of the server, which are not there
		t.Error(events)
	}
	found, err := filepath.Glob(filepath.Join(y.dir, "tasks", id, "*"))
	if err != nil || len(found) > 0 {
		t.Errorf("there are %v in the workspace of the server, %v", found, err)
	}
	if _, err := os.Stat("made"); err == nil {
		t.Error("the command has run here")
	}
}

// TestCutCall has a worker go while it makes a call. The next one makes no call again that may have changed something:
// how it ended is not known. Calls that only read are made again.
func TestCutCall(t *testing.T) {
	y := newYard(t)
	for command, want := range map[string]int32{"touch made": 0, "ls": 1, "cat a | grep b": 1, "ls > made": 0} {
		id := y.session(y.agent, "call: bash {\"command\":\""+command+"\"}\nsay: done")
		old := y.poll(y.house)
		if status, _ := old.beat("NO_HEARTBEAT"); status != http.StatusOK {
			t.Fatal(status)
		}
		call := old.call("allow")
		if status, text := old.do("POST", old.path, object{"metadata": object{"inspan_call": call}}); status != http.StatusOK {
			t.Fatal(status, text)
		}
		y.clock.pass(time.Hour) // it is gone
		var made atomic.Int32
		ctx, stop := context.WithCancel(t.Context())
		w := &managed.Worker{
			Remote: &server.Remote{URL: y.h.URL, Token: y.token}, Environment: y.env, Say: func(text string) { t.Log(text) },
			Call: func(context.Context, string, json.RawMessage) (string, error) { made.Add(1); return "it was made", nil },
		}
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		y.until("/v1/sessions/"+id, "idle")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if events := y.must("GET", "/v1/sessions/"+id+"/events?limit=1000", nil); made.Load() != want ||
			strings.Contains(fmt.Sprint(events), "what it did is not known") != (want == 0) {
			t.Errorf("%s was made %d times, want %d: %v", command, made.Load(), want, events)
		}
	}
}

// TestCallsAreNoted checks that a worker has the server know of a call before it makes it.
func TestCallsAreNoted(t *testing.T) {
	y := newYard(t)
	id := y.session(y.agent, "call: bash {\"command\":\"touch made\"}\nsay: done")
	noted := make(chan string, 1)
	ctx, stop := context.WithCancel(t.Context())
	w := &managed.Worker{
		Remote: &server.Remote{URL: y.h.URL, Token: y.token}, Environment: y.env, Say: func(string) {},
		Call: func(context.Context, string, json.RawMessage) (string, error) {
			_, text := y.do("GET", "/v1/environments/"+y.env+"/work?limit=10", nil)
			noted <- text
			return "it was made", nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	y.until("/v1/sessions/"+id, "idle")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	events, err := json.Marshal(y.must("GET", "/v1/sessions/"+id+"/events?limit=1000", nil))
	_, call, _ := strings.Cut(<-noted, `"inspan_call":"`)
	if call, _, _ = strings.Cut(call, `"`); err != nil || call == "" || !strings.Contains(string(events), `"id":"`+call+`"`) {
		t.Errorf("the server was told of the call %q, %s, %v", call, events, err)
	}
}

// TestFence lets a lease run out: another worker gets the item, and later requests of the first one are refused and
// change nothing.
func TestFence(t *testing.T) {
	y := newYard(t)
	y.session(y.agent, "call: bash {\"command\":\"true\"}\nsay: done")
	old := y.poll(y.house)
	if status, _ := old.beat("something"); status != http.StatusPreconditionFailed {
		t.Errorf("a first heartbeat that expects another one: %d", status)
	}
	status, last := old.beat("NO_HEARTBEAT")
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if status, _ := old.beat("NO_HEARTBEAT"); status != http.StatusPreconditionFailed {
		t.Errorf("a heartbeat is the first one twice: %d", status)
	}
	y.clock.pass(20 * time.Second)
	if status, last = old.beat(last); status != http.StatusOK {
		t.Fatal(status)
	}
	y.clock.pass(20 * time.Second)
	if w := y.claim(y.house); w != nil {
		t.Fatal("an item is claimed whose lease was extended")
	}
	call := old.call("allow")
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	stream := old.streamed(ctx, "/v1/sessions/"+old.session+"/events/stream")
	defer stream.Close()
	y.clock.pass(11 * time.Second)
	next := y.claim(y.house)
	if next == nil || next.item != old.item || next.token == old.token {
		t.Fatalf("%+v", next)
	}
	if text, err := io.ReadAll(stream); err != nil { // nothing happens in the session
		t.Errorf("the stream of a lease that is lost: %q, %v", text, err)
	}
	if status, text := y.do("POST", old.path+"/heartbeat", nil); status != http.StatusBadRequest || !strings.Contains(text, "NO_HEARTBEAT") {
		t.Errorf("a heartbeat of who may not hold the lease: %d %s", status, text)
	}
	status, text := old.result(call, "too late")
	old.expect(403, status, text)
	if status, _ := old.beat(last); status != http.StatusPreconditionFailed {
		t.Errorf("a heartbeat of a lease that is lost: %d", status)
	}
	status, text = old.do("POST", old.path+"/stop", object{"force": true})
	old.expect(412, status, text)
	status, text = old.do("GET", "/v1/sessions/"+old.session, nil)
	old.expect(403, status, text)
	if v := y.must("GET", next.path, nil); v["state"] != "starting" || v["latest_heartbeat_at"] != nil {
		t.Errorf("%v", v)
	}
	status, text = next.result(call, "in time")
	next.expect(200, status, text)
	y.until("/v1/sessions/"+next.session, "idle")
	if events := next.events(); strings.Contains(events, "too late") || strings.Count(events, `"user.tool_result"`) != 1 {
		t.Error(events)
	}
}

// TestLetGo has a worker release an item whose session still runs: another gets the session at once. When the
// session is idle there is no work until it gets a message.
func TestLetGo(t *testing.T) {
	y := newYard(t)
	id := y.session(y.agent, "call: bash {\"command\":\"true\"}\nsay: done")
	first := y.poll(y.house)
	if v := first.must("POST", first.path+"/stop", object{"force": true}); v["state"] != "stopped" {
		t.Error(v)
	}
	second := y.poll(y.house)
	if second.item == first.item || second.session != id {
		t.Errorf("%s after %s", second.item, first.item)
	}
	status, text := first.result("sevt_x", "x")
	first.expect(403, status, text)
	status, text = second.result(second.call("allow"), "x")
	second.expect(200, status, text)
	y.until("/v1/sessions/"+id, "idle")
	if v := y.must("POST", second.path+"/stop", object{}); v["state"] != "stopping" {
		t.Error(v)
	}
	if status, last := second.beat("NO_HEARTBEAT"); status != http.StatusOK || last == "" {
		t.Error(status)
	}
	second.must("POST", second.path+"/stop", object{"force": true})
	y.close()
	y.open()
	if w := y.claim(y.house); w != nil {
		t.Errorf("%+v is work of a session that is idle", w)
	}
	y.must("POST", "/v1/sessions/"+id+"/events", object{"events": []any{
		object{"type": "user.message", "content": []any{object{"type": "text", "text": "call: glob {\"pattern\":\"*\"}\nsay: done"}}},
	}})
	third := y.poll(y.house)
	if v := y.must("GET", "/v1/environments/"+y.env+"/work/stats", nil); v["pending"] != 1.0 || v["depth"] != 0.0 {
		t.Error(v)
	}
	y.close() // the lease outlasts the server
	y.open()
	third.h = y.h
	if w := y.claim(y.house); w != nil {
		t.Error("the lease is lost with the server")
	}
	status, text = third.result(third.call("allow"), "x")
	third.expect(200, status, text)
}

// TestEnvironmentInUse checks that no session loses its environment, whose workers it would wait for.
func TestEnvironmentInUse(t *testing.T) {
	y := newYard(t)
	id := y.session(y.agent, "call: bash {\"command\":\"true\"}\nsay: done")
	w := y.poll(y.house)
	at := "/v1/environments/" + y.env
	if status, message := y.problem("DELETE", at, nil); status != http.StatusConflict || !strings.Contains(message, id) {
		t.Errorf("%d %s", status, message)
	}
	y.must("POST", at+"/archive", nil)
	status, text := w.result(w.call("allow"), "made")
	w.expect(200, status, text)
	y.until("/v1/sessions/"+id, "idle")
	if status, message := y.problem("DELETE", at, nil); status != http.StatusConflict {
		t.Errorf("%d %s", status, message)
	}
	y.must("POST", "/v1/sessions/"+id+"/archive", nil)
	if v := y.must("DELETE", at, nil); v["id"] != y.env || v["type"] != "environment_deleted" {
		t.Error(v)
	}
	if status, message := y.problem("DELETE", at, nil); status != http.StatusNotFound {
		t.Errorf("%d %s", status, message)
	}
}

// TestConfirmed has a call that asks wait for a decision, and then for a worker. A denied one accepts no result.
func TestConfirmed(t *testing.T) {
	y := newYard(t)
	agent := y.made("/v1/agents", object{"name": "a", "model": "script", "tools": []any{object{
		"type": "agent_toolset_20260401", "default_config": object{"permission_policy": object{"type": "always_ask"}},
	}}})
	id := y.session(agent, "call: bash {\"command\":\"one\"}\ncall: bash {\"command\":\"two\"}\nsay: done")
	w := y.poll(y.house)
	call := w.call("ask")
	y.until("/v1/sessions/"+id, "idle")
	status, text := w.result(call, "unasked")
	w.expect(400, status, text)
	confirm := func(h *house, call, result string) (int, string) {
		return h.do("POST", "/v1/sessions/"+id+"/events", object{"events": []any{
			object{"type": "user.tool_confirmation", "tool_use_id": call, "result": result},
		}})
	}
	status, text = confirm(w.house, call, "allow")
	w.expect(403, status, text)
	status, text = confirm(y.house, call, "allow")
	w.expect(200, status, text)
	if !strings.Contains(text, `"user.tool_confirmation"`) {
		t.Error(text)
	}
	status, text = confirm(y.house, call, "deny")
	w.expect(409, status, text)
	y.until("/v1/sessions/"+id, "running")
	status, text = w.result(call, "asked")
	w.expect(200, status, text)
	second := w.call("ask")
	status, text = confirm(y.house, second, "deny")
	w.expect(200, status, text)
	status, text = w.result(second, "denied")
	w.expect(400, status, text)
	y.until("/v1/sessions/"+id, "idle")
	if events := w.events(); strings.Contains(events, "unasked") || strings.Count(events, `"user.tool_confirmation"`) != 2 ||
		strings.Count(events, `"requires_action"`) != 2 || strings.Count(events, `"user.tool_result"`) != 1 {
		t.Error(events)
	}
}

// TestWhoWorks has tokens that may work see nothing else, and nothing of other tenants.
func TestWhoWorks(t *testing.T) {
	y := newYard(t)
	id := y.session(y.agent, "call: bash {\"command\":\"true\"}\nsay: done")
	other := y.session(y.agent, "call: bash {\"command\":\"true\"}\nsay: done")
	_, text := y.do("POST", "/api/v1/identities", object{"name": "w", "role": "worker"})
	var made struct{ Token string }
	if json.Unmarshal([]byte(text), &made) != nil || made.Token == "" {
		t.Fatal(text)
	}
	key := *y.house
	key.token = made.Token
	w := y.poll(&key)
	theirs := other
	if w.session == other {
		theirs = id
	}
	red := y.as("ann", "red")
	for _, c := range []struct {
		who    *house
		method string
		path   string
		want   int
	}{
		{&key, "GET", "/v1/sessions/" + id, 403},
		{&key, "GET", "/v1/sessions", 403},
		{&key, "GET", "/api/v1/tasks", 403},
		{&key, "POST", w.path + "/ack", 200},
		{w.house, "POST", w.path + "/ack", 200},
		{w.house, "GET", "/v1/sessions/" + w.session, 200},
		{w.house, "GET", "/v1/sessions/" + theirs, 404},
		{w.house, "GET", "/v1/sessions/" + theirs + "/events", 404},
		{w.house, "GET", "/v1/sessions", 403},
		{w.house, "GET", "/v1/environments/" + y.env + "/work/poll", 404},
		{w.house, "DELETE", "/v1/sessions/" + w.session, 403},
		{w.house, "GET", "/api/v1/tasks", 403},
		{red, "GET", "/v1/environments/" + y.env + "/work/poll", 404},
		{red, "GET", w.path, 404},
		{red, "POST", w.path + "/ack", 404},
		{red, "POST", w.path + "/heartbeat", 404},
		{red, "POST", w.path + "/stop", 404},
	} {
		if status, text := c.who.do(c.method, c.path, nil); status != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, text, c.want)
		}
	}
	forged := *y.house
	forged.token = w.token[:len(w.token)-1] + "x"
	if status, _ := forged.do("GET", "/v1/sessions/"+w.session, nil); status != http.StatusUnauthorized {
		t.Errorf("a forged token: %d", status)
	}
	v := y.must("GET", "/v1/environments/"+y.env+"/work", nil)
	testkit.WaitFor(t, "the work of the other session", func() bool {
		v = y.must("GET", "/v1/environments/"+y.env+"/work", nil)
		return len(v["data"].([]any)) == 2
	}, func() string { return fmt.Sprint(v) })
	if v := y.must("POST", w.path, object{"metadata": object{"a": "b"}}); v["metadata"].(object)["a"] != "b" || v["secret"] != nil {
		t.Error(v)
	}
}

// TestNotElsewhere checks that sessions that work elsewhere can't use resources on the server.
func TestNotElsewhere(t *testing.T) {
	y := newYard(t)
	here := y.made("/v1/environments", someEnv)
	session := object{"agent": y.agent, "environment_id": y.env}
	quiet := y.made("/v1/sessions", session)
	outcome := object{"type": "user.define_outcome", "description": "d", "rubric": object{"type": "text", "content": "c"}}
	custom := object{"type": "custom", "name": "bash", "description": "d", "input_schema": object{"type": "object"}}
	for _, c := range []struct {
		path string
		body object
		want string
	}{
		{
			"/v1/environments", with(elsewhere, "config", object{"type": "self_hosted", "networking": object{"type": "limited"}}),
			"config: networking",
		},
		{"/v1/environments/" + here, object{"config": object{"type": "self_hosted"}}, "make another one"},
		{"/v1/sessions", with(session, "initial_events", []any{outcome}), "outcomes in self-hosted"},
		{"/v1/sessions/" + quiet + "/events", object{"events": []any{outcome}}, "outcomes in self-hosted"},
		{"/v1/sessions", with(session, "resources", []any{object{
			"type": "github_repository", "url": "https://github.com/a/b", "authorization_token": "x",
		}}), "resources of sessions"},
		{"/v1/sessions", with(session, "agent", object{"type": "agent_with_overrides", "id": y.agent, "tools": []any{
			object{"type": "agent_toolset_20260401"}, custom,
		}}), "a custom tool is called bash"},
	} {
		if status, text := y.do("POST", c.path, c.body); status < 400 || status > 499 || !strings.Contains(text, c.want) {
			t.Errorf("%s %v: %d %s", c.path, c.body, status, text)
		}
	}
	if v := y.must("GET", "/v1/environments/"+y.env, nil); len(v["config"].(object)) != 1 {
		t.Error(v)
	}
	if status, text := y.do("GET", "/v1/environments/"+here+"/work/poll", nil); status != 400 {
		t.Errorf("%d %s", status, text)
	}
}

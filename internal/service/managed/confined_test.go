package managed_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/testkit"
)

// estate is the objects of a tenant for two agents, by kind and agent: "session b" and so on.
type estate struct {
	*house
	owner *house
	ids   map[string]string
}

// newEstate makes it. All sessions wait for an approval.
func newEstate(t *testing.T) *estate {
	t.Helper()
	owner := newHouse(t, nil)
	e := &estate{owner.as("ann", "red"), owner, map[string]string{}}
	env, away := e.made("/v1/environments", someEnv), e.made("/v1/environments", elsewhere)
	e.ids["environment"], e.ids["away"], e.ids["tenant"] = env, away, "red"
	vault := e.made("/v1/vaults", object{"display_name": "v"})
	e.ids["vault"] = vault
	e.ids["credential"] = e.made("/v1/vaults/"+vault+"/credentials", object{"auth": object{
		"type": "static_bearer", "token": "t", "mcp_server_url": "https://mcp.example.org",
	}})
	e.ids["store"] = e.made("/v1/memory_stores", object{"name": "m"})
	e.ids["memory"] = e.made("/v1/memory_stores/"+e.ids["store"]+"/memories", object{"path": "/a", "content": "x"})
	e.ids["version"] = fmt.Sprint(e.must("GET", "/v1/memory_stores/"+e.ids["store"]+"/memory_versions", nil)["data"].([]any)[0].(object)["id"])
	skill := e.skill(someSkill)
	e.ids["skill"], e.ids["skill version"] = fmt.Sprint(skill["id"]), fmt.Sprint(skill["latest_version_id"])
	e.ids["file"] = e.uploaded("f", "theirs")
	for _, name := range []string{"a", "b"} {
		agent := e.made("/v1/agents", object{
			"name": name, "model": "script", "skills": []any{object{"type": "custom", "skill_id": e.ids["skill"]}},
			"tools": []any{object{"type": "agent_toolset_20260401", "default_config": object{"permission_policy": object{"type": "always_ask"}}}},
		})
		bare := e.made("/v1/agents", with(someAgent, "name", name+" bare"))
		begin := []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "bash: echo of " + name}}}}
		session := e.made("/v1/sessions", object{
			"agent": agent, "environment_id": env, "vault_ids": []any{vault}, "initial_events": begin,
			"resources": []any{object{"type": "file", "file_id": e.ids["file"]}},
		})
		far := e.made("/v1/sessions", object{"agent": bare, "environment_id": away, "initial_events": begin})
		depl := e.made("/v1/deployments", object{
			"name": name, "agent": agent, "environment_id": env, "initial_events": begin, "vault_ids": []any{vault},
		})
		e.ids["run "+name] = e.made("/v1/deployments/"+depl+"/run", nil)
		e.ids["agent "+name], e.ids["bare "+name], e.ids["session "+name], e.ids["deployment "+name] = agent, bare, session, depl
		e.ids["far "+name] = far
		at := "/v1/sessions/" + session + "/resources"
		e.ids["resource "+name] = fmt.Sprint(e.must("GET", at, nil)["data"].([]any)[0].(object)["id"])
		e.ids["run session "+name] = fmt.Sprint(e.must("GET", "/v1/deployment_runs/"+e.ids["run "+name], nil)["session_id"])
	}
	testkit.WaitFor(t, "four questions", func() bool { return len(e.questions()) >= 4 })
	testkit.WaitFor(t, "two items of work", func() bool { return len(e.must("GET", "/v1/environments/"+away+"/work", nil)["data"].([]any)) == 2 })
	for _, w := range e.must("GET", "/v1/environments/"+away+"/work", nil)["data"].([]any) {
		name := map[bool]string{true: "work a", false: "work b"}[w.(object)["data"].(object)["id"] == e.ids["far a"]]
		e.ids[name] = fmt.Sprint(w.(object)["id"])
	}
	for _, q := range e.questions() {
		for _, name := range []string{"a", "b"} {
			if q["task"] == e.ids["session "+name] {
				e.ids["question "+name] = fmt.Sprint(q["id"])
				e.ids["own "+name] = fmt.Sprint(q["session"])
			}
		}
	}
	for _, name := range []string{"a", "b"} {
		if e.ids["question "+name] == "" {
			t.Fatalf("the question of session %s was open and is not: %v", name, e.must("GET", "/api/v1/tasks/"+e.ids["session "+name], nil))
		}
	}
	return e
}

// questions are the open questions.
func (h *house) questions() (out []object) {
	h.t.Helper()
	for _, q := range h.must("GET", "/api/v1/approvals", nil)["approvals"].([]any) {
		out = append(out, q.(object))
	}
	return out
}

// confined is an identity that is confined.
func (e *estate) confined(name, role, field string, ids ...string) *house {
	e.t.Helper()
	status, text := e.owner.do("POST", "/api/v1/identities", object{"name": name, "tenant": "red", "role": role, field: ids})
	var made struct{ Token string }
	if json.Unmarshal([]byte(text), &made) != nil || made.Token == "" {
		e.t.Fatalf("%d %s", status, text)
	}
	other := *e.owner
	other.token = made.Token
	return &other
}

// state is the tenant's view of everything that belongs to B or to all.
func (e *estate) state() string {
	e.t.Helper()
	var out strings.Builder
	for _, path := range []string{
		"agents/" + e.ids["agent b"], "environments", "sessions/" + e.ids["session b"] + "/events", "sessions/" + e.ids["far b"] + "/events",
		"sessions/" + e.ids["session b"] + "/resources", "deployments", "deployment_runs", "vaults", "vaults/" + e.ids["vault"] + "/credentials",
		"memory_stores", "memory_stores/" + e.ids["store"] + "/memories", "skills", "skills/" + e.ids["skill"] + "/versions", "files",
		"environments/" + e.ids["away"] + "/work/" + e.ids["work b"],
	} {
		_, text := e.do("GET", "/v1/"+path, nil)
		out.WriteString(path + " " + text + "\n")
	}
	return out.String()
}

// filled is a path with ids in it: those of an estate, or of nothing.
func (e *estate) filled(path string) (full, none string, shared bool) {
	params := map[string]string{}
	parts := strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, "/api"), "/v1/"), "/")
	first := map[string]string{
		"agents": "agent b", "environments": "environment", "sessions": "session b", "deployments": "deployment b", "deployment_runs": "run b",
		"files": "file", "skills": "skill", "vaults": "vault", "memory_stores": "store", "tasks": "session b", "approvals": "session b",
		"organizations": "agent b", "identities": "agent b", "tenants": "tenant", "webhooks": "agent b", "evals": "agent b",
	}[parts[0]]
	for i, part := range parts[1:] {
		if !strings.HasPrefix(part, "{") {
			continue
		}
		of := first
		switch {
		case part == "{work}":
			of = "work b"
		case part == "{thread}":
			params[part] = "sthr_" + e.ids["own b"]
			continue
		case part == "{version}":
			of = "skill version"
		case part == "{question}":
			of = "question b"
		case part == "{digest}", part == "{letter}":
			params[part] = "x"
			continue
		case part == "{environment}":
			of = "away"
		case strings.HasPrefix(path, "/api/v1/sessions/"):
			of = "own b"
		case i > 0:
			of = map[string]string{
				"credentials": "credential", "memories": "memory", "memory_versions": "version", "resources": "resource b", "webhooks": "agent b",
			}[parts[i]]
		}
		params[part] = e.ids[of]
		shared = shared || of == "environment" || of == "tenant"
	}
	full, none = path, path
	for part, id := range params {
		full = strings.ReplaceAll(full, part, id)
		at := id
		if part != "{environment}" && id != "x" {
			at = "none"
		}
		none = strings.ReplaceAll(none, part, at)
	}
	return full, none, shared
}

// said are the bodies of requests that would be taken.
func (e *estate) said() map[string]any {
	event := object{"events": []any{object{"type": "user.interrupt"}}}
	deployment := object{
		"name": "d", "agent": e.ids["agent b"], "environment_id": e.ids["environment"],
		"initial_events": []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: x"}}}},
	}
	credential := object{"auth": object{"type": "static_bearer", "token": "t", "mcp_server_url": "https://other.example.org"}}
	return map[string]any{
		"/v1/agents": someAgent, "/v1/environments": someEnv, "/v1/deployments": deployment, "/v1/vaults/{vault}/credentials": credential,
		"/v1/sessions":             object{"agent": e.ids["agent b"], "environment_id": e.ids["environment"]},
		"/v1/sessions/{id}/events": event, "/v1/sessions/{id}": object{"title": "mine"}, "/v1/agents/{id}": object{"name": "mine"},
		"/v1/environments/{id}": object{"name": "mine"}, "/v1/deployments/{id}": object{"name": "mine"},
		"/v1/vaults": object{"display_name": "mine"}, "/v1/vaults/{id}": object{"display_name": "mine"},
		"/v1/vaults/{vault}/credentials/{id}": object{"display_name": "mine"},
		"/v1/memory_stores":                   object{"name": "mine"}, "/v1/memory_stores/{id}": object{"name": "mine"},
		"/v1/memory_stores/{store}/memories":      object{"path": "/mine", "content": "x"},
		"/v1/memory_stores/{store}/memories/{id}": object{"content": "mine"},
		"/v1/sessions/{id}/resources":             object{"type": "file", "file_id": e.ids["file"]},
		"/v1/chat/completions":                    object{"model": "inspan", "messages": []any{object{"role": "user", "content": "say: x"}}},
		"/v1/responses":                           object{"model": "inspan", "input": "say: x"},
		"/api/v1/tasks":                           object{"prompt": "say: x"}, "/invocations": object{"prompt": "say: x"},
		"/api/v1/tasks/{id}/messages": object{"text": "say: x"}, "/api/v1/tasks/{id}/rewind": object{},
		"/api/v1/approvals/{task}/{question}":        object{"decision": "allow"},
		"/api/v1/sessions/{id}/events":               object{"kind": "titled", "body": object{"title": "mine"}},
		"/api/v1/identities":                         object{"name": "mine", "role": "viewer"},
		"/api/v1/webhooks":                           object{"url": "https://example.org", "enabled_events": []any{"*"}},
		"/v1/organizations/webhooks":                 object{"url": "https://example.org", "enabled_events": []any{"*"}},
		"/v1/environments/{environment}/work/{work}": object{"metadata": object{}},
	}
}

var requestID = regexp.MustCompile(`req_[a-z0-9]+`)

// TestConfined checks, at every endpoint of the server, that an identity confined to an agent sees nothing of another
// agent, gets the same answers as for things that do not exist, and changes only sessions of its agent.
func TestConfined(t *testing.T) {
	e := newEstate(t)
	eve := e.confined("eve", "operator", "agents", e.ids["agent a"], e.ids["bare a"])
	all := managed.Endpoints()
	for path, methods := range eve.must("GET", "/api/v1/openapi.json", nil)["paths"].(object) {
		for method := range methods.(object) {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(all)
	var theirs []string
	for name, id := range e.ids {
		if strings.HasSuffix(name, " b") && name != "question b" { // that is the same text in each session
			theirs = append(theirs, id)
		}
	}
	before, bodies, seen := e.state(), e.said(), 0
	for _, endpoint := range all {
		method, path, _ := strings.Cut(endpoint, " ")
		if slices.Contains([]string{"/ws", "/api/v1/approvals/stream", "/api/v1/openapi.json", "/hooks/{name}"}, path) {
			continue // below, the description, or what knows its callers by a signature
		}
		full, none, shared := e.filled(path)
		var body any
		if method != http.MethodGet && method != http.MethodDelete {
			body = bodies[path]
		}
		status, text := eve.do(method, full, body)
		text = requestID.ReplaceAllString(text, "")
		seen++
		for _, id := range theirs {
			if strings.Contains(text, id) && !strings.Contains(full+fmt.Sprint(body), id) {
				t.Errorf("%s tells of %s: %s", endpoint, id, text)
			}
		}
		switch {
		case shared && method == http.MethodGet && !strings.Contains(path, "tenant"):
			if status != http.StatusOK {
				t.Errorf("%s: %d %s", endpoint, status, text)
			}
		case shared:
			if status != http.StatusForbidden {
				t.Errorf("%s: %d %s", endpoint, status, text)
			}
		case full != none:
			other, same := eve.do(method, none, body)
			same = requestID.ReplaceAllString(same, "")
			for part, id := range e.ids {
				if part != "away" {
					text = strings.ReplaceAll(text, id, "none")
				}
			}
			text = strings.ReplaceAll(text, "sthr_none", "none")
			if status != other || text != same || status/100 != 4 {
				t.Errorf("%s: %d %s, and of nothing %d %s", endpoint, status, text, other, same)
			}
		case method == http.MethodGet:
			if status != http.StatusOK && status != http.StatusForbidden {
				t.Errorf("%s: %d %s", endpoint, status, text)
			}
		case status/100 != 4:
			t.Errorf("%s: %d %s", endpoint, status, text)
		}
	}
	if seen < 120 {
		t.Errorf("only %d endpoints were tried", seen)
	}
	if after := e.state(); after != before {
		t.Errorf("it has changed something:\n%s\n%s", before, after)
	}
	for name, send := range map[string]func() (int, string){
		"a skill":     func() (int, string) { return eve.form("/v1/skills", field{"files[]", "greeting/SKILL.md", someSkill}) },
		"its agent":   func() (int, string) { return eve.do("POST", "/v1/agents/"+e.ids["agent a"], object{"name": "mine"}) },
		"a vault":     func() (int, string) { return eve.do("POST", "/v1/vaults", object{"display_name": "mine"}) },
		"a task":      func() (int, string) { return eve.do("POST", "/api/v1/tasks", object{"prompt": "say: x"}) },
		"its archive": func() (int, string) { return eve.do("POST", "/v1/deployments/"+e.ids["deployment a"]+"/archive", nil) },
		"the tenant":  func() (int, string) { return eve.do("GET", "/api/v1/tenants/red", nil) },
		"the tools of its session": func() (int, string) {
			return eve.do("POST", "/v1/sessions/"+e.ids["run session a"], object{"agent": object{"tools": someAgent["tools"]}})
		},
		"no tools for its session": func() (int, string) {
			return eve.do("POST", "/v1/sessions/"+e.ids["run session a"], object{"agent": object{"mcp_servers": nil}})
		},
		"an agent with other tools": func() (int, string) {
			return eve.do("POST", "/v1/sessions", object{"environment_id": e.ids["environment"], "agent": object{
				"type": "agent_with_overrides", "id": e.ids["agent a"], "tools": someAgent["tools"],
			}})
		},
		"an agent with another prompt": func() (int, string) {
			return eve.do("POST", "/v1/sessions", object{"environment_id": e.ids["environment"], "agent": object{
				"type": "agent_with_overrides", "id": e.ids["agent a"], "system": "obey eve",
			}})
		},
	} {
		if status, text := send(); status != http.StatusForbidden || !strings.Contains(text, "confined") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	for name, body := range map[string]object{
		"a vault of others": {"vault_ids": []any{e.ids["vault"]}},
		"a store of others": {"resources": []any{object{"type": "memory_store", "memory_store_id": e.ids["store"]}}},
		"a file of others":  {"resources": []any{object{"type": "file", "file_id": e.ids["file"]}}},
	} {
		body["agent"], body["environment_id"] = e.ids["agent a"], e.ids["environment"]
		if status, message := eve.problem("POST", "/v1/sessions", body); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", name, status, message)
		}
	}
	eve.socketIsRefused()
	e.ownSessions(eve)
}

// socketIsRefused holds that no conversation over a WebSocket begins.
func (h *house) socketIsRefused() {
	h.t.Helper()
	conn, _, err := websocket.Dial( //nolint:bodyclose // the connection is its body
		h.t.Context(), strings.Replace(h.h.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{
			HTTPHeader: http.Header{"Authorization": {"Bearer " + h.token}},
		})
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	if _, raw, err := conn.Read(h.t.Context()); err != nil || !strings.Contains(string(raw), "confined") {
		h.t.Errorf("%s %v", raw, err)
	}
}

// ownSessions checks what an identity confined to agent A can do with A's sessions.
func (e *estate) ownSessions(eve *house) {
	e.t.Helper()
	own := func(path string, field string, want ...string) {
		e.t.Helper()
		v := eve.must("GET", path, nil)[field].([]any)
		var got []string
		for _, o := range v {
			id := o.(object)["id"]
			if field == "approvals" {
				id = o.(object)["task"]
			}
			got = append(got, fmt.Sprint(id))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			e.t.Errorf("%s: %v, want %v", path, got, want)
		}
	}
	mine := []string{e.ids["session a"], e.ids["far a"], e.ids["run session a"]}
	own("/v1/agents", "data", e.ids["agent a"], e.ids["bare a"])
	own("/v1/sessions", "data", mine...)
	own("/api/v1/tasks", "tasks", mine...)
	own("/v1/deployments", "data", e.ids["deployment a"])
	own("/v1/deployment_runs", "data", e.ids["run a"])
	own("/v1/environments/"+e.ids["away"]+"/work", "data", e.ids["work a"])
	own("/api/v1/approvals", "approvals", mine...)
	for _, path := range []string{"files", "vaults", "memory_stores", "skills"} {
		own("/v1/"+path, "data")
	}
	if n := eve.must("GET", "/v1/environments/"+e.ids["away"]+"/work/stats", nil)["pending"]; n != 1.0 {
		e.t.Errorf("it counts %v items", n)
	}
	file := eve.uploaded("mine", "x")
	own("/v1/files", "data", file)
	session := eve.made("/v1/sessions", object{
		"agent": e.ids["agent a"], "environment_id": e.ids["environment"], "resources": []any{object{"type": "file", "file_id": file}},
	})
	if text := eve.run(session, "say: hello"); !strings.Contains(text, "hello") {
		e.t.Error(text)
	}
	if v := eve.must("POST", "/v1/sessions/"+session, object{"title": "mine"}); v["title"] != "mine" {
		e.t.Error(v)
	}
	eve.must("POST", "/v1/sessions/"+session+"/archive", nil)
	run := eve.must("POST", "/v1/deployments/"+e.ids["deployment a"]+"/run", nil)
	if run["session_id"] == nil {
		e.t.Errorf("%v", run)
	}
	if text := eve.followed(); !strings.Contains(text, e.ids["session a"]) || strings.Contains(text, e.ids["session b"]) {
		e.t.Error(text)
	}
	eve.must("POST", "/api/v1/approvals/"+e.ids["session a"]+"/"+e.ids["question a"], object{"decision": "allow"})
	eve.until("/v1/sessions/"+e.ids["session a"], "idle")
	e.owner.close()
	e.owner.open() // all of this comes from the book
	eve.s, eve.h = e.owner.s, e.owner.h
	own("/v1/agents", "data", e.ids["agent a"], e.ids["bare a"])
	if status, _ := eve.do("GET", "/api/v1/tasks/"+e.ids["session b"], nil); status != http.StatusNotFound {
		e.t.Errorf("after a restart it sees a session of another agent: %d", status)
	}
}

// followed is the beginning of a stream of the questions.
func (h *house) followed() string {
	h.t.Helper()
	ctx, stop := context.WithCancel(h.t.Context())
	defer stop()
	stream := h.streamed(ctx, "/api/v1/approvals/stream")
	defer stream.Close()
	for lines := bufio.NewScanner(stream); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), "data: "); is {
			return text
		}
	}
	h.t.Fatal("the stream ends")
	return ""
}

// TestConfinedWorkers checks that a worker that is confined to an environment has only its work.
func TestConfinedWorkers(t *testing.T) {
	e := newEstate(t)
	other := e.made("/v1/environments", elsewhere)
	w := e.confined("w", "worker", "environments", other)
	item := "/work/" + e.ids["work a"]
	for _, path := range []string{"/work/poll", item, item + "/ack", item + "/stop"} {
		method := map[bool]string{true: "GET", false: "POST"}[path == "/work/poll"]
		status, text := w.do(method, "/v1/environments/"+e.ids["away"]+path, nil)
		of, none := w.do(method, "/v1/environments/none"+path, nil)
		none = strings.ReplaceAll(requestID.ReplaceAllString(none, ""), "none", e.ids["away"])
		if status != of || requestID.ReplaceAllString(text, "") != none || status/100 != 4 {
			t.Errorf("%s: %d %s, and of nothing %d %s", path, status, text, of, none)
		}
	}
	if _, text := w.do("GET", "/v1/environments/"+other+"/work/poll", nil); text != "null\n" && text != "null" {
		t.Error(text)
	}
	far := e.made("/v1/sessions", object{"agent": e.ids["bare a"], "environment_id": other, "initial_events": []any{
		object{"type": "user.message", "content": []any{object{"type": "text", "text": "bash: true"}}},
	}})
	y := &yard{house: e.house, env: other}
	if got := y.poll(w); got.session != far {
		t.Errorf("it gets the work of %s, not of %s", got.session, far)
	}
}

// TestConfinedStrict checks to what no identity can be confined.
func TestConfinedStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	agent, env := red.made("/v1/agents", someAgent), red.made("/v1/environments", elsewhere)
	theirs := blue.made("/v1/agents", someAgent)
	session := red.made("/v1/sessions", object{"agent": agent, "environment_id": red.made("/v1/environments", someEnv)})
	for name, tc := range map[string]struct {
		role, field string
		ids         any
		want        string
	}{
		"an admin":                 {"admin", "agents", []any{agent}, "role admin can't be confined"},
		"a worker":                 {"worker", "agents", []any{agent}, "role worker can't be confined"},
		"no worker":                {"operator", "environments", []any{env}, "role operator can't be confined"},
		"nothing":                  {"operator", "agents", []any{"agent_none"}, "the tenant has no"},
		"of another tenant":        {"operator", "agents", []any{theirs}, "the tenant has no"},
		"an environment":           {"operator", "agents", []any{env}, "the tenant has no"},
		"an agent":                 {"worker", "environments", []any{agent}, "the tenant has no"},
		"a session":                {"viewer", "agents", []any{session}, "the tenant has no"},
		"everybody":                {"viewer", "agents", []any{"*"}, "the tenant has no"},
		"too many":                 {"viewer", "agents", slices.Repeat([]any{agent}, 101), "at most 100"},
		"what is no list of texts": {"viewer", "agents", []any{1}, "agents"},
	} {
		body := object{"name": "x", "tenant": "red", "role": tc.role, tc.field: tc.ids}
		if status, text := h.do("POST", "/api/v1/identities", body); status != http.StatusBadRequest || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	status, text := h.do("POST", "/api/v1/identities", object{"name": "x", "tenant": "red", "role": "viewer", "agents": []any{agent}})
	if status != http.StatusCreated || !strings.Contains(text, `"agents":["`+agent+`"]`) {
		t.Errorf("%d %s", status, text)
	}
	if _, text := h.do("GET", "/api/v1/identities", nil); !strings.Contains(text, `"agents":["`+agent+`"]`) {
		t.Error(text)
	}
}

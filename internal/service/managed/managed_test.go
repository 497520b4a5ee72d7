package managed_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/service/managed"

	"github.com/inspan/inspan/internal/service/server"
)

// TestStrict checks that invalid requests are refused with the reason.
func TestStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	some := object{"agent": agent, "environment_id": env}
	tools := func(list ...any) object { return with(someAgent, "tools", list) }
	event := func(e object) object { return object{"events": []any{e}} }
	message := func(content ...any) object { return event(object{"type": "user.message", "content": content}) }
	custom := object{"type": "custom", "name": "x", "description": "d", "input_schema": object{"type": "object"}}
	mcp := object{"type": "mcp_toolset", "mcp_server_name": "m"}
	servers := func(a object, list ...any) object { return with(a, "mcp_servers", list) }
	at := "/v1/sessions/" + session
	set := func(fields object) object { return with(fields, "type", "agent_toolset_20260401") }
	cloud := func(field string, v any) object {
		return object{"name": "e", "config": object{"type": "cloud", field: v}}
	}
	picture := func(data string) object {
		return message(object{"type": "image", "source": object{"type": "base64", "media_type": "image/png", "data": data}})
	}
	outcome := func(rubric object, most int) object {
		return event(object{"type": "user.define_outcome", "description": "d", "rubric": rubric, "max_iterations": most})
	}
	confirms := func(id, result string) object {
		return object{"type": "user.tool_confirmation", "tool_use_id": id, "result": result}
	}
	for _, tc := range []struct {
		method, path string
		body         any
		status       int
		want         string
	}{
		{"POST", "/v1/agents", `{`, 400, "JSON"},
		{"POST", "/v1/agents", ``, 400, "empty"},
		{"POST", "/v1/agents", `[]`, 400, "body"},
		{"POST", "/v1/agents", with(someAgent, "nmae", 1), 400, "nmae"},
		{"POST", "/v1/agents", with(someAgent, "name", 1), 400, "name"},
		{"POST", "/v1/agents", with(someAgent, "name", ""), 400, "name"},
		{"POST", "/v1/agents", with(someAgent, "name", strings.Repeat("n", 300)), 400, "at most 256"},
		{"POST", "/v1/agents", with(someAgent, "version", 1), 400, "version"},
		{"POST", "/v1/agents", with(someAgent, "system", strings.Repeat("n", 100_001)), 400, "at most 100000"},
		{"POST", "/v1/agents", with(someAgent, "model", object{"id": "script", "speed": "fast"}), 400, "speed"},
		{"POST", "/v1/agents", with(someAgent, "model", object{"id": "script", "effort": "high"}), 400, "effort"},
		{"POST", "/v1/agents", with(someAgent, "model", object{"id": "script", "nope": 1}), 400, "nope"},
		{"POST", "/v1/agents", with(someAgent, "skills", []any{object{"type": "custom", "skill_id": "s"}}), 404, "skill"},
		{"POST", "/v1/agents", with(someAgent, "metadata", object{"": "x"}), 400, "metadata"},
		{"POST", "/v1/agents", with(someAgent, "multiagent", object{"type": "coordinator", "agents": []any{agent}}), 400, "self"},
		{"POST", "/v1/agents", with(someAgent, "multiagent", object{"type": "coordinator", "agents": []any{}}), 400, "empty"},
		{"POST", "/v1/agents", with(someAgent, "multiagent", object{"type": "multiagent_20261001"}), 400, "multiagent"},
		{"POST", "/v1/agents", with(someAgent, "execution_identity", object{"type": "aws_role"}), 400, "identit"},
		{"POST", "/v1/agents", tools(object{"type": "x"}), 400, "tools.0.type"},
		{"POST", "/v1/agents", tools(custom, custom), 400, "twice"},
		{"POST", "/v1/agents", tools(with(custom, "name", "")), 400, "tools.0.name"},
		{"POST", "/v1/agents", tools(mcp), 400, "mcp_server_name"},
		{"POST", "/v1/agents", tools(set(object{"configs": []any{object{"name": "rm"}}})), 400, "rm"},
		{"POST", "/v1/agents", tools(set(object{"default_config": object{"permission_policy": object{"type": "never"}}})), 400, "never"},
		{"POST", "/v1/agents", servers(someAgent, object{"type": "url", "name": "m", "url": "https://m.example"}), 400, "no mcp_toolset"},
		{"POST", "/v1/agents", servers(tools(mcp), object{"type": "url", "name": "m", "url": "file:///x"}), 400, "url"},
		{"POST", "/v1/agents", servers(tools(mcp), object{"type": "url", "name": "m", "url": "https://u:p@m.example"}), 400, "secret"},
		{"POST", "/v1/agents", servers(tools(mcp), object{"type": "stdio", "name": "m", "url": "https://m.example"}), 400, "type"},
		{"GET", "/v1/agents?limit=0", nil, 400, "limit"},
		{"GET", "/v1/agents?limit=1000", nil, 400, "limit"},
		{"GET", "/v1/agents?page=x", nil, 400, "page"},
		{"GET", "/v1/agents?nope=x", nil, 400, "nope"},
		{"GET", "/v1/agents?include_archived=maybe", nil, 400, "include_archived"},
		{"GET", "/v1/agents?created_at[gte]=now", nil, 400, "created_at"},
		{"GET", "/v1/agents/agent_none", nil, 404, "agent_none"},
		{"GET", "/v1/agents/" + agent + "?version=2", nil, 404, "version"},
		{"POST", "/v1/agents/" + agent, object{"version": 7}, 409, "version"},
		{"POST", "/v1/agents/" + agent, object{"name": nil}, 400, "name"},
		{"DELETE", "/v1/agents/" + agent, nil, 405, "this path takes"},
		{"POST", "/v1/environments", cloud("packages", object{"pip": []any{"x"}}), 400, "packages"},
		{"POST", "/v1/environments", cloud("networking", object{"type": "limited", "allowed_hosts": []any{"https://x"}}), 400, "hosts"},
		{"POST", "/v1/environments", cloud("networking", object{"type": "unrestricted", "allowed_hosts": []any{"x"}}), 400, "limited network"},
		{"POST", "/v1/environments", cloud("networking", object{"type": "x"}), 400, "networking"},
		{"POST", "/v1/environments", object{"name": "e", "scope": "account"}, 400, "scope"},
		{"POST", "/v1/sessions", object{"agent": agent}, 400, "environment_id"},
		{"POST", "/v1/sessions", with(some, "agent", "agent_none"), 404, "agent_none"},
		{"POST", "/v1/sessions", with(some, "environment_id", "env_none"), 404, "env_none"},
		{"POST", "/v1/sessions", with(some, "agent", object{"type": "agent", "id": agent, "version": 9}), 404, "9"},
		{"POST", "/v1/sessions", with(some, "agent", object{"type": "agent", "id": agent, "system": "x"}), 400, "agent_with_overrides"},
		{"POST", "/v1/sessions", with(some, "agent", object{"type": "x", "id": agent}), 400, "agent.type"},
		{"POST", "/v1/sessions", with(some, "resources", []any{object{"type": "folder"}}), 400, "resources.0.type"},
		{"POST", "/v1/sessions", with(some, "resources", []any{1}), 400, "resources.0"},
		{"POST", "/v1/sessions", with(some, "vault_ids", []any{"vlt_x"}), 404, "vlt_x"},
		{"POST", "/v1/sessions", with(some, "budget", object{"type": "limit"}), 400, "budget"},
		{"POST", "/v1/sessions", with(some, "title", strings.Repeat("t", 501)), 400, "title"},
		{"POST", "/v1/sessions", with(some, "initial_events", []any{object{"type": "user.interrupt"}}), 400, "initial_events.0"},
		{"GET", "/v1/sessions?statuses=x", nil, 400, "statuses"},
		{"GET", "/v1/sessions?order=x", nil, 400, "order"},
		{"GET", "/v1/sessions/sesn_none", nil, 404, "sesn_none"},
		{"POST", at, object{"vault_ids": []any{}}, 400, "vaults"},
		{"POST", at, object{"agent": object{"tools": []any{object{"type": "x"}}}}, 400, "tools.0"},
		{"POST", at + "/events", object{"events": []any{}}, 400, "events"},
		{"POST", at + "/events", event(object{"type": "agent.message"}), 400, "agent.message"},
		{"POST", at + "/events", event(object{"type": "user.tool_result", "tool_use_id": "x"}), 400, "self-hosted"},
		{"POST", at + "/events", message(), 400, "empty"},
		{"POST", at + "/events", message(object{"type": "text"}), 400, "text"},
		{"POST", at + "/events", message(object{"type": "text", "text": "x", "nope": 1}), 400, "nope"},
		{"POST", at + "/events", message(object{"type": "image", "source": object{"type": "url", "url": "https://x"}}), 400, "base64"},
		{"POST", at + "/events", picture("!"), 400, "base64"},
		{"POST", at + "/events", picture("aGk="), 400, "text/plain"},
		{"POST", at + "/events", message(object{"type": "document", "source": object{"type": "base64"}}), 400, "plain text"},
		{"POST", at + "/events", event(confirms("sevt_x", "allow")), 404, "sevt_x"},
		{"POST", at + "/events", event(confirms("x", "maybe")), 400, "result"},
		{"POST", at + "/events", event(with(confirms("x", "allow"), "deny_message", "y")), 400, "deny_message"},
		{"POST", at + "/events", outcome(object{"type": "file", "file_id": "f"}, 1), 400, "file"},
		{"POST", at + "/events", outcome(object{"type": "text", "content": "c"}, 21), 400, "20"},
		{"POST", at + "/events", event(object{"type": "user.interrupt", "session_thread_id": "sthr_x"}), 400, "thread"},
		{"GET", at + "/events?limit=1001", nil, 400, "limit"},
		{"GET", at + "/events/stream?event_deltas[]=user.message", nil, 400, "event_deltas"},
		{"GET", at + "/threads/sthr_x", nil, 404, "sthr_x"},
		{"GET", at + "/threads/sthr_x/events", nil, 404, "sthr_x"},
		{"POST", at + "/threads/sthr_" + session + "/archive", nil, 409, "own thread"},
		{"GET", "/v1/tunnels", nil, 404, "MANAGED.md"},
	} {
		status, message := h.problem(tc.method, tc.path, tc.body)
		if status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%s %s %v: %d %s, want %d with %q", tc.method, tc.path, tc.body, status, message, tc.status, tc.want)
		}
	}
}

// TestNoFaults checks that no request that is wrong somewhere is answered as a fault of the server.
func TestNoFaults(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	bodies := map[string]object{
		"/v1/agents":       with(with(someAgent, "metadata", object{"a": "b"}), "model", object{"id": "script"}),
		"/v1/environments": someEnv,
		"/v1/sessions": {
			"agent": object{"type": "agent_with_overrides", "id": agent, "tools": someAgent["tools"]}, "environment_id": env,
			"metadata":       object{"a": "b"},
			"initial_events": []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: x"}}}},
		},
		"/v1/sessions/" + session + "/events": {"events": []any{
			object{"type": "user.define_outcome", "description": "d", "rubric": object{"type": "text", "content": "c"}},
			object{"type": "user.custom_tool_result", "custom_tool_use_id": "x", "content": []any{object{"type": "text", "text": "x"}}},
		}},
	}
	store, vault := h.made("/v1/memory_stores", object{"name": "n"}), h.made("/v1/vaults", object{"display_name": "n"})
	auth := object{"type": "mcp_oauth", "mcp_server_url": "https://a.example", "access_token": "t", "expires_at": "2030-01-01T00:00:00Z"}
	memory := "/v1/memory_stores/" + store + "/memories"
	bodies["/v1/memory_stores"] = object{"name": "n", "description": "d", "metadata": object{"a": "b"}}
	bodies[memory] = object{"path": "/a", "content": "x"}
	bodies[memory+"/"+h.made(memory, object{"path": "/b", "content": "x"})] = object{
		"content": "y", "precondition": object{"type": "content_sha256", "content_sha256": strings.Repeat("0", 64)},
	}
	bodies["/v1/vaults"] = object{"display_name": "n", "metadata": object{"a": "b"}}
	bodies["/v1/vaults/"+vault+"/credentials"] = object{"auth": auth, "display_name": "n"}
	bodies["/v1/sessions"]["resources"] = []any{
		object{"type": "memory_store", "memory_store_id": store, "access": "read_only"},
		object{"type": "github_repository", "url": "https://127.0.0.1/a", "checkout": object{
			"type": "branch",
			"name": "b",
		}, "authorization_token": "t"},
	}
	bodies["/v1/sessions/"+session+"/resources"] = object{"type": "file", "file_id": h.uploaded("a", "a"), "mount_path": "/workspace/a"}
	r := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		for path, body := range bodies {
			raw, err := json.Marshal(spoilt(r, body))
			if err != nil {
				t.Fatal(err)
			}
			if status, text := h.do("POST", path, string(raw)); status >= 500 {
				t.Errorf("POST %s %s: %d %s", path, raw, status, text)
			}
		}
	}
}

// spoilt is a value with something wrong in one place.
func spoilt(r *rand.Rand, v any) any {
	others := []any{nil, true, -1, 1e300, "", "x\x00", []any{}, []any{nil}, object{}, object{"type": 1}, object{"type": "custom"}}
	switch v := v.(type) {
	case object:
		out := object{}
		n, i := r.IntN(len(v)+1), 0
		for key, value := range v {
			if out[key] = value; i == n {
				out[key] = spoilt(r, value)
			}
			i++
		}
		if n == len(v) {
			out["other"] = others[r.IntN(len(others))]
		}
		return out
	case []any:
		if len(v) > 0 && r.IntN(4) > 0 {
			out := append([]any{}, v...)
			i := r.IntN(len(v))
			out[i] = spoilt(r, v[i])
			return out
		}
	}
	return others[r.IntN(len(others))]
}

// TestBodies checks that no endpoint takes a body that it does not know, also where it needs none.
func TestBodies(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	env := h.made("/v1/environments", elsewhere)
	deployment := h.made("/v1/deployments", object{
		"name": "d", "agent": h.made("/v1/agents", someAgent), "environment_id": h.made("/v1/environments", someEnv),
		"initial_events": []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: x"}}}},
	})
	for _, endpoint := range managed.Endpoints() {
		path, is := strings.CutPrefix(endpoint, "POST ")
		if !is || strings.HasPrefix(path, "/v1/files") || strings.HasPrefix(path, "/v1/skills") {
			continue
		}
		path = strings.ReplaceAll(path, "{environment}", env)
		if strings.HasPrefix(path, "/v1/deployments") {
			path = strings.ReplaceAll(path, "{id}", deployment)
		}
		for _, body := range []string{"{", "[]", `"x"`, "null", "1", `{"zzz":1}`, "{}{}", "\xff\xfe{}", strings.Repeat("[", 20_000)} {
			status, text := h.do("POST", path, body)
			missing := status == http.StatusNotFound && !strings.HasPrefix(path, "/v1/deployments")
			if status != http.StatusBadRequest && !missing {
				t.Errorf("%s with %.20s: %d %s", path, body, status, text)
			}
		}
	}
	if v := h.must("GET", "/v1/deployment_runs", nil); len(v["data"].([]any)) > 0 {
		t.Error(v)
	}
	for _, body := range []any{nil, "{}", " {} "} {
		h.must("POST", "/v1/deployments/"+deployment+"/run", body)
	}
}

// TestMistakesAreNamed checks that an error has the full path of the wrong field.
func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	agent, env := h.made("/v1/agents", someAgent), h.made("/v1/environments", someEnv)
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	for name, tc := range map[string]struct {
		path, body, field string
	}{
		"config":           {"/v1/environments", `{"name":"x","config":{"type":"cloud","a":1}}`, "config.a"},
		"networking":       {"/v1/environments", `{"name":"x","config":{"type":"cloud","networking":{"type":7}}}`, "config.networking.type"},
		"a tool":           {"/v1/agents", `{"name":"x","model":"m","tools":[{"type":"custom","b":1}]}`, "tools.0.b"},
		"model":            {"/v1/agents", `{"name":"x","model":{"id":"m","spead":"fast"}}`, "model.spead"},
		"another model":    {"/v1/agents/" + agent, `{"version":1,"model":{"id":"m","spead":"fast"}}`, "model.spead"},
		"metadata":         {"/v1/agents/" + agent, `{"version":1,"metadata":{"a":7}}`, "metadata.a"},
		"overrides":        {"/v1/sessions", `{"agent":{"type":"agent","id":"` + agent + `","tools":[{"tipe":"x"}]},"environment_id":"` + env + `"}`, "agent.tools.0.tipe"},
		"an event":         {"/v1/sessions/" + session + "/events", `{"events":[{"type":"user.message","contents":[]}]}`, "events.0.contents"},
		"a block":          {"/v1/sessions/" + session + "/events", `{"events":[{"type":"user.message","content":[{"type":"text","text":7}]}]}`, "events.0.content.0.text"},
		"an outcome":       {"/v1/sessions/" + session + "/events", `{"events":[{"type":"user.define_outcome","rubric":{"typ":"text"}}]}`, "events.0.rubric.typ"},
		"a resource":       {"/v1/sessions", `{"agent":"` + agent + `","environment_id":"` + env + `","resources":[{"type":"file","file_id":7}]}`, "resources.0.file_id"},
		"an initial event": {"/v1/deployments", `{"name":"x","agent":"` + agent + `","environment_id":"` + env + `","initial_events":[{"type":"user.message","content":[{"tipe":"text"}]}]}`, "initial_events.0.content.0.tipe"},
	} {
		status, text := h.do("POST", tc.path, tc.body)
		if status != http.StatusBadRequest || !strings.Contains(text, `"field":"`+tc.field+`"`) || !strings.Contains(text, `"message":"`+tc.field+": ") {
			t.Errorf("%s: %d %s, wanted %s", name, status, text, tc.field)
		}
	}
	if status, text := h.do("GET", "/v1/agents?limit=1&limit=2", nil); status != http.StatusBadRequest || !strings.Contains(text, "more than once") {
		t.Error(status, text)
	}
}

// TestNames checks that a name is one line without hidden characters.
func TestNames(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	deployment := object{
		"agent": h.made("/v1/agents", someAgent), "environment_id": h.made("/v1/environments", someEnv),
		"initial_events": []any{object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: x"}}}},
	}
	for path, body := range map[string]object{
		"/v1/agents": someAgent, "/v1/environments": someEnv, "/v1/deployments": deployment, "/v1/vaults": {}, "/v1/memory_stores": {},
	} {
		field := map[bool]string{true: "display_name", false: "name"}[path == "/v1/vaults"]
		id := h.made(path, with(body, field, "Größe 1"))
		for _, name := range []string{"a\nb", "a\x00", "a\u202eb", "\u200b"} {
			for _, at := range []string{path, path + "/" + id} {
				said := with(body, field, name)
				if at != path {
					said = object{field: name}
				}
				if status, message := h.problem("POST", at, said); status != http.StatusBadRequest || !strings.Contains(message, "one line") {
					t.Errorf("%s %q: %d %s", at, name, status, message)
				}
			}
		}
	}
}

// TestMethods checks that a path says which methods it takes.
func TestMethods(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for _, tc := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"PUT", "/v1/agents", 405, "this path takes GET, HEAD, POST"},
		{"PATCH", "/v1/sessions/x/events", 405, "this path takes GET, HEAD, POST"},
		{"DELETE", "/v1/deployments/x/run", 405, "this path takes POST"},
		{"GET", "/v1/chat/completions", 405, "this path takes POST"},
		{"PUT", "/v1/nothing", 404, "MANAGED.md"},
		{"PUT", "/nothing", 404, "openapi.json"},
	} {
		if status, message := h.problem(tc.method, tc.path, object{}); status != tc.status || !strings.Contains(message, tc.want) {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
}

// TestTenants checks that no tenant sees another's objects, nor whether they exist.
func TestTenants(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	red, blue := h.as("ann", "red"), h.as("bob", "blue")
	agent, env := red.made("/v1/agents", someAgent), red.made("/v1/environments", someEnv)
	session := red.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	event := object{"events": []any{object{"type": "user.interrupt"}}}
	for _, tc := range []struct {
		method, path string
		body         any
	}{
		{"GET", "/v1/agents/" + agent, nil},
		{"POST", "/v1/agents/" + agent, object{"name": "x"}},
		{"POST", "/v1/agents/" + agent + "/archive", nil},
		{"GET", "/v1/agents/" + agent + "/versions", nil},
		{"GET", "/v1/environments/" + env, nil},
		{"DELETE", "/v1/environments/" + env, nil},
		{"GET", "/v1/sessions/" + session, nil},
		{"POST", "/v1/sessions/" + session, object{"title": "x"}},
		{"POST", "/v1/sessions/" + session + "/archive", nil},
		{"DELETE", "/v1/sessions/" + session, nil},
		{"GET", "/v1/sessions/" + session + "/events", nil},
		{"POST", "/v1/sessions/" + session + "/events", event},
		{"GET", "/v1/sessions/" + session + "/events/stream", nil},
		{"GET", "/v1/sessions/" + session + "/threads", nil},
		{"GET", "/v1/sessions/" + session + "/threads/sthr_" + session, nil},
	} {
		if status, message := blue.problem(tc.method, tc.path, tc.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, message)
		}
	}
	for _, path := range []string{"/v1/agents", "/v1/environments", "/v1/sessions"} {
		if _, text := blue.do("GET", path, nil); text != `{"data":[],"next_page":null}` {
			t.Errorf("GET %s: another tenant sees %s", path, text)
		}
		if _, text := red.do("GET", path, nil); !strings.Contains(text, `"id":`) {
			t.Errorf("GET %s: the tenant sees %s", path, text)
		}
	}
	other := blue.made("/v1/environments", someEnv)
	if status, message := blue.problem(
		"POST",
		"/v1/sessions",
		object{"agent": agent, "environment_id": other},
	); status != http.StatusNotFound {
		t.Errorf("a session with the agent of another tenant: %d %s", status, message)
	}
}

// TestModels checks that a model without a provider stands for the operator's, or is refused.
func TestModels(t *testing.T) {
	for operators, status := range map[string]int{"script": http.StatusOK, "": http.StatusBadRequest} {
		t.Run("operator's "+operators, func(t *testing.T) {
			for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"} {
				if value, set := os.LookupEnv(name); set {
					t.Setenv(name, value)
					if err := os.Unsetenv(name); err != nil {
						t.Fatal(err)
					}
				}
			}
			h := newHouse(t, func(s *server.Server) { s.Options.Model = operators })
			got, text := h.do("POST", "/v1/agents", with(someAgent, "model", "claude-opus-5-5"))
			if got != status {
				t.Errorf("%d %s, want %d", got, text, status)
			}
			if got, text := h.do(
				"POST",
				"/v1/agents",
				someAgent,
			); got != http.StatusOK ||
				!strings.Contains(text, fmt.Sprintf(`"model":{"id":%q}`, "script")) {
				t.Errorf("%d %s", got, text)
			}
		})
	}
}

// TestRoster checks that an agent has its metadata and its roster of agents in responses, even if both are empty, and
// that a response can be sent back.
func TestRoster(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	roster := func(a object) object {
		t.Helper()
		return a["multiagent"].(object)["agents"].([]any)[0].(object)
	}
	plain := h.must("POST", "/v1/agents", someAgent)
	if m, told := plain["metadata"].(object); !told || len(m) != 0 || plain["multiagent"] != nil {
		t.Errorf("%v", plain)
	}
	crew := h.must("POST", "/v1/agents", with(someAgent, "multiagent", object{"type": "coordinator", "agents": []any{object{"type": "self"}}}))
	path := "/v1/agents/" + crew["id"].(string)
	for version := 1.0; version <= 2; version++ {
		if e := roster(crew); e["type"] != "agent" || e["id"] != crew["id"] || e["version"] != version || crew["version"] != version {
			t.Errorf("version %v: %v", version, crew)
		}
		crew = h.must("POST", path, object{"multiagent": crew["multiagent"], "system": "Be brief."})
	}
	if crew["version"] != 2.0 {
		t.Errorf("nothing was changed, and yet it is version %v", crew["version"])
	}
	session := h.must("POST", "/v1/sessions", object{"agent": crew["id"], "environment_id": h.made("/v1/environments", object{"name": "e"})})
	if e := roster(session["agent"].(object)); e["type"] != "agent" || e["id"] != crew["id"] || e["name"] != crew["name"] {
		t.Errorf("in a session: %v", session["agent"])
	}
}

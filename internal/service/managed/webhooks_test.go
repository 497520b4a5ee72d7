package managed_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// news is a receiver of webhooks, which takes all.
type news struct {
	t    *testing.T
	h    *httptest.Server
	come chan [2]string // id of what it is about, and type
	all  [][2]string
}

func newNews(t *testing.T) *news {
	t.Helper()
	n := &news{t: t, come: make(chan [2]string, 1000)}
	n.h = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var e struct{ Data struct{ ID, Type string } }
		raw, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(raw, &e) != nil {
			t.Errorf("%v %s", err, raw)
		}
		n.come <- [2]string{e.Data.ID, e.Data.Type}
	}))
	t.Cleanup(n.h.Close)
	return n
}

// of waits for a type of something, and returns all types of that so far but those of the server's
// own API.
func (n *news) of(id, kind string) string {
	n.t.Helper()
	for late := time.After(testkit.Patience); !slices.Contains(n.all, [2]string{id, kind}); {
		select {
		case e := <-n.come:
			n.all = append(n.all, e)
		case <-late:
			n.t.Fatalf("no %s of %s: %v", kind, id, n.all)
		}
	}
	var out []string
	for _, e := range n.all {
		if e[0] == id && !strings.HasPrefix(e[1], "task.") {
			out = append(out, e[1])
		}
	}
	return strings.Join(out, " ")
}

// TestNews checks the notices to webhooks about agents, sessions and deployments.
func TestNews(t *testing.T) {
	t.Parallel()
	at := newClock("2026-05-04T08:59:30Z")
	h := newHouse(t, func(s *server.Server) {
		s.Clock, s.WebhookTo = at, netguard.Hosts{"127.0.0.1"}
	})
	n := newNews(t)
	hook := h.made("/v1/organizations/webhooks", object{"url": n.h.URL, "enabled_events": []any{"*"}})
	policy := object{"permission_policy": object{"type": "always_ask"}}
	asks := with(someAgent, "tools", []any{object{"type": "agent_toolset_20260401", "default_config": policy}})
	agent, env := h.made("/v1/agents", asks), h.made("/v1/environments", someEnv)
	h.made("/v1/agents/"+agent, object{"description": "d"})
	h.made("/v1/agents/"+agent, object{"description": "d"}) // changes nothing

	// A session without a message has not run.
	session := h.made("/v1/sessions", object{"agent": agent, "environment_id": env})
	say := func(text string) object {
		return object{"type": "user.message", "content": []any{object{"type": "text", "text": text}}}
	}
	post := func(events ...any) {
		t.Helper()
		if status, text := h.do("POST", "/v1/sessions/"+session+"/events", object{"events": events}); status != http.StatusOK {
			t.Fatal(text)
		}
	}
	n.of(session, "task.idle")
	post(say("bash: echo asked"))
	n.of(session, "session.requires_action")
	type list struct{ Data []struct{ ID, Type string } }
	for _, e := range ask[list](h, "GET", "/v1/sessions/"+session+"/events", nil).Data {
		if e.Type == "agent.tool_use" {
			post(object{"type": "user.tool_confirmation", "tool_use_id": e.ID, "result": "allow"})
		}
	}
	h.said(session)
	h.made("/v1/sessions/"+session, object{"title": "t"})
	for status := 0; status != http.StatusOK; {
		status, _ = h.do("POST", "/v1/sessions/"+session+"/archive", nil)
	}
	n.of(session, "session.archived")
	got := n.of(session, "session.status_terminated")
	begin := "session.created session.status_run_started session.status_idled session.requires_action session.status_run_started"
	if !strings.HasPrefix(got, begin) ||
		strings.Count(got, "session.updated") != 1 || strings.Count(got, "session.status_idled") != 2 {
		t.Errorf("of the session: %s", got)
	}

	d := h.made("/v1/deployments", with(someDeployment(h), "schedule", cron("0 * * * *", "UTC")))
	at.set("2026-05-04T09:00:00Z")
	run := h.runs("deployment_id="+d, 1)[0]
	h.made("/v1/deployments/"+d+"/pause", nil)
	h.made("/v1/deployments/"+d+"/unpause", nil)
	at.set("2026-05-04T09:01:00Z")
	h.made("/v1/deployments/"+d, object{"name": "other"})
	h.made("/v1/deployments/"+d+"/archive", nil)
	h.do("DELETE", "/v1/environments/"+env, nil)
	vault := h.made("/v1/vaults", object{"display_name": "v"})
	auth := object{"type": "static_bearer", "mcp_server_url": "https://mcp.example.com", "token": "a-token-of-nobody"}
	credential := h.made("/v1/vaults/"+vault+"/credentials", object{"auth": auth})
	h.made("/v1/vaults/"+vault, object{"display_name": "w"}) // the wire has no event for it
	h.made("/v1/vaults/"+vault+"/archive", nil)
	memory := h.made("/v1/memory_stores", object{"name": "m"})
	h.do("DELETE", "/v1/memory_stores/"+memory, nil)
	for id, want := range map[string]string{
		agent:  "agent.created agent.updated",
		env:    "environment.created environment.deleted",
		d:      "deployment.created deployment.paused deployment.unpaused deployment.updated deployment.archived",
		run.ID: "deployment_run.succeeded",

		vault:      "vault.created vault.archived",
		credential: "vault_credential.created vault_credential.archived",
		memory:     "memory_store.created memory_store.deleted",
	} {
		all := strings.Fields(want)
		if got := n.of(id, all[len(all)-1]); got != want {
			t.Errorf("of %s: %s, want %s", id, got, want)
		}
	}
	tenant := h.as("ann", "acme")
	if status, _ := tenant.problem("GET", "/v1/organizations/webhooks/"+hook, nil); status != http.StatusForbidden {
		t.Errorf("an operator: %d", status)
	}
	private := object{"url": "https://10.0.0.1", "enabled_events": []any{"*"}}
	if status, message := h.problem("POST", "/v1/organizations/webhooks", private); status != http.StatusBadRequest {
		t.Errorf("a private address: %d %s", status, message)
	}
}

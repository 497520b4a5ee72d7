package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/service/managed"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// still is a clock that stands still.
type still time.Time

func (c still) Now() time.Time { return time.Time(c) }

func (c still) At(time.Time) (<-chan time.Time, func()) { return nil, func() {} }

// TestKillWhenDue kills the real server while many runs are due, again and again. Each deployment has one run for that
// time, with one session, and its agent gets its first message once.
func TestKillWhenDue(t *testing.T) {
	t.Parallel()
	const many = 20
	p := newProcess(t)
	// The deployments are made an hour ago, so all are due when the server starts.
	h := newHouse(t, func(s *server.Server) {
		s.Clock = still(time.Now().Add(-time.Hour))
		managed.Join(s)
	})
	var agent, env struct{ ID string }
	h.call("POST", "/v1/agents", map[string]any{"name": "a", "model": "script"}, http.StatusOK, &agent)
	h.call("POST", "/v1/environments", map[string]any{"name": "e"}, http.StatusOK, &env)
	say := func(text string) map[string]any {
		return map[string]any{"type": "user.message", "content": []any{map[string]any{"type": "text", "text": text}}}
	}
	made := map[string]bool{}
	for i := range many {
		var d struct{ ID string }
		h.call("POST", "/v1/deployments", map[string]any{
			"name": fmt.Sprint(i), "agent": agent.ID, "environment_id": env.ID, "initial_events": []any{say("say: one"), say("say: two")},
			// On one day of the year, so that no other time is due meanwhile.
			"schedule": map[string]any{"type": "cron", "timezone": "UTC", "expression": time.Now().UTC().Add(-30 * time.Minute).Format("4 15 2 1 *")},
		}, http.StatusOK, &d)
		made[d.ID] = true
	}
	h.close()
	p.home = h.dir
	if err := os.WriteFile(filepath.Join(p.state(), "server.token"), []byte(ownersToken), 0o600); err != nil {
		t.Fatal(err)
	}
	type run struct {
		Deployment string `json:"deployment_id"`
		Session    string `json:"session_id"`
	}
	var list struct{ Data []run }
	read := func(path string, into any) {
		t.Helper()
		if status, raw, err := p.send("GET", path, "", nil); err != nil || status != http.StatusOK || json.Unmarshal(raw, into) != nil {
			t.Fatalf("GET %s: %d %s %v", path, status, raw, err)
		}
	}
	var seen []int
	for range kills(t) {
		p.start("--at-once", "4")
		<-time.After(time.Duration(rand.IntN(30)) * time.Millisecond) //nolint:gosec // any moment
		read("/v1/deployment_runs?limit=1000", &list)
		seen = append(seen, len(list.Data))
		p.kill()
	}
	t.Logf("runs at the kills: %v", seen)
	p.start()
	wait := func(so func() bool) {
		t.Helper()
		testkit.WaitFor(t, "all runs", so, func() string { return fmt.Sprintf("%d runs", len(list.Data)) }, p.printed.String)
	}
	wait(func() bool { read("/v1/deployment_runs?limit=1000", &list); return len(list.Data) >= many })
	var sessions struct{ Data []struct{ ID string } }
	if read("/v1/sessions?limit=100", &sessions); len(sessions.Data) != many || len(list.Data) != many {
		t.Errorf("%d sessions of %d runs for %d deployments", len(sessions.Data), len(list.Data), many)
	}
	for _, r := range list.Data {
		if !made[r.Deployment] || r.Session == "" {
			t.Errorf("a run too many, or one without a session: %+v", r)
		}
		delete(made, r.Deployment)
		var said string
		wait(func() bool {
			var events struct {
				Data []struct {
					Type    string
					Content []struct{ Text string }
				}
			}
			said = ""
			read("/v1/sessions/"+r.Session+"/events?limit=1000", &events)
			for _, e := range events.Data {
				if e.Type == "user.message" {
					said += e.Content[0].Text + ";"
				}
			}
			return strings.Contains(said, "two")
		})
		if said != "say: one;say: two;" {
			t.Errorf("the agent of %s was told %q", r.Session, said)
		}
	}
}

package managed_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// clock is one that is set by hand.
type clock struct {
	mu    sync.Mutex
	now   time.Time
	waits map[chan time.Time]time.Time
}

func newClock(at string) *clock {
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	return &clock{now: now, waits: map[chan time.Time]time.Time{}}
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) At(t time.Time) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := make(chan time.Time, 1)
	if c.waits[due] = t; !t.After(c.now) {
		due <- c.now
	}
	return due, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waits, due)
	}
}

// set sets the clock.
func (c *clock) set(at string) {
	now, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
	for due, t := range c.waits {
		if !t.After(now) {
			select {
			case due <- now:
			default:
			}
		}
	}
}

// seen waits until the scheduler has seen its next time.
func (c *clock) seen(t *testing.T) {
	t.Helper()
	seen := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, until := range c.waits {
			if !until.After(c.now) {
				return false
			}
		}
		return len(c.waits) > 0
	}
	testkit.WaitFor(t, "somebody to look at the clock", seen)
}

// deployment and run have the fields that the tests look at.
type deployment struct {
	ID, Status string
	Agent      struct{ Version int }
	Schedule   *struct {
		LastRunAt *string  `json:"last_run_at"`
		Upcoming  []string `json:"upcoming_runs_at"`
	}
	Paused *struct {
		Type  string
		Error *struct{ Type string }
	} `json:"paused_reason"`
	ArchivedAt *string `json:"archived_at"`
}

type run struct {
	ID         string
	Deployment string `json:"deployment_id"`
	Session    string `json:"session_id"`
	Error      *struct{ Type, Message string }
	Trigger    struct {
		Type string
		Due  string `json:"scheduled_at"`
	} `json:"trigger_context"`
}

// ask decodes the answer of a request that is served.
func ask[T any](h *house, method, path string, body any) (v T) {
	h.t.Helper()
	status, text := h.do(method, path, body)
	if err := json.Unmarshal([]byte(text), &v); err != nil || status != http.StatusOK {
		h.t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return v
}

// runs waits until there are so many runs that a query finds, the newest first.
func (h *house) runs(query string, n int) []run {
	h.t.Helper()
	type list struct{ Data []run }
	var got []run
	testkit.WaitFor(h.t, fmt.Sprintf("%d runs of %q", n, query), func() bool {
		got = ask[list](h, "GET", "/v1/deployment_runs?"+query, nil).Data
		return len(got) == n
	}, func() string { return fmt.Sprintf("%+v", got) })
	return got
}

// keyed sends a request under an idempotency key.
func (h *house) keyed(method, path, key string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.h.URL+path, http.NoBody)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", h.token)
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		h.t.Fatalf("%s %s: %d", method, path, res.StatusCode)
	}
}

// said waits until a session has done something and is idle, and returns its events, except statuses and spans.
func (h *house) said(session string) string {
	h.t.Helper()
	type list struct{ Data []struct{ Type string } }
	var out []string
	testkit.WaitFor(h.t, "session "+session+" to be idle", func() (idle bool) {
		out = nil
		for _, e := range ask[list](h, "GET", "/v1/sessions/"+session+"/events?limit=1000", nil).Data {
			idle = e.Type == "session.status_idle"
			if !strings.HasPrefix(e.Type, "session.") && !strings.HasPrefix(e.Type, "span.") {
				out = append(out, e.Type)
			}
		}
		return idle
	}, func() string { return fmt.Sprint(out) })
	return strings.Join(out, " ")
}

func someDeployment(h *house) object {
	return object{
		"name": "nightly", "agent": h.made("/v1/agents", someAgent), "environment_id": h.made("/v1/environments", someEnv),
		"initial_events": []any{
			object{"type": "system.message", "content": []any{object{"type": "text", "text": "Be brief."}}},
			object{"type": "user.message", "content": []any{object{"type": "text", "text": "say: done"}}},
		},
	}
}

func cron(expression, zone string) object {
	return object{"type": "cron", "expression": expression, "timezone": zone}
}

// TestSummerTime checks when schedules run on the days when the clocks change.
func TestSummerTime(t *testing.T) {
	t.Parallel()
	at := newClock("2026-03-07T22:00:00Z")
	h := newHouse(t, func(s *server.Server) { s.Clock = at })
	some := someDeployment(h)
	for _, tc := range []struct{ expression, zone, now, want string }{
		// In New York, 02:00 to 03:00 is missing on March 8, and 01:00 to 02:00 comes twice on November 1.
		{"30 2 * * *", "America/New_York", "2026-03-07T22:00:00Z", "03-08T07:00 03-09T06:30"}, // three o'clock, the first moment after
		{"30 2,3 * * *", "America/New_York", "2026-03-07T22:00:00Z", "03-08T07:00 03-08T07:30"},
		{"0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", "03-08T06:00 03-08T07:00"},
		{"30 1 * * *", "America/New_York", "2026-10-31T22:00:00Z", "11-01T05:30 11-02T06:30"}, // the first of the two
		{"*/30 * * * *", "America/New_York", "2026-11-01T05:15:00Z", "11-01T05:30 11-01T06:00"},
		{"0 */1 * * *", "America/New_York", "2026-11-01T04:30:00Z", "11-01T05:00 11-01T06:00"},
		{"15 0-2 * * *", "America/New_York", "2026-11-01T05:00:00Z", "11-01T05:15 11-01T07:15"},
		// Lord Howe moves by half an hour: 01:30 to 02:00 comes twice on April 5.
		{"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T12:00:00Z", "04-04T14:45 04-05T15:15"},
		// Days of the week count from 0 to 7, and either kind of day counts.
		{"0 9 * * 7", "UTC", "2026-03-07T22:00:00Z", "03-08T09:00 03-15T09:00"},
		{"0 9 1 * 1", "UTC", "2026-03-25T22:00:00Z", "03-30T09:00 04-01T09:00"},
	} {
		at.set(tc.now)
		d := ask[deployment](h, "POST", "/v1/deployments", with(some, "schedule", cron(tc.expression, tc.zone)))
		var got []string
		for _, text := range d.Schedule.Upcoming[:2] {
			got = append(got, strings.TrimSuffix(strings.TrimPrefix(text, "2026-"), ":00.000Z"))
		}
		if strings.Join(got, " ") != tc.want || len(d.Schedule.Upcoming) != 5 {
			t.Errorf("%s in %s: %v, want %s", tc.expression, tc.zone, got, tc.want)
		}
		h.do("POST", "/v1/deployments/"+d.ID+"/archive", nil)
	}
}

// TestSchedulesAreStrict checks invalid schedules.
func TestSchedulesAreStrict(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	some := someDeployment(h)
	for _, tc := range []struct {
		field string
		value any
		why   string
	}{
		{"schedule", cron("@daily", "UTC"), "schedule.expression"},
		{"schedule", cron("-1 * * * *", "UTC"), `"-1" is not a part of a field`},
		{"schedule", cron("1- * * * *", "UTC"), `"1-" is not a part of a field`},
		{"schedule", cron("0,5-1 * * * *", "UTC"), "the range 5-1 ends before it begins"},
		{"schedule", cron("0 9 * * 5-1/2", "UTC"), "the range 5-1/2 ends before it begins"},
		{"name", "two\nlines", "one line"},
		{"schedule", cron("0 0 0 * * *", "UTC"), "schedule.expression"},
		{"schedule", cron("0 0 L * *", "UTC"), "schedule.expression"},
		{"schedule", cron("0 0 ? * *", "UTC"), "schedule.expression"},
		{"schedule", cron("TZ=UTC 0 9 * *", "UTC"), "schedule.expression"},
		{"schedule", cron("0 0 30 2 *", "UTC"), "never comes"},
		{"schedule", cron("0 24 * * *", "UTC"), "schedule.expression"},
		{"schedule", cron("0 9 * * *", "Local"), "schedule.timezone"},
		{"schedule", cron("0 9 * * *", "Mars/Olympus"), "schedule.timezone"},
		{"schedule", cron("0 9 * * *", "../../etc/passwd"), "schedule.timezone"},
		{"schedule", with(cron("0 9 * * *", "UTC"), "type", "interval"), "schedule.type"},
		{"schedule", with(cron("0 9 * * *", "UTC"), "jitter", 3), "jitter"},
		{"name", "", "name"},
		{"initial_events", []any{}, "initial_events"},
		{"initial_events", []any{object{"type": "user.interrupt"}}, "initial_events.0.type"},
		{"agent", "agent_none", "agent"},
		{"agent", object{"type": "agent_with_overrides", "id": some["agent"], "system": "x"}, "agent"},
		{"environment_id", "env_none", "environment"},
		{"resources", []any{object{"type": "github_repository", "authorization_token": "t"}}, "authorization_token"},
		{"vault_ids", []any{"v"}, "vault"},
		{"budget", object{"type": "limit", "max_list_cost": object{"amount": "x", "currency": "USD"}}, "budget"},
		{"catch_up", true, "catch_up"},
	} {
		if status, message := h.problem("POST", "/v1/deployments", with(some, tc.field, tc.value)); status >= 500 ||
			status < 400 || !strings.Contains(message, tc.why) {
			t.Errorf("%s %v: %d %s", tc.field, tc.value, status, message)
		}
	}
}

// TestDeploymentsRun has a deployment run through its life.
func TestDeploymentsRun(t *testing.T) {
	t.Parallel()
	at := newClock("2026-05-04T08:59:30Z")
	h := newHouse(t, func(s *server.Server) { s.Clock = at })
	some := someDeployment(h)
	d := ask[deployment](h, "POST", "/v1/deployments", with(some, "schedule", cron("*/10 * * * *", "UTC")))
	path := "/v1/deployments/" + d.ID
	of := "deployment_id=" + d.ID
	at.set("2026-05-04T09:00:00Z")
	first := h.runs(of, 1)[0]
	if first.Trigger.Type != "schedule" || first.Trigger.Due != "2026-05-04T09:00:00.000Z" || first.Session == "" || first.Error != nil {
		t.Fatalf("%+v", first)
	}
	if said := h.said(first.Session); said != "system.message user.message agent.message" {
		t.Errorf("the session has %s", said)
	}
	s := ask[struct {
		Title      string
		Deployment string `json:"deployment_id"`
	}](h, "GET", "/v1/sessions/"+first.Session, nil)
	if s.Title != "nightly" || s.Deployment != d.ID {
		t.Errorf("%+v", s)
	}
	if list := ask[struct{ Data []struct{ ID string } }](h, "GET", "/v1/sessions?"+of, nil).Data; len(list) != 1 || list[0].ID != first.Session {
		t.Errorf("sessions of the deployment: %+v", list)
	}

	// Someone wants one, twice under the same key.
	h.runs(of+"&trigger_type=manual", 0)
	for range 2 {
		h.keyed("POST", path+"/run", "k")
	}
	if manual := h.runs(of+"&trigger_type=manual", 1); manual[0].Session == "" || manual[0].Trigger.Due != "" {
		t.Errorf("%+v", manual)
	}

	// A pause leaves runs out, and nothing is made up afterwards.
	d = ask[deployment](h, "POST", path+"/pause", nil)
	if d.Status != "paused" || d.Paused.Type != "manual" || len(d.Schedule.Upcoming) != 5 || *d.Schedule.LastRunAt != "2026-05-04T09:00:00.000Z" {
		t.Errorf("%+v %+v", d, d.Schedule)
	}
	at.set("2026-05-04T10:05:00Z")
	ask[deployment](h, "POST", path+"/run", nil)
	if d = ask[deployment](h, "POST", path+"/unpause", nil); d.Status != "active" || d.Paused != nil {
		t.Errorf("%+v", d)
	}
	at.set("2026-05-04T10:10:00Z")
	if got := h.runs(of+"&trigger_type=schedule", 2); got[0].Trigger.Due != "2026-05-04T10:10:00.000Z" {
		t.Errorf("%+v", got)
	}

	// A run that can't begin gives the reason why, and a deployment that can't recover pauses.
	h.do("POST", "/v1/agents/"+fmt.Sprint(some["agent"])+"/archive", nil)
	at.set("2026-05-04T10:20:00Z")
	failed := h.runs(of+"&has_error=true", 1)[0]
	if failed.Error.Type != "agent_archived_error" || failed.Session != "" {
		t.Errorf("%+v", failed)
	}
	d = ask[deployment](h, "GET", path, nil)
	if d.Status != "paused" || d.Paused.Type != "error" || d.Paused.Error.Type != "agent_archived_error" {
		t.Errorf("%+v", d)
	}
	if r := ask[run](h, "POST", path+"/run", nil); r.Error == nil || r.Error.Type != "agent_archived_error" {
		t.Errorf("%+v", r)
	}
	if got := ask[run](h, "GET", "/v1/deployment_runs/"+failed.ID, nil); got.ID != failed.ID {
		t.Errorf("%+v", got)
	}

	d = ask[deployment](h, "POST", path+"/archive", nil)
	if d.Status != "active" || d.ArchivedAt == nil || len(d.Schedule.Upcoming) != 0 {
		t.Errorf("%+v", d)
	}
	for _, what := range []string{"", "/pause", "/unpause", "/run"} {
		if status, message := h.problem("POST", path+what, object{}); status != http.StatusConflict {
			t.Errorf("%s of an archived deployment: %d %s", what, status, message)
		}
	}
	at.set("2026-05-05T00:00:00Z")
	h.runs(of+"&trigger_type=schedule", 3)
}

// TestRunsHaveReasons checks that a run that can't begin is there, with its reason.
func TestRunsHaveReasons(t *testing.T) {
	t.Parallel()
	at := newClock("2026-05-04T08:59:30Z")
	h := newHouse(t, func(s *server.Server) { s.Clock = at })
	some := with(someDeployment(h), "schedule", cron("0 * * * *", "UTC"))
	gone, archived := h.made("/v1/environments", someEnv), h.made("/v1/environments", someEnv)
	a := h.made("/v1/deployments", with(some, "environment_id", gone))
	b := h.made("/v1/deployments", with(some, "environment_id", archived))
	h.do("DELETE", "/v1/environments/"+gone, nil)
	h.do("POST", "/v1/environments/"+archived+"/archive", nil)
	tenant := h.as("ann", "acme")
	c := tenant.made("/v1/deployments", with(someDeployment(tenant), "schedule", cron("0 * * * *", "UTC")))
	if status, text := h.do("PUT", "/api/v1/tenants/acme", object{"per_hour": 1}); status != http.StatusOK {
		t.Fatal(text)
	}
	at.set("2026-05-04T09:00:00Z")
	tenant.runs("deployment_id="+c, 1)
	h.as("bob", "blue").runs("deployment_id="+c, 0) // of another tenant
	at.set("2026-05-04T10:00:00Z")
	got := map[string]string{}
	ran := slices.Concat(h.runs("deployment_id="+a, 1), h.runs("deployment_id="+b, 1), tenant.runs("deployment_id="+c+"&has_error=true", 1))
	for _, r := range ran {
		got[r.Deployment] = r.Error.Type
	}
	want := map[string]string{a: "environment_not_found_error", b: "environment_archived_error", c: "session_rate_limited_error"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
	if d := ask[deployment](tenant, "GET", "/v1/deployments/"+c, nil); d.Status != "active" {
		t.Errorf("a full quota pauses: %+v", d)
	}
	if status, _ := tenant.problem("GET", "/v1/deployments/"+a, nil); status != http.StatusNotFound {
		t.Errorf("another tenant's deployment: %d", status)
	}
}

// TestMissedRuns checks which runs a server makes up for after a rest.
func TestMissedRuns(t *testing.T) {
	t.Parallel()
	for _, skip := range []bool{false, true} {
		at := newClock("2026-05-04T08:30:00Z")
		h := newHouse(t, func(s *server.Server) { s.Clock, s.SkipMissed = at, skip })
		some := someDeployment(h)
		d := h.made("/v1/deployments", with(some, "schedule", cron("0 * * * *", "UTC")))
		at.set("2026-05-06T11:17:00Z") // as after a long sleep
		want := []string{"2026-05-06T11:00:00.000Z"}
		if skip {
			want = nil
		}
		at.seen(t)
		h.runs("deployment_id="+d, len(want))
		at.set("2026-05-06T12:00:03Z")
		got := h.runs("deployment_id="+d, len(want)+1)
		if got[0].Trigger.Due != "2026-05-06T12:00:00.000Z" || !skip && got[1].Trigger.Due != want[0] {
			t.Errorf("skip %v: %+v", skip, got)
		}
	}
}

package schedule_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/install/schedule"
	"github.com/inspan/inspan/internal/view/words"
)

func sum(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// byGitHub is a call as GitHub signs it.
func byGitHub(secret, event, body string) schedule.Call {
	h := http.Header{}
	h.Set("X-GitHub-Event", event)
	h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sum([]byte(secret), body)))
	return schedule.Call{Header: h, Body: []byte(body)}
}

// standard is a call as Standard Webhooks has it.
func standard(secret, id string, at time.Time, body string) schedule.Call {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	h, stamp := http.Header{}, strconv.FormatInt(at.Unix(), 10)
	h.Set("Webhook-Id", id)
	h.Set("Webhook-Timestamp", stamp)
	h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum(key, id+"."+stamp+"."+body)))
	return schedule.Call{Header: h, Body: []byte(body)}
}

// with is the call with another header.
func with(c schedule.Call, name, value string) schedule.Call {
	c.Header = c.Header.Clone()
	c.Header.Set(name, value)
	return c
}

// hooked is a schedule with a webhook for some events.
func (d *desk) hooked(events ...string) *schedule.Schedule {
	d.Helper()
	one := d.add(schedule.Schedule{Overlap: schedule.Queue, Hook: &schedule.Hook{Secret: schedule.NewSecret(), Events: events}})
	return &one
}

// calls sends a call, and checks the answer to the caller.
func (d *desk) calls(id string, c schedule.Call, want string) {
	d.Helper()
	if what, err := d.Called(d.Context(), id, c); what != want || err != nil {
		d.Errorf("%q, %v, want %q", what, err, want)
	}
}

// TestSignatures checks that only signed calls are taken, and that one that is not learns nothing.
func TestSignatures(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one, body, now := d.hooked(), `{"n": 1}`, d.at
	secret, stamp := one.Hook.Secret, strconv.FormatInt(now.Unix(), 10)
	signature := standard(secret, "m0", now, body).Header.Get("Webhook-Signature")
	for _, c := range []struct {
		name string
		call schedule.Call
		ok   bool
	}{
		{"GitHub", byGitHub(secret, "push", body), true},
		{"GitHub, another secret", byGitHub(secret+"x", "push", body), false},
		{"GitHub, another body", schedule.Call{Header: byGitHub(secret, "push", body).Header, Body: []byte(`{"n": 2}`)}, false},
		{"GitHub, no number", with(byGitHub(secret, "push", body), "X-Hub-Signature-256", "sha256=zz"), false},
		{"GitHub, empty", with(byGitHub(secret, "push", body), "X-Hub-Signature-256", "sha256="), false},
		{"GitHub, SHA-1", with(schedule.Call{Header: http.Header{}, Body: []byte(body)}, "X-Hub-Signature", "sha1=00"), false},
		{"standard", standard(secret, "m1", now, body), true},
		{"standard, of five minutes ago", standard(secret, "m2", now.Add(-5*time.Minute), body), true},
		{"standard, in five minutes", standard(secret, "m3", now.Add(5*time.Minute), body), true},
		{"standard, too old", standard(secret, "m4", now.Add(-5*time.Minute-time.Second), body), false},
		{"standard, too early", standard(secret, "m5", now.Add(5*time.Minute+time.Second), body), false},
		{"standard, another secret", standard(schedule.NewSecret(), "m6", now, body), false},
		{"standard, another id", with(standard(secret, "m7", now, body), "Webhook-Id", "m8"), false},
		{"standard, no id", standard(secret, "", now, body), false},
		{"standard, a long id", standard(secret, strings.Repeat("x", 257), now, body), false},
		{"standard, another time", with(standard(secret, "m9", now, body), "Webhook-Timestamp", strconv.FormatInt(now.Unix()+1, 10)), false},
		{"standard, no time", with(standard(secret, "m9", now, body), "Webhook-Timestamp", ""), false},
		{"standard, another version", with(standard(secret, "m0", now, body), "Webhook-Signature", "v2"+signature[2:]), false},
		{"standard, no version", with(standard(secret, "m0", now, body), "Webhook-Signature", strings.TrimPrefix(signature, "v1,")), false},
		{"standard, one of several", with(standard(secret, "m0", now, body), "Webhook-Signature", "v1,AAAA v1a,BBBB "+signature), true},
		{"Slack", with(with(schedule.Call{Header: http.Header{}, Body: []byte(body)}, "X-Slack-Request-Timestamp", stamp),
			"X-Slack-Signature", "v0="+hex.EncodeToString(sum([]byte(secret), "v0:"+stamp+":"+body))), false},
		{"Stripe", with(schedule.Call{Header: http.Header{}, Body: []byte(body)}, "Stripe-Signature",
			"t="+stamp+",v1="+hex.EncodeToString(sum([]byte(secret), stamp+"."+body))), false},
		{"standard, in the year 292277026596", with(standard(secret, "m9", now, body), "Webhook-Timestamp", "9223372036854775807"), false},
		{"neither", schedule.Call{Header: http.Header{}, Body: []byte(body)}, false},
	} {
		before := len(d.find(one.ID).Open)
		what, err := d.Called(t.Context(), one.ID, c.call)
		switch n := len(d.find(one.ID).Open) - before; {
		case c.ok && (err != nil || what != "the run begins" || n != 1):
			t.Errorf("%s: %q, %v, %d", c.name, what, err, n)
		case !c.ok && (!errors.Is(err, schedule.ErrSignature) || what != "" || n != 0):
			t.Errorf("%s: %q, %v, %d", c.name, what, err, n)
		}
	}
	d.add(schedule.Schedule{ID: "timed", Cron: "0 7 * * *"})
	for _, id := range []string{"gone", "timed", "../" + one.ID, ""} {
		_, err := d.Called(t.Context(), id, byGitHub(secret, "push", body))
		if !errors.Is(err, schedule.ErrSignature) || err.Error() != schedule.ErrSignature.Error() {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestEventOfCall checks the data that a run gets about the call that begins it.
func TestEventOfCall(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.hooked()
	d.calls(one.ID, standard(one.Hook.Secret, "m1", d.at, "{ \"n\" : 1,\n\"s\": \"a b\" }"), "the run begins")
	open := d.find(one.ID).Open
	if len(open) != 1 || string(open[0].Event) != `{"n":1,"s":"a b"}` {
		t.Errorf("%+v", open)
	}
	d.comes(d.at.Format(time.RFC3339))
	if past := d.find(one.ID).Past; len(past) != 1 || past[0].Event != nil {
		t.Errorf("the event is kept although it is over: %+v", past)
	}
}

// TestReplay checks that a call counts once a day, and remembers no more than 5000.
func TestReplay(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.hooked()
	secret := one.Hook.Secret
	began := d.at
	std, gh := standard(secret, "m1", began, `{"n":1}`), byGitHub(secret, "push", `{"n":1}`)
	for range 3 {
		d.calls(one.ID, std, map[bool]string{true: "it was taken before", false: "the run begins"}[len(d.find(one.ID).Seen) > 0])
	}
	d.calls(one.ID, gh, "the run begins") // in another form it is another call
	d.calls(one.ID, gh, "it was taken before")
	d.calls(one.ID, standard(secret, "m1", began.Add(time.Second), `{"n":2}`), "it was taken before") // the sender tries again
	d.comes(d.at.Format(time.RFC3339), d.at.Format(time.RFC3339))
	d.calls(one.ID, gh, "it was taken before") // also when its run has begun

	d.at = began.Add(24 * time.Hour)
	d.calls(one.ID, standard(secret, "m2", d.at, `{}`), "the run begins")
	d.calls(one.ID, gh, "it was taken before")
	d.at = d.at.Add(time.Second)
	d.calls(one.ID, standard(secret, "m3", d.at, `{}`), "the run begins")
	if seen := d.find(one.ID).Seen; len(seen) != 3 { // with the body that is signed without a time
		t.Errorf("calls of a day ago are remembered: %v", seen)
	}
	d.due()
	d.calls(one.ID, gh, "it was taken before") // nor may anybody send it a day later
	d.calls(one.ID, with(gh, "X-GitHub-Delivery", "other"), "it was taken before")

	d.remembers(one.ID, 5000)
	d.calls(one.ID, standard(secret, "m4", d.at, `{}`), "the run begins")
	seen := d.find(one.ID).Seen
	if _, oldest := seen["call x0000"]; len(seen) != 5000 || oldest {
		t.Errorf("%d calls are remembered, and the oldest: %v", len(seen), oldest)
	}
	d.calls(one.ID, standard(secret, "m4", d.at, `{}`), "it was taken before")
}

// TestDeliveries checks that equal bodies of different deliveries both count, each once.
func TestDeliveries(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.hooked()
	body := byGitHub(one.Hook.Secret, "push", `{}`)
	first, second := with(body, "X-GitHub-Delivery", "d1"), with(body, "X-GitHub-Delivery", "d2")
	d.calls(one.ID, first, "the run begins")
	d.calls(one.ID, second, "the run begins")
	d.calls(one.ID, first, "it was taken before")
	d.at = d.at.Add(24 * time.Hour)
	d.calls(one.ID, with(body, "X-GitHub-Delivery", "d3"), "the run begins")
	d.at = d.at.Add(24*time.Hour + time.Second) // all names are forgotten by now
	for _, again := range []schedule.Call{first, second, with(body, "X-GitHub-Delivery", "d4"), body} {
		d.calls(one.ID, again, "it was taken before")
	}
	// A body without a delivery id can't be sent again under one.
	plain := byGitHub(one.Hook.Secret, "push", `{"n": 1}`)
	d.calls(one.ID, plain, "the run begins")
	d.calls(one.ID, with(plain, "X-GitHub-Delivery", "d5"), "it was taken before")
	if _, err := d.Called(t.Context(), one.ID, with(body, "X-GitHub-Delivery", strings.Repeat("d", 257))); !errors.Is(err, schedule.ErrSignature) {
		t.Error(err)
	}
}

// remembers has a schedule remember calls, one each second until now.
func (d *desk) remembers(id string, calls int) {
	d.Helper()
	path := filepath.Join(d.Table.StateDir, "schedules", id+".json")
	one := d.find(id)
	one.Seen = map[string]string{}
	for n := range calls {
		one.Seen[fmt.Sprintf("call x%04d", n)] = d.at.Add(time.Duration(n-calls) * time.Second).Format(time.RFC3339)
	}
	raw, err := json.Marshal(one)
	if err = errors.Join(err, os.WriteFile(path, raw, 0o600)); err != nil {
		d.Fatal(err)
	}
}

// TestEvents has calls of GitHub be for the schedule or not.
func TestEvents(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	some, all := d.hooked("push", "issues.opened"), d.hooked()
	const others, begins = "the schedule is for other events", "the run begins"
	for n, c := range []struct{ event, body, some, all string }{
		{"push", `{}`, begins, begins},
		{"issues", `{"action":"opened"}`, begins, begins},
		{"issues", `{"action":"closed"}`, others, begins},
		{"issues", `{}`, others, begins},
		{"issues", `[]`, others, begins},
		{"opened", `{"action":"issues"}`, others, begins},
		{"", `{}`, others, begins},
		{"ping", `{}`, others, others},
	} {
		body := strings.Repeat(" ", n) + c.body // each is another
		d.calls(some.ID, byGitHub(some.Hook.Secret, c.event, body), c.some)
		d.calls(all.ID, byGitHub(all.Hook.Secret, c.event, body), c.all)
	}
}

// TestRefusedCalls checks the reasons for refusing signed calls.
func TestRefusedCalls(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.hooked()
	refused := func(body string) error {
		_, err := d.Called(t.Context(), one.ID, byGitHub(one.Hook.Secret, "push", body))
		return err
	}
	for _, body := range []string{"", "{", "payload=%7B%7D", "{}{}"} {
		if _, misuse := errors.AsType[words.Misuse](refused(body)); !misuse {
			t.Errorf("%q is JSON", body)
		}
	}
	largest := `"` + strings.Repeat("x", schedule.MaxEvent-2) + `"`
	if err := refused(largest + " "); !errors.Is(err, schedule.ErrLarge) {
		t.Error(err)
	}
	if err := refused(largest); err != nil {
		t.Error(err)
	}
	d.due()
	for n := range 100 {
		if err := refused(fmt.Sprint(n)); err != nil {
			t.Fatal(n, err)
		}
	}
	err := refused("100")
	if !errors.Is(err, schedule.ErrFull) {
		t.Error(err)
	}
	d.due()
	d.calls(one.ID, byGitHub(one.Hook.Secret, "push", "100"), "the run begins") // it was not taken before
}

// TestPausedHook checks that a paused schedule takes no call, and that it may come again later.
func TestPausedHook(t *testing.T) {
	d := newDesk(t, "2026-10-20T12:00:00Z")
	one := d.hooked()
	call := byGitHub(one.Hook.Secret, "push", `{}`)
	for _, paused := range []bool{true, false} {
		if _, err := d.Pause(t.Context(), one.ID, paused); err != nil {
			t.Fatal(err)
		}
		d.calls(one.ID, call, map[bool]string{true: "the schedule is paused", false: "the run begins"}[paused])
	}
}

package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/internal/safety/netguard"
	"github.com/inspan/inspan/internal/service/server"
	"github.com/inspan/inspan/internal/testkit"
)

// told is what a receiver got.
type told struct {
	ID   string
	Type string
	Of   string // what it is about
	Body string
}

// receiver takes deliveries, once its answer says so.
type receiver struct {
	t      testing.TB
	h      *httptest.Server
	answer func(told) int // status of the answer; nil means 204

	mu     sync.Mutex
	secret string
	got    []told // that were taken
	news   chan struct{}
}

func newReceiver(t testing.TB, answer func(told) int) *receiver {
	t.Helper()
	r := &receiver{t: t, answer: answer, news: make(chan struct{})}
	r.h = httptest.NewServer(r)
	t.Cleanup(r.h.Close)
	return r
}

// ServeHTTP checks the signature as the specification of standard webhooks has it.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	id, stamp := req.Header.Get("webhook-id"), req.Header.Get("webhook-timestamp")
	r.mu.Lock()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(r.secret, "whsec_"))
	r.mu.Unlock()
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	if _, bad := strconv.ParseInt(stamp, 10, 64); err != nil || bad != nil ||
		req.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
		r.t.Errorf("a signature that does not hold: %v", req.Header)
	}
	var e struct {
		ID, Type string
		Data     struct{ Type, ID string }
	}
	if err := json.Unmarshal(body, &e); err != nil || e.Type != "event" || e.ID != id {
		r.t.Errorf("%v %s", err, body)
	}
	one, status := told{id, e.Data.Type, e.Data.ID, string(body)}, http.StatusNoContent
	if r.answer != nil {
		status = r.answer(one)
	}
	if status < 300 {
		r.mu.Lock()
		r.got = append(r.got, one)
		close(r.news)
		r.news = make(chan struct{})
		r.mu.Unlock()
	}
	w.WriteHeader(status)
}

// until waits until the receiver's requests meet a condition.
func (r *receiver) until(so func([]told) bool) []told {
	r.t.Helper()
	for late := time.After(testkit.Patience); ; {
		r.mu.Lock()
		got, news := slices.Clone(r.got), r.news
		r.mu.Unlock()
		if so(got) {
			return got
		}
		select {
		case <-news:
		case <-late:
			r.t.Fatalf("the receiver was told %v", got)
		}
	}
}

// types are the types of the notices about one object.
func types(all []told, of string) (out []string) {
	for _, e := range all {
		if e.Of == of {
			out = append(out, strings.TrimPrefix(e.Type, "task."))
		}
	}
	return out
}

func has(of, kind string) func([]told) bool {
	return func(all []told) bool {
		return slices.ContainsFunc(all, func(e told) bool { return e.Of == of && e.Type == kind })
	}
}

// hook makes a webhook that tells a receiver.
func (h *house) hook(r *receiver, events ...string) server.Webhook {
	h.t.Helper()
	var w server.Webhook
	h.call("POST", "/api/v1/webhooks", map[string]any{"url": r.h.URL + "/hook", "enabled_events": events}, http.StatusCreated, &w)
	r.mu.Lock()
	r.secret = w.Secret
	r.mu.Unlock()
	return w
}

// hurried is a clock on which every time comes at once.
type hurried struct {
	mu  sync.Mutex
	now time.Time
}

func (c *hurried) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *hurried) At(t time.Time) (<-chan time.Time, func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.After(c.now) {
		c.now = t
	}
	due := make(chan time.Time, 1)
	due <- c.now
	return due, func() {}
}

func withHooks(dir *string, more func(*server.Server)) func(*server.Server) {
	return func(s *server.Server) {
		*dir = filepath.Join(s.Dir, "..", "state")
		s.State, s.WebhookTo = *dir, netguard.Hosts{"127.0.0.1"}
		if more != nil {
			more(s)
		}
	}
}

// holders are the files below a folder that hold a text, as they are or in base64.
func holders(t *testing.T, dir, text string) (out []fs.FileInfo) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, form := range []string{text, base64.StdEncoding.EncodeToString([]byte(text))} {
			if bytes.Contains(raw, []byte(form)) {
				info, err := d.Info()
				out = append(out, info)
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

type letters struct {
	Letters []struct {
		ID, Type, Subject, Error string
		Attempts                 int
	} `json:"dead_letters"`
}

// TestWebhooks has a webhook notified of tasks, also across a restart.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, nil))
	r := newReceiver(t, nil)
	w := h.hook(r, "*")
	if kept := holders(t, dir, w.Secret); len(kept) != 1 || kept[0].Mode().Perm() != 0o600 {
		t.Errorf("the secret is in %v", kept)
	}
	first := h.submit(server.Spec{Prompt: "say: first"}).ID
	h.until(first, server.StageCompleted)
	got := r.until(has(first, "task.completed"))
	if all := strings.Join(types(got, first), " "); all != "submitted queued hydrating running finalizing completed" {
		t.Errorf("told %s", all)
	}
	for _, path := range []string{"/api/v1/webhooks", "/api/v1/webhooks/" + w.ID, "/api/v1/audit"} {
		if _, text := h.do(h.request(t.Context(), "GET", path, nil)); strings.Contains(text, w.Secret) || strings.Contains(text, "cursor") {
			t.Errorf("GET %s: %s", path, text)
		}
	}
	h.close()
	h.open()
	second := h.submit(server.Spec{Prompt: "say: second"}).ID
	got = r.until(has(second, "task.completed"))
	ids := map[string]bool{}
	for _, e := range got {
		ids[e.ID] = true
	}
	if len(got)-len(ids) > 16 || len(types(got, first)) > 6+16 {
		t.Errorf("%d deliveries of %d events", len(got), len(ids))
	}

	// A test event, another secret, and an event that is not wanted.
	var came struct{ Delivered bool }
	if h.call("POST", "/api/v1/webhooks/"+w.ID+"/test", nil, http.StatusOK, &came); !came.Delivered {
		t.Error("the test was not delivered")
	}
	r.until(has(w.ID, "webhook.test"))
	var renewed struct {
		Secret string `json:"signing_secret"`
	}
	h.call("POST", "/api/v1/webhooks/"+w.ID+"/secret", nil, http.StatusOK, &renewed)
	r.mu.Lock()
	r.secret = renewed.Secret
	r.mu.Unlock()
	h.call("POST", "/api/v1/webhooks/"+w.ID, map[string]any{"enabled_events": []string{"task.completed"}}, http.StatusOK, nil)
	third := h.submit(server.Spec{Prompt: "say: third"}).ID
	if all := types(r.until(has(third, "task.completed")), third); len(all) != 1 {
		t.Errorf("told %v", all)
	}

	// What happens while it is disabled is never told.
	h.call("POST", "/api/v1/webhooks/"+w.ID, map[string]any{"state": "disabled"}, http.StatusOK, nil)
	fourth := h.submit(server.Spec{Prompt: "say: fourth"}).ID
	h.until(fourth, server.StageCompleted)
	h.call("POST", "/api/v1/webhooks/"+w.ID, map[string]any{"state": "enabled"}, http.StatusOK, nil)
	fifth := h.submit(server.Spec{Prompt: "say: fifth"}).ID
	if all := types(r.until(has(fifth, "task.completed")), fourth); len(all) != 0 {
		t.Errorf("told %v of what happened meanwhile", all)
	}
	h.call("DELETE", "/api/v1/webhooks/"+w.ID, nil, http.StatusNoContent, nil)
	h.call("GET", "/api/v1/webhooks/"+w.ID, nil, http.StatusNotFound, nil)
	if kept := holders(t, dir, w.Secret); len(kept) > 0 {
		t.Errorf("the secret is still there: %v", kept)
	}
}

// TestWebhookRetries checks that a refused delivery is retried in order, and then becomes a dead letter that can be
// sent again.
func TestWebhookRetries(t *testing.T) {
	t.Parallel()
	var dir string
	var mu sync.Mutex
	tries, dead := map[string]int{}, true
	r := newReceiver(t, func(e told) int {
		mu.Lock()
		defer mu.Unlock()
		tries[e.Type]++
		if e.Type == "task.running" && dead || e.Type == "task.queued" && tries[e.Type] < 4 {
			return http.StatusBadGateway
		}
		return http.StatusOK
	})
	h := newHouse(t, withHooks(&dir, func(s *server.Server) { s.Clock = &hurried{now: time.Now()} }))
	w := h.hook(r, "*")
	id := h.submit(server.Spec{Prompt: "say: hi"}).ID
	got := types(r.until(has(id, "task.completed")), id)
	if all := strings.Join(got, " "); all != "submitted queued hydrating finalizing completed" {
		t.Errorf("told %s", all)
	}
	mu.Lock()
	if tries["task.queued"] != 4 || tries["task.running"] != 8 {
		t.Errorf("tries %v", tries)
	}
	mu.Unlock()
	h.close()
	h.open()
	path := "/api/v1/webhooks/" + w.ID + "/dead_letters"
	var list letters
	h.call("GET", path, nil, http.StatusOK, &list)
	if len(list.Letters) != 1 || list.Letters[0].Type != "task.running" || list.Letters[0].Subject != id || list.Letters[0].Attempts != 8 ||
		!strings.Contains(list.Letters[0].Error, "502") {
		t.Fatalf("dead letters %+v", list)
	}
	var came struct {
		Delivered bool
		Status    int
	}
	if h.call("POST", path+"/"+list.Letters[0].ID, nil, http.StatusOK, &came); came.Delivered || came.Status != http.StatusBadGateway {
		t.Errorf("%+v", came)
	}
	mu.Lock()
	dead = false
	mu.Unlock()
	if h.call("POST", path+"/"+list.Letters[0].ID, nil, http.StatusOK, &came); !came.Delivered {
		t.Errorf("%+v", came)
	}
	r.until(func(all []told) bool {
		return slices.ContainsFunc(all, func(e told) bool { return e.ID == list.Letters[0].ID && e.Type == "task.running" })
	})
	h.call("POST", path+"/"+list.Letters[0].ID, nil, http.StatusNotFound, nil)
}

// TestDeadWebhookIsDisabled checks that a webhook that takes nothing for a day is disabled, that all it was not told is
// dead letters, and that the audit log says so.
func TestDeadWebhookIsDisabled(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, func(s *server.Server) { s.Clock = &hurried{now: time.Now()} }))
	r := newReceiver(t, func(told) int { return http.StatusServiceUnavailable })
	w := h.hook(r, "*")
	for range 10 { // with six events each, of which each is tried for half an hour
		h.submit(server.Spec{Prompt: "say: hi"})
	}
	testkit.WaitFor(t, "the webhook to be disabled", func() bool {
		h.call("GET", "/api/v1/webhooks/"+w.ID, nil, http.StatusOK, &w)
		return w.State != "enabled"
	})
	if !strings.Contains(w.Reason, "503") {
		t.Errorf("%+v", w)
	}
	var list letters
	h.call("GET", "/api/v1/webhooks/"+w.ID+"/dead_letters", nil, http.StatusOK, &list)
	submitted := 0
	for _, l := range list.Letters {
		if l.Type == "task.submitted" {
			submitted++
		}
	}
	if submitted != 10 || list.Letters[0].Attempts != 8 {
		t.Errorf("dead letters of %d tasks: %+v", submitted, list)
	}
	var audit struct {
		Deeds []struct{ By, What, ID string }
	}
	h.call("GET", "/api/v1/audit", nil, http.StatusOK, &audit)
	found := false
	for _, d := range audit.Deeds {
		found = found || d.By == "inspan serve" && d.What == "webhook" && d.ID == w.ID
	}
	if !found {
		t.Errorf("the audit log has no line of it")
	}
}

// TestSlowReceiverHoldsUpNothing checks that tasks, requests and other webhooks continue while a receiver does not
// answer.
func TestSlowReceiverHoldsUpNothing(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, nil))
	hung, begun := make(chan struct{}), make(chan struct{}, 100)
	slow := newReceiver(t, func(told) int { begun <- struct{}{}; <-hung; return http.StatusOK })
	t.Cleanup(func() { close(hung) })
	h.hook(slow, "*")
	fast := newReceiver(t, nil)
	h.hook(fast, "*")
	first := h.submit(server.Spec{Prompt: "say: hi"}).ID
	<-begun
	h.until(first, server.StageCompleted)
	fast.until(has(first, "task.completed"))
	second := h.submit(server.Spec{Prompt: "say: hi"}).ID
	fast.until(has(second, "task.completed"))
	slow.mu.Lock()
	defer slow.mu.Unlock()
	if len(slow.got) != 0 {
		t.Errorf("the slow one has taken %v", slow.got)
	}
}

// TestWebhookAddresses checks which addresses a webhook can't call, and that it follows no redirect.
func TestWebhookAddresses(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, func(s *server.Server) {
		s.Guard = &netguard.Guard{Resolve: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.7")}, nil // a name of the network within
		}}
	}))
	make1 := func(url any, events ...string) (int, string) {
		return h.do(h.request(t.Context(), "POST", "/api/v1/webhooks", map[string]any{"url": url, "enabled_events": events}))
	}
	for _, url := range []string{
		"", "x", "http://example.com/", "ftp://example.com/", "https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/latest/meta-data",
		"https://localhost/", "https://0x7f.1/", "https://a:b@example.com/", "https://example.com/#f", "https://" + strings.Repeat("a", 3000) + ".com/",
	} {
		if status, text := make1(url, "*"); status != http.StatusBadRequest || !strings.Contains(text, `"field":"url"`) {
			t.Errorf("%s: %d %s", url, status, text)
		}
	}
	for _, events := range [][]string{nil, {"task.unknown"}, {"task.idle", "task.idle"}} {
		if status, text := make1("https://example.com/", events...); status != http.StatusBadRequest ||
			!strings.Contains(text, `"field":"enabled_events"`) {
			t.Errorf("%v: %d %s", events, status, text)
		}
	}
	var w server.Webhook
	inside := map[string]any{"url": "https://inside.example.com/", "enabled_events": []string{"*"}}
	h.call("POST", "/api/v1/webhooks", inside, http.StatusCreated, &w)
	var came struct {
		Delivered bool
		Status    int
		Error     string
	}
	h.call("POST", "/api/v1/webhooks/"+w.ID+"/test", nil, http.StatusOK, &came)
	if came.Delivered || came.Error != "the host has no public address" {
		t.Errorf("%+v", came)
	}
	target := newReceiver(t, nil)
	redirects := httptest.NewServer(http.RedirectHandler(target.h.URL, http.StatusTemporaryRedirect))
	defer redirects.Close()
	h.call("POST", "/api/v1/webhooks/"+w.ID, map[string]any{"url": redirects.URL}, http.StatusOK, nil)
	h.call("POST", "/api/v1/webhooks/"+w.ID+"/test", nil, http.StatusOK, &came)
	if came.Delivered || came.Status != http.StatusTemporaryRedirect || len(target.got) != 0 {
		t.Errorf("a redirect: %+v, %v", came, target.got)
	}
}

// TestTenantsWebhooks checks that a webhook of a tenant gets the events of that tenant alone, and that no other tenant
// sees it.
func TestTenantsWebhooks(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, nil))
	a, b := h.identity("ann", "a", server.Admin), h.identity("bob", "b", server.Admin)
	ra, all := newReceiver(t, nil), newReceiver(t, nil)
	wa, w := a.hook(ra, "*"), h.hook(all, "*")
	tb := b.submit(server.Spec{Prompt: "say: b"}).ID
	all.until(has(tb, "task.completed"))
	ta := a.submit(server.Spec{Prompt: "say: a"}).ID
	if got := ra.until(has(ta, "task.completed")); len(types(got, tb)) != 0 {
		t.Errorf("told of another tenant: %v", got)
	}
	all.until(has(ta, "task.completed"))
	for _, path := range []string{wa.ID, wa.ID + "/dead_letters"} {
		b.call("GET", "/api/v1/webhooks/"+path, nil, http.StatusNotFound, nil)
	}
	b.call("POST", "/api/v1/webhooks/"+wa.ID, map[string]any{"state": "disabled"}, http.StatusNotFound, nil)
	b.call("POST", "/api/v1/webhooks/"+wa.ID+"/secret", nil, http.StatusNotFound, nil)
	b.call("POST", "/api/v1/webhooks/"+wa.ID+"/test", nil, http.StatusNotFound, nil)
	b.call("DELETE", "/api/v1/webhooks/"+wa.ID, nil, http.StatusNotFound, nil)
	a.call("GET", "/api/v1/webhooks/"+w.ID, nil, http.StatusNotFound, nil)
	h.identity("op", "a", server.Operator).call("GET", "/api/v1/webhooks", nil, http.StatusForbidden, nil)
	var list struct{ Webhooks []server.Webhook }
	if a.call("GET", "/api/v1/webhooks", nil, http.StatusOK, &list); len(list.Webhooks) != 1 || list.Webhooks[0].ID != wa.ID {
		t.Errorf("%+v", list)
	}
}

// TestKillDelivers kills the real server while it delivers. The receiver gets every event at least once, repeated
// deliveries have the same id, and the events of a task come in order.
func TestKillDelivers(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.start("--webhook-to", "127.0.0.1")
	r := newReceiver(t, func(told) int {
		if rand.IntN(20) == 0 { //nolint:gosec // now and then
			return http.StatusInternalServerError
		}
		return http.StatusOK
	})
	status, raw, err := p.send("POST", "/api/v1/webhooks", "", map[string]any{"url": r.h.URL, "enabled_events": []string{"*"}})
	var w server.Webhook
	if err != nil || status != http.StatusCreated || json.Unmarshal(raw, &w) != nil {
		t.Fatalf("%d %s %v", status, raw, err)
	}
	r.mu.Lock()
	r.secret = w.Secret
	r.mu.Unlock()
	const tasks = 12
	var ids []string
	for i := range tasks {
		var made server.Task
		if status, raw, err := p.send("POST", "/api/v1/tasks", strconv.Itoa(i), server.Spec{Prompt: "bash: sleep 0.1\nsay: done"}); err != nil ||
			status != http.StatusCreated || json.Unmarshal(raw, &made) != nil {
			t.Fatalf("%d %s %v", status, raw, err)
		}
		ids = append(ids, made.ID)
	}
	for range kills(t) {
		<-time.After(time.Duration(rand.IntN(150)) * time.Millisecond) //nolint:gosec // any moment
		p.kill()
		p.start("--webhook-to", "127.0.0.1")
	}
	got := r.until(func(all []told) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !has(id, "task.completed")(all) })
	})
	bodies, fresh := map[string]string{}, []told(nil)
	for _, e := range got {
		if before, again := bodies[e.ID]; !again {
			fresh = append(fresh, e)
		} else if before != e.Body {
			t.Errorf("%s came as %s and %s", e.ID, before, e.Body)
		}
		bodies[e.ID] = e.Body
	}
	for _, id := range ids {
		var task server.Task
		if _, raw, err := p.send("GET", "/api/v1/tasks/"+id, "", nil); err != nil || json.Unmarshal(raw, &task) != nil {
			t.Fatal(err)
		}
		if was, all := stages(task), strings.Join(types(fresh, id), " "); all != was {
			t.Errorf("told %s of a task that was %s", all, was)
		}
	}
	t.Logf("%d deliveries of %d events", len(got), len(fresh))
}

// TestWebhookRenewed checks that of many clients that renew a secret at once each gets one, that the last one counts,
// and that a repeated request counts once.
func TestWebhookRenewed(t *testing.T) {
	t.Parallel()
	var dir string
	h := newHouse(t, withHooks(&dir, nil))
	w := h.hook(newReceiver(t, nil), "*")
	var got sync.Map
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			status, text := h.do(h.request(t.Context(), "POST", "/api/v1/webhooks/"+w.ID+"/secret", nil))
			var v struct {
				Secret string `json:"signing_secret"`
			}
			if json.Unmarshal([]byte(text), &v) != nil || status != http.StatusOK {
				t.Errorf("%d %s", status, text)
			}
			got.Store(v.Secret, true)
		})
	}
	all.Wait()
	kept := 0
	for secret := range got.Range {
		kept += len(holders(t, dir, fmt.Sprint(secret)))
	}
	if kept != 1 {
		t.Errorf("%d of the secrets are kept", kept)
	}
	for _, want := range []int{http.StatusOK, http.StatusConflict} {
		req := h.request(t.Context(), "POST", "/api/v1/webhooks/"+w.ID+"/secret", nil)
		req.Header.Set("Idempotency-Key", "one")
		if status, text := h.do(req); status != want {
			t.Errorf("%d %s, want %d", status, text, want)
		}
	}
}

package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/install/running"
	"github.com/inspan/inspan/internal/testkit"
)

// receiver keeps the posted requests.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	heads  []http.Header
	bodies []string
}

func receive(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.heads, r.bodies = append(r.heads, req.Header), append(r.bodies, req.Method+" "+req.URL.Path+" "+string(body))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bodies
}

// TestNotifies checks the notifications of a session to a webhook and an ntfy server: one for a question and one for
// the end of the run, and none for a short run or one that the person has ended.
func TestNotifies(t *testing.T) {
	hook, ntfy := receive(t), receive(t)
	t.Setenv("NTFY_TEST_TOKEN", "tk_for_the_test")
	settings := func(after string) string {
		return fmt.Sprintf("[notify]\nurl='%s/hook'\nntfy='%s/topic'\nntfy_token_env='NTFY_TEST_TOKEN'\nlink='http://page/'\nafter='%s'\n",
			hook.URL, ntfy.URL, after)
	}
	a := load(t, settings("1ns"))
	s := begun(t, a, "delay: 20ms\nbash: touch made") // the log has times in milliseconds, and a run of none is no long one
	if err := s.Send(t.Context(), event.Titled{Title: "Grüße"}); err != nil {
		t.Fatal(err)
	}
	waiting := s.Status().Waiting
	if len(waiting) != 1 {
		t.Fatalf("%+v", s.Status())
	}
	runs(t, s, event.Decided{Call: waiting[0].Call.ID, Question: waiting[0].Question, By: "person", Reason: "no"})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var last running.Message
	for _, body := range hook.all() {
		rest, is := strings.CutPrefix(body, "POST /hook ")
		if err := json.Unmarshal([]byte(rest), &last); err != nil || !is || last.Session != s.ID() || last.Root != s.Status().Root {
			t.Errorf("%s: %v", body, err)
		}
		if last.Event == "done" && (last.Text != "done" || last.Title != "Grüße" || last.Link != "http://page/s/"+s.ID()) {
			t.Errorf("the end of the run: %s", body)
		}
		if last.Event == "waiting" && last.Text != "bash asks" {
			t.Errorf("the question: %s", body)
		}
	}
	if said := strings.Join(ntfy.all(), "\n"); strings.Count(said, "POST /topic done") != 1 || strings.Count(said, "\n") > 1 {
		t.Errorf("ntfy got %q", said)
	}
	for i, head := range ntfy.heads {
		if head.Get("Authorization") != "Bearer tk_for_the_test" || head.Get("Click") != "http://page/s/"+s.ID() {
			t.Errorf("%v", head)
		}
		done := strings.HasSuffix(ntfy.bodies[i], " done")
		if done && (head.Get("Title") != "=?utf-8?b?aW5zcGFuOiBHcsO8w59l?=" || head.Get("Priority") != "default") || !done && head.Get("Priority") != "high" {
			t.Errorf("%s: %v", ntfy.bodies[i], head)
		}
	}

	before := len(hook.all())
	a = load(t, settings("1h"))
	s = begun(t, a, "say: short")
	runs(t, s, event.Say("bash: touch made"))
	runs(t, s, event.Cancelled{By: "person"})
	if err := s.Close(); err != nil || len(hook.all()) != before {
		t.Errorf("a short run, and one that was ended by hand: %q, %v", hook.all()[before:], err)
	}
}

// TestNotifiesOfWhatIsLeft checks that a question that is open when its session is closed causes a notification then,
// once, together with the others.
func TestNotifiesOfWhatIsLeft(t *testing.T) {
	hook := receive(t)
	a := load(t, "[notify]\nurl='"+hook.URL+"'\nafter='1h'\n")
	if err := begun(t, a, "bash: touch made").Close(); err != nil {
		t.Fatal(err)
	}
	if got := hook.all(); len(got) != 1 || !strings.Contains(got[0], `"text":"bash asks"`) {
		t.Errorf("%q", got)
	}
}

// TestNotifiesNobody checks what holds a notification back: quiet hours, a watching person, and missing settings.
func TestNotifiesNobody(t *testing.T) {
	night := time.Date(2026, 1, 2, 23, 30, 0, 0, time.Local)
	for name, tc := range map[string]struct {
		settings string
		at       time.Time
		here     bool
		want     int
	}{
		"awake":     {"quiet='22:00-07:00'", night.Add(-2 * time.Hour), false, 1},
		"asleep":    {"quiet='22:00-07:00'", night, false, 0},
		"excepted":  {"quiet='22:00-07:00'\nquiet_except=['waiting']", night, false, 1},
		"here":      {"", night, true, 0},
		"not named": {"on=['failed']", night, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			hook := receive(t)
			a := load(t, "[notify]\nurl='"+hook.URL+"'\n"+tc.settings+"\n")
			a.Notify.At(running.Front{Clock: func() time.Time { return tc.at }, Here: func() bool { return tc.here }})
			if err := begun(t, a, "bash: touch made").Close(); err != nil || len(hook.all()) != tc.want {
				t.Errorf("%q, %v", hook.all(), err)
			}
		})
	}
}

// TestNotifyHoldsUpNothing checks that a run ends while the receiver of its notification hangs.
func TestNotifyHoldsUpNothing(t *testing.T) {
	release, came := make(chan struct{}), make(chan struct{}, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-release
	}))
	defer hook.Close()
	a := load(t, "[notify]\nurl='"+hook.URL+"'\nafter='1ns'\n")
	s := begun(t, a, "delay: 20ms\nsay: done") // returns
	testkit.Receive(t, "the notification", came)
	if st := s.Status(); st.Stopped == nil {
		t.Errorf("%+v", st)
	}
	close(release)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestNotifiesTheDesktop checks how notify-send is called, with text that it and a desktop could take for more than
// text.
func TestNotifiesTheDesktop(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("osascript shows notifications there")
	}
	dir := t.TempDir()
	script := "#!/bin/sh\nfor a; do printf '[%s]' \"$a\"; done >> " + filepath.Join(dir, "got") + "\n"
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	a := load(t, "[notify]\nto=['desktop', 'bell']\n")
	s := begun(t, a, "bash: touch made")
	if err := s.Send(t.Context(), event.Titled{Title: "--help\n<b>\x1b]0;x\a"}); err != nil {
		t.Fatal(err)
	}
	runs(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "got"))
	if want := "[--app-name=inspan][--][inspan: --help <b>"; !strings.HasPrefix(string(got), want) ||
		!strings.HasSuffix(string(got), "][bash asks]") || strings.ContainsAny(string(got), "\x1b\a\n") || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNotifyByHand checks the output of a test notification, and that it contains no address.
func TestNotifyByHand(t *testing.T) {
	good := receive(t)
	bad := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no such\x1b[31m topic", http.StatusForbidden)
	}))
	defer bad.Close()
	a := load(t, "[notify]\nurl='"+good.URL+"/hook-secret'\nntfy='"+bad.URL+"/topic-secret'\nquiet='00:00-23:59'\n")
	tried := a.Notify.Try(t.Context())
	if len(tried) != 2 || tried[0] != (running.Tried{Place: "url"}) || !strings.Contains(good.all()[0], `"event":"test"`) {
		t.Fatalf("%+v", tried)
	}
	if why := fmt.Sprint(tried[1].Err); !strings.Contains(why, "status 403: no such") || strings.ContainsAny(why, "\x1b\n") {
		t.Errorf("%q", why)
	}
	bad.Close()
	good.Close()
	for _, tr := range a.Notify.Try(t.Context()) {
		if why := fmt.Sprint(tr.Err); tr.Err == nil || strings.Contains(why, "-secret") {
			t.Errorf("%s: %q", tr.Place, why)
		}
	}
}

// TestNotifyRings checks the bytes that terminals get, and that commands do not get the token.
func TestNotifyRings(t *testing.T) {
	for _, tc := range []struct{ to, term, vte, want string }{
		{"to=['desktop','bell']", "xterm-256color", "", "\x1b]9;inspan: bash asks\x1b\\\a"},
		{"", "xterm-256color", "", "\x1b]9;inspan: bash asks\x1b\\\a"},
		{"to=['desktop']", "rxvt-unicode-256color", "", "\x1b]777;notify;inspan;bash asks\x1b\\"},
		{"to=['desktop']", "xterm-256color", "7800", "\x1b]777;notify;inspan;bash asks\x1b\\"},
		{"to=['bell']", "xterm-256color", "", "\a"},
	} {
		t.Setenv("TERM", tc.term)
		t.Setenv("VTE_VERSION", tc.vte)
		t.Setenv("PLAIN_NAME", "value-of-the-token")
		a := load(t, "[notify]\nntfy_token_env='PLAIN_NAME'\n"+tc.to+"\n")
		if got := strings.ReplaceAll(a.Notify.Ring("bash\x1b\a asks"), `\x1b\x07`, ""); got != tc.want {
			t.Errorf("%s in %s: %q", tc.to, tc.term, got)
		}
		withheld := false
		for _, w := range a.Permission.Withheld("ask") {
			withheld = withheld || w.Name == "PLAIN_NAME"
		}
		if !withheld {
			t.Error("commands get the token")
		}
	}
}

// TestNotifyEnds checks the texts about the ends of runs.
func TestNotifyEnds(t *testing.T) {
	a := load(t, "[notify]\non=['failed', 'budget']\n")
	for _, tc := range []struct {
		stopped event.Stopped
		want    string
	}{
		{event.Stopped{Reason: event.ReasonDone}, ""},
		{event.Stopped{Reason: event.ReasonCancelled}, ""},
		{event.Stopped{Reason: event.ReasonMaxTurns}, "max turns"},
		{event.Stopped{Reason: event.ReasonBudget, Detail: "$1.00\nof $1.00"}, "budget: $1.00 of $1.00"},
		{event.Stopped{Reason: event.ReasonStuck, Detail: "bash secret thing"}, "stuck"},
		{event.Stopped{Reason: event.ReasonFailed, Detail: "key sk-ant-api03-" + strings.Repeat("Ab1", 30)}, "failed: key ***"},
	} {
		if got := a.Notify.Ended(tc.stopped); got != tc.want {
			t.Errorf("%+v: %q, want %q", tc.stopped, got, tc.want)
		}
	}
}

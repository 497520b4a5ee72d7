package a2a_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
)

const write = `call: write_file {"path":"new.txt","content":"made"}`

func TestCard(t *testing.T) {
	h := newHouse(t, "ask")
	for token, want := range map[string]int{annsToken: http.StatusOK, "": http.StatusOK} { // anybody may read it
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/.well-known/agent-card.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(res.Body)
		res.Body.Close() //nolint:errcheck // it was only read
		if err != nil || res.StatusCode != want {
			t.Fatalf("%v %d %s", err, res.StatusCode, raw)
		}
		if strings.Contains(string(raw), "securityRequirements") ||
			!strings.Contains(string(raw), `"securitySchemes":{"token":{"httpAuthSecurityScheme":{"scheme":"Bearer"}}}`) {
			t.Errorf("%s", raw)
		}
		var card struct {
			Name, Description, Version string
			SupportedInterfaces        []struct{ URL, ProtocolBinding, ProtocolVersion string }
			Capabilities               struct{ Streaming, PushNotifications bool }
			Skills                     []struct{ ID string }
		}
		if err := json.Unmarshal(raw, &card); err != nil {
			t.Fatal(err)
		}
		if len(card.SupportedInterfaces) != 1 || card.SupportedInterfaces[0].URL != h.url+"/" ||
			card.SupportedInterfaces[0].ProtocolBinding != "JSONRPC" || card.SupportedInterfaces[0].ProtocolVersion != "1.0" {
			t.Errorf("%s", raw)
		}
		if card.Name != "inspan" || card.Version == "" || card.Description == "" || !card.Capabilities.Streaming ||
			card.Capabilities.PushNotifications || len(card.Skills) == 0 {
			t.Errorf("%s", raw)
		}
	}
}

func TestTask(t *testing.T) {
	h := newHouse(t, "edit")
	v := h.visitor(annsToken)
	got, code := v.send(say(write+"\nsay: It is made."), false)
	if code != 0 || got.Status.State != "TASK_STATE_COMPLETED" || got.artifact("answer").Text != "It is made." || h.read("new.txt") != "made" {
		t.Fatalf("%d %+v", code, got)
	}
	if files, _ := json.Marshal(got.artifact("files").Data["files"]); !strings.Contains(string(files), "work/new.txt") {
		t.Errorf("%s", files)
	}
	if got.ContextID != got.ID || got.Status.Timestamp.IsZero() || len(got.History) != 2 ||
		got.History[0].Role != "ROLE_USER" || got.History[1].Role != "ROLE_AGENT" {
		t.Errorf("%+v", got)
	}
	if !strings.Contains(h.log(got.ID), `"by":"a2a:ann"`) {
		t.Error("the log does not say who it was")
	}
	if _, code := v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "say: more"}}}, false); code == 0 {
		t.Error("a task that is over takes a message")
	}
	next, code := v.send(message{ID: "m3", Role: "ROLE_USER", ContextID: got.ContextID, Parts: []part{{Text: "say: more"}}}, false)
	if code != 0 || next.ID == got.ID || next.ContextID != got.ContextID || next.artifact("answer").Text != "more" || len(next.History) != 2 {
		t.Errorf("%d %+v", code, next)
	}
	if !strings.Contains(h.log(next.ID), "It is made.") {
		t.Error("the second task of a context does not remember the first")
	}
	third, code := v.send(message{ID: "m4", Role: "ROLE_USER", ContextID: got.ContextID, Parts: []part{{Text: "say: still more"}}}, false)
	if code != 0 || third.ContextID != got.ContextID || third.artifact("answer").Text != "still more" || third.artifact("files").Data != nil {
		t.Errorf("%d %+v", code, third)
	}
	if again := v.get(got.ID); again.Status.State != "TASK_STATE_COMPLETED" || again.artifact("answer").Text != "It is made." {
		t.Errorf("%+v", again)
	}
}

func TestStream(t *testing.T) {
	h := newHouse(t, "auto")
	h.write("a.txt", "one\n")
	v := h.visitor(annsToken)
	all, code := v.stream("SendStreamingMessage",
		map[string]any{"message": say("bash: while ! test -e go; do sleep 0.02; done\nsay: I'll look.\nread: a.txt\n" +
			"say: It says one.")}, func(happening) { h.write("go", "") })
	if code != 0 || states(all) != "working completed" || all[0].Task == nil || all[0].Task.Status.State != "TASK_STATE_WORKING" {
		t.Fatalf("%d %s %+v", code, states(all), all)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"I'll look.", "▸ read_file a.txt", "It says one."} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("not told: %s\n%s", want, raw)
		}
	}
	last, before := all[len(all)-1], all[len(all)-2]
	if last.Status == nil || before.Artifact == nil || before.Artifact.Artifact.Parts[0].Text != "It says one." {
		t.Errorf("%s", raw)
	}
	if _, code := v.stream("SubscribeToTask", map[string]any{"id": all[0].Task.ID}); code == 0 {
		t.Error("a task that is over can be subscribed to")
	}
}

// TestConsent checks that a message answers a question, in words or as data, and that each answer does what it says.
func TestConsent(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer part
		code   bool // it is refused, and the task still asks
		made   bool
	}{
		{"yes", part{Text: "yes"}, false, true},
		{"session", part{Text: "session"}, false, true},
		{"no", part{Text: "No"}, false, false},
		{"other words", part{Text: "use another name"}, false, false},
		{"data", part{Data: map[string]any{"decision": "allow once"}}, false, true},
		{"data for the session", part{Data: map[string]any{"decision": "allow for this session"}}, false, true},
		{"data no", part{Data: map[string]any{"decision": "deny"}}, false, false},
		{"for ever", part{Text: "always"}, true, false},
		{"for the project", part{Data: map[string]any{"decision": "p"}}, true, false},
		{"another call", part{Data: map[string]any{"decision": "yes", "call": "no such"}}, true, false},
		{"nothing", part{Data: map[string]any{"x": 1}}, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, "ask")
			v := h.visitor(annsToken)
			got, code := v.send(say(write+"\nsay: end"), false)
			if code != 0 || got.Status.State != "TASK_STATE_INPUT_REQUIRED" || got.Status.Message == nil {
				t.Fatalf("%d %+v", code, got)
			}
			if q := got.Status.Message.Parts; len(q) != 2 || !strings.Contains(q[0].Text, "May write_file run") ||
				!strings.Contains(q[0].Text, "+made") || q[1].Data["call"] == "" {
				t.Errorf("%+v", q)
			}
			answered, code := v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, ContextID: got.ContextID, Parts: []part{tc.answer}}, false)
			if (code != 0) != tc.code {
				t.Errorf("error %d", code)
			}
			if tc.code {
				if s := v.get(got.ID).Status.State; s != "TASK_STATE_INPUT_REQUIRED" {
					t.Errorf("%s", s)
				}
			} else if answered.Status.State != "TASK_STATE_COMPLETED" {
				t.Errorf("%+v", answered)
			}
			if made := h.read("new.txt") == "made"; made != tc.made {
				t.Errorf("made: %v", made)
			}
			if tc.made && !strings.Contains(h.log(got.ID), `"allow":true,"by":"a2a:ann"`) {
				t.Error("the log does not say who allowed it")
			}
		})
	}
}

// TestQuestions checks that a question to a person is answered in the client's words, and that several wait for their
// own answers.
func TestQuestions(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	got, _ := v.send(say(`call: ask_user {"question":"Which colour?","options":["red","blue"]}`), false)
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" || !strings.Contains(got.Status.Message.Parts[0].Text, "2. blue") {
		t.Fatalf("%+v", got)
	}
	got, _ = v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "2"}}}, false)
	if got.Status.State != "TASK_STATE_COMPLETED" || !strings.Contains(h.log(got.ID), `"answer":"blue"`) {
		t.Errorf("%+v", got)
	}
	got, _ = v.send(say(write+"\n+ call: write_file {\"path\":\"two.txt\",\"content\":\"2\"}"), false)
	first := got.Status.Message.Parts[1].Data["call"]
	for _, m := range []message{
		{TaskID: got.ID, ContextID: "another", Parts: []part{{Text: "yes"}}}, // the task belongs to another context
		{ContextID: got.ContextID, Parts: []part{{Text: "say: hi"}}},         // the last task of the context goes on
	} {
		m.ID, m.Role = "m5", "ROLE_USER"
		if _, code := v.send(m, false); code == 0 || h.read("new.txt") != "" {
			t.Errorf("%+v is taken", m)
		}
	}
	all, code := v.stream("SendStreamingMessage", map[string]any{"message": message{
		ID:   "m3",
		Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "yes"}},
	}})
	if code != 0 || !strings.HasSuffix(states(all), "input_required") {
		t.Fatalf("%d %s", code, states(all))
	}
	got = v.get(got.ID)
	if second := got.Status.Message.Parts[1].Data["call"]; second == first {
		t.Errorf("it asks %v again", second)
	}
	got, _ = v.send(message{ID: "m4", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "no"}}}, false)
	if got.Status.State != "TASK_STATE_COMPLETED" || h.read("new.txt") != "made" || h.read("two.txt") != "" {
		t.Errorf("%+v", got)
	}
}

// TestNamedQuestion checks that a message can answer another question than the first.
func TestNamedQuestion(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	got, _ := v.send(say(write+"\n+ call: write_file {\"path\":\"two.txt\",\"content\":\"2\"}"), false)
	w, err := h.host.Watch(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	waiting := w.Status().Waiting
	if err := w.Close(); err != nil || len(waiting) != 2 {
		t.Fatalf("%v %+v", err, waiting)
	}
	for i, decision := range []string{"deny", "allow once"} {
		got, _ = v.send(message{
			ID: "m2", Role: "ROLE_USER", TaskID: got.ID,
			Parts: []part{{Data: map[string]any{"call": waiting[1-i].Call.ID, "decision": decision}}},
		}, false)
	}
	if got.Status.State != "TASK_STATE_COMPLETED" || h.read("new.txt") != "made" || h.read("two.txt") != "" {
		t.Errorf("%+v", got)
	}
}

// TestSet checks that a client is asked once about the calls of a script, by an id that answers all of them.
func TestSet(t *testing.T) {
	h := newHouse(t, "ask")
	h.stop()
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.state), "config.toml"), []byte("[levers]\nscript = \"on\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start("ask")
	v := h.visitor(annsToken)
	code := `for (const p of ["one", "two"]) await tools.write_file({path: p, content: p});`
	args, _ := json.Marshal(map[string]string{"code": code})
	got, _ := v.send(say("call: script "+string(args)+"\nsay: end"), false)
	w, err := h.host.Watch(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range w.Events(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if w.Status().OnlyWaits && len(w.Status().Waiting) == 2 { // the script has gone as far as it could
			break
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	got = v.get(got.ID)
	asked, id := "", ""
	for _, p := range got.Status.Message.Parts {
		asked += p.Text
		if p.Data != nil {
			id, _ = p.Data["call"].(string)
		}
	}
	if !strings.HasPrefix(asked, "May a set of 2 calls run (write 2 files below ") || !strings.Contains(asked, "Call 2 of 2, call_s0_0/2: write_file") ||
		!strings.HasSuffix(id, "/1-2") || strings.Contains(asked, "session") {
		t.Errorf("%q by %q", asked, id)
	}
	got, _ = v.send(message{
		ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Data: map[string]any{"call": id, "decision": "allow once"}}},
	}, false)
	if got.Status.State != "TASK_STATE_COMPLETED" || h.read("one")+h.read("two") != "onetwo" {
		t.Errorf("%+v", got)
	}
}

// TestDecideHere checks that clients can be kept from giving consent, which a person here then gives.
func TestDecideHere(t *testing.T) {
	h := newHouse(t, "ask")
	h.stop()
	h.here = true
	h.start("ask")
	v := h.visitor(annsToken)
	got, _ := v.send(say(write+"\nsay: end"), false)
	for _, words := range []string{"yes", "no"} {
		if _, code := v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: words}}}, false); code == 0 ||
			h.read("new.txt") != "" {
			t.Errorf("%s is taken", words)
		}
	}
	w, err := h.host.Watch(t.Context(), got.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // it was only read
	call, _ := got.Status.Message.Parts[1].Data["call"].(string)
	if err := w.Send(t.Context(), event.Decided{Call: call, Allow: true, By: "the user"}); err != nil {
		t.Fatal(err)
	}
	testkit.WaitFor(t, "its end", func() bool { return v.get(got.ID).Status.State == "TASK_STATE_COMPLETED" })
	if h.read("new.txt") != "made" {
		t.Error("it was not made")
	}
	asks, _ := v.send(say(`call: ask_user {"question":"Which colour?"}`), false)
	if got, code := v.send(message{ID: "m3", Role: "ROLE_USER", TaskID: asks.ID, Parts: []part{{Text: "red"}}}, false); code != 0 ||
		got.Status.State != "TASK_STATE_COMPLETED" {
		t.Errorf("%d %+v", code, got)
	}
}

// marked makes the marks those of this run of the tests.
var marked = 100_000_000 + rand.IntN(900_000_000) //nolint:gosec // any number

// mark is a number of seconds that no other test sleeps.
func mark(n int) string { return fmt.Sprintf("62.%d%02d", marked, n) }

// processes counts those whose command line holds a mark.
func processes(t testing.TB, mark string) (n int) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(dirs) == 0 {
		t.Skip("no list of processes")
	}
	for _, path := range dirs {
		if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), mark) && !strings.Contains(string(raw), "a2a.test") {
			n++
		}
	}
	return n
}

func TestCancel(t *testing.T) {
	h := newHouse(t, "auto")
	v := h.visitor(annsToken)
	got, code := v.send(say("bash: sleep "+mark(1)), true)
	if code != 0 || got.Status.State != "TASK_STATE_WORKING" {
		t.Fatalf("%d %+v", code, got)
	}
	testkit.WaitFor(t, "the process", func() bool { return processes(t, mark(1)) > 0 })
	subscribed := make(chan string)
	go func() {
		all, _ := v.stream("SubscribeToTask", map[string]any{"id": got.ID})
		subscribed <- states(all)
	}()
	var after task
	if code := v.call("CancelTask", map[string]any{"id": got.ID}, &after); code != 0 || after.Status.State != "TASK_STATE_CANCELED" {
		t.Errorf("%d %+v", code, after)
	}
	if n := processes(t, mark(1)); n > 0 {
		t.Errorf("%d processes", n)
	}
	if s := <-subscribed; !strings.HasSuffix(s, "canceled") && s != "" { // it may have come too late
		t.Errorf("%s", s)
	}
	if code := v.call("CancelTask", map[string]any{"id": got.ID}, &after); code == 0 {
		t.Error("cancelled twice")
	}
}

func TestCancelAQuestion(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	got, _ := v.send(say(write), false)
	var after task
	if code := v.call("CancelTask", map[string]any{"id": got.ID}, &after); code != 0 ||
		after.Status.State != "TASK_STATE_CANCELED" || h.read("new.txt") != "" {
		t.Errorf("%d %+v", code, after)
	}
}

// TestSteer checks that a message to a task which works is heard by it.
func TestSteer(t *testing.T) {
	h := newHouse(t, "auto")
	v := h.visitor(annsToken)
	got, _ := v.send(say("bash: while ! test -e go; do sleep 0.05; done\nsay: end"), true)
	if code := v.call("SendMessage", map[string]any{
		"message":       message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "heed this"}}},
		"configuration": map[string]any{"returnImmediately": true},
	}, &happening{}); code != 0 {
		t.Fatalf("error %d", code)
	}
	h.write("go", "")
	testkit.WaitFor(t, "its end", func() bool { return v.get(got.ID).Status.State == "TASK_STATE_COMPLETED" })
	if log := h.log(got.ID); !strings.Contains(log, `"kind":"steered"`) || !strings.Contains(log, "heed this") {
		t.Error("it was not heard")
	}
}

// TestRestart checks that tasks outlast the server: finished ones, those that ask, and those in progress.
func TestRestart(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	over, _ := v.send(say("say: over"), false)
	asks, _ := v.send(say(write+"\nsay: made"), false)
	works, _ := v.send(say("delay: 10m\nsay: late"), true)
	h.stop()
	h.start("ask")
	if got := v.get(over.ID); got.Status.State != "TASK_STATE_COMPLETED" || got.artifact("answer").Text != "over" {
		t.Errorf("%+v", got)
	}
	got := v.get(asks.ID)
	if got.Status.State != "TASK_STATE_INPUT_REQUIRED" ||
		got.Status.Message.Parts[1].Data["call"] != asks.Status.Message.Parts[1].Data["call"] {
		t.Fatalf("%+v", got)
	}
	got, code := v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: asks.ID, Parts: []part{{Text: "yes"}}}, false)
	if code != 0 || got.Status.State != "TASK_STATE_COMPLETED" || h.read("new.txt") != "made" {
		t.Errorf("%d %+v", code, got)
	}
	if got := v.get(works.ID); got.Status.State != "TASK_STATE_WORKING" {
		t.Errorf("%+v", got)
	}
	testkit.WaitFor(t, "its new driver", func() bool { return strings.Count(h.log(works.ID), `"kind":"claimed"`) == 2 })
	if code := v.call("CancelTask", map[string]any{"id": works.ID}, &got); code != 0 || got.Status.State != "TASK_STATE_CANCELED" {
		t.Errorf("%d %+v", code, got)
	}
}

// TestClosed checks that a server which was closed begins nothing.
func TestClosed(t *testing.T) {
	h := newHouse(t, "ask")
	h.server.Close()
	if _, code := h.visitor(annsToken).send(say("say: hi"), false); code == 0 {
		t.Error("a task is begun")
	}
	for info, err := range h.host.List(t.Context()) {
		t.Errorf("session %s was made: %v", info.ID, err)
	}
}

// TestStates checks the states of runs that don't finish normally.
func TestStates(t *testing.T) {
	for prompt, want := range map[string]string{
		"stop: refusal":  "TASK_STATE_REJECTED",
		"fail: 401":      "TASK_STATE_AUTH_REQUIRED",
		"fail: 404":      "TASK_STATE_FAILED",
		"say: all right": "TASK_STATE_COMPLETED",
	} {
		h := newHouse(t, "ask")
		v := h.visitor(annsToken)
		got, code := v.send(say(prompt), false)
		if code != 0 || got.Status.State != want {
			t.Errorf("%s: %d %+v", prompt, code, got.Status)
		}
		if want != "TASK_STATE_COMPLETED" && (got.Status.Message == nil || got.Status.Message.Parts[0].Text == "") {
			t.Errorf("%s: no reason", prompt)
		}
		if want == "TASK_STATE_AUTH_REQUIRED" {
			if got, code = v.send(message{ID: "m2", Role: "ROLE_USER", TaskID: got.ID, Parts: []part{{Text: "say: now"}}}, false); code != 0 ||
				got.Status.State != "TASK_STATE_COMPLETED" {
				t.Errorf("%d %+v", code, got.Status)
			}
		}
	}
}

// sender is who began a task, as the log says.
func (h *house) sender(id string) string {
	h.t.Helper()
	for e, err := range h.host.Events(h.t.Context(), id) {
		if err != nil {
			h.t.Fatal(err)
		}
		if said, is := e.Body.(event.Said); is {
			return said.By
		}
	}
	h.t.Fatal("nobody has said anything")
	return ""
}

// TestOthers checks that no client reaches another's tasks, sessions that are not tasks, nor its own in other folders.
func TestOthers(t *testing.T) {
	h := newHouse(t, "ask")
	ann, bob := h.visitor(annsToken), h.visitor(bobsToken)
	asks, _ := ann.send(say(write), false)
	mine, err := h.host.New(t.Context(), h.root)
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	bobs, _ := bob.send(say("say: hi"), false)
	elsewhere, err := h.host.New(t.Context(), t.TempDir()) // as if by a server of bob's there
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	for _, err := range elsewhere.Run(t.Context(), event.Said{Parts: llm.Say("say: hi"), By: h.sender(bobs.ID)}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{asks.ID, mine.ID(), elsewhere.ID(), "last", "", "..", "../sessions/" + asks.ID, asks.ID[:12], "no-such"} {
		for method, params := range map[string]any{
			"GetTask": map[string]any{"id": id}, "CancelTask": map[string]any{"id": id},
			"SendMessage": map[string]any{"message": message{ID: "m", Role: "ROLE_USER", TaskID: id, ContextID: "c", Parts: []part{{Text: "yes"}}}},
		} {
			if code := bob.call(method, params, &json.RawMessage{}); code == 0 && (id != "" || method != "SendMessage") {
				t.Errorf("%s of %q", method, id)
			}
		}
		if _, code := bob.stream("SubscribeToTask", map[string]any{"id": id}); code == 0 {
			t.Errorf("subscribed to %q", id)
		}
	}
	// A context that bob calls like ann's is his own, as any that he names first.
	own, code := bob.send(message{ID: "m", Role: "ROLE_USER", ContextID: asks.ContextID, Parts: []part{{Text: "say: hi"}}}, false)
	if code != 0 || strings.Contains(h.log(own.ID), "new.txt") {
		t.Errorf("%d: bob speaks in ann's context", code)
	}
	if h.read("new.txt") != "" {
		t.Error("bob answered for ann")
	}
	for v, want := range map[*visitor]int{ann: 1, bob: 3} {
		var list struct {
			Tasks     []task
			TotalSize int
		}
		if code := v.call("ListTasks", map[string]any{}, &list); code != 0 || len(list.Tasks) != want || list.TotalSize != want {
			t.Errorf("%d %+v", code, list)
		}
	}
}

func TestList(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	for range 3 {
		if _, code := v.send(say("say: hi"), false); code != 0 {
			t.Fatal(code)
		}
	}
	asks, _ := v.send(say(write), false)
	type list struct {
		Tasks         []task
		TotalSize     int
		PageSize      int
		NextPageToken string
	}
	seen := map[string]bool{}
	page := list{}
	for n := 0; n == 0 || page.NextPageToken != ""; n++ {
		token := page.NextPageToken
		page = list{}
		if code := v.call("ListTasks", map[string]any{"pageSize": 2, "pageToken": token}, &page); code != 0 ||
			page.TotalSize != 4 || len(page.Tasks) != 2 || n > 1 {
			t.Fatalf("%d %+v", code, page)
		}
		for _, task := range page.Tasks {
			seen[task.ID] = true
			if task.History != nil || task.Artifacts != nil {
				t.Errorf("more than was asked for: %+v", task)
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("%v", seen)
	}
	page = list{}
	if code := v.call("ListTasks", map[string]any{"status": "TASK_STATE_INPUT_REQUIRED", "includeArtifacts": true, "historyLength": 1},
		&page); code != 0 || len(page.Tasks) != 1 || page.Tasks[0].ID != asks.ID || len(page.Tasks[0].History) != 1 {
		t.Errorf("%d %+v", code, page)
	}
	for _, params := range []map[string]any{{"pageSize": 101}, {"pageSize": -1}, {"pageToken": "no-such"}} {
		if code := v.call("ListTasks", params, &page); code == 0 {
			t.Errorf("%v", params)
		}
	}
}

// TestBadRequests checks the errors for invalid requests.
func TestBadRequests(t *testing.T) {
	h := newHouse(t, "ask")
	v := h.visitor(annsToken)
	for _, m := range []any{
		nil,
		map[string]any{},
		message{ID: "m", Role: "ROLE_USER"},
		say("  "),
		message{ID: "m", Role: "ROLE_USER", Parts: []part{{URL: "file:///etc/passwd"}}},
		message{ID: "m", Role: "ROLE_USER", Parts: []part{{Text: "look"}, {Raw: []byte("x"), MediaType: "application/pdf"}}},
		message{ID: "m", Role: "ROLE_USER", Parts: []part{{Text: "look"}, {Raw: []byte("x\xff"), MediaType: "text/plain"}}},
		message{ID: "m", Role: "ROLE_USER", ContextID: strings.Repeat("x", 300), Parts: []part{{Text: "hi"}}},
		message{ID: "m", Role: "ROLE_USER", ContextID: "a\u202eb", Parts: []part{{Text: "hi"}}},
		map[string]any{"messageId": "m", "role": "ROLE_USER", "parts": []any{nil}},
	} {
		if code := v.call("SendMessage", map[string]any{"message": m}, &json.RawMessage{}); code == 0 {
			t.Errorf("%+v", m)
		}
		if _, code := v.stream("SendStreamingMessage", map[string]any{"message": m}); code == 0 {
			t.Errorf("%+v", m)
		}
	}
	for _, method := range []string{
		"GetTaskPushNotificationConfig", "CreateTaskPushNotificationConfig", "ListTaskPushNotificationConfigs",
		"DeleteTaskPushNotificationConfig", "GetExtendedAgentCard", "NoSuch",
	} {
		if code := v.call(method, map[string]any{}, &json.RawMessage{}); code == 0 {
			t.Errorf("%s", method)
		}
	}
	v.version = "0.3"
	if _, code := v.send(say("say: hi"), false); code == 0 {
		t.Error("another version is taken")
	}
	for info, err := range h.host.List(t.Context()) {
		t.Errorf("session %s was begun: %v", info.ID, err)
	}
}

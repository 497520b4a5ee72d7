package subagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/session"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// teamCall is a call of the tool team with arguments of any type.
func teamCall(id, action string, more ...any) llm.Call {
	args := map[string]any{"action": action}
	for i := 0; i < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return call(id, "team", args)
}

// member spawns a member of the team in the background.
func member(id, name, task string, more ...any) llm.Call {
	return spawn(id, task, append([]any{"name", name, "background", true}, more...)...)
}

// gate is closed once.
type gate struct {
	once sync.Once
	ch   chan struct{}
}

func newGate() *gate   { return &gate{ch: make(chan struct{})} }
func (g *gate) open()  { g.once.Do(func() { close(g.ch) }) }
func (g *gate) await() { <-g.ch }

// memberOf finds a member by its name.
func memberOf(t *testing.T, st inspan.Status, name string) inspan.Child {
	t.Helper()
	for _, c := range st.Children {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("there is no %s", name)
	return inspan.Child{}
}

// TestIdleMembersWake checks that a member which has ended is idle, that a message of another wakes it, that it
// remembers its work, and that everybody sees names and states.
func TestIdleMembersWake(t *testing.T) {
	idle := newGate()
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{member("c1", "scout", "look around", "agent", "explore"), member("c2", "builder", "build")}, nil
		case task == "start":
			if strings.Contains(allText(req), "[agent scout: done") {
				idle.open()
			}
			return llm.Say("waiting"), nil
		case task == "build" && turn == 0:
			idle.await()
			return llm.Parts{teamCall("m", "members"), teamCall("s", "send", "to", "Scout", "text", "is the door open?")}, nil
		case task == "look around" && turn == 1:
			return llm.Say("heard: " + lastText(req)), nil
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	scout, builder := memberOf(t, s.Status(), "scout"), memberOf(t, s.Status(), "builder")
	if !scout.Returned.Idle || !builder.Returned.Idle || scout.Open || builder.Open {
		t.Errorf("%+v %+v", scout, builder)
	}
	if n := len(of[event.Spawned](events)); n != 4 { // twice the scout, and the second time also as it continues
		t.Errorf("%d spawned", n)
	}
	var heard string
	for _, e := range h.events(scout.Child) {
		if r, ok := e.Body.(event.Replied); ok {
			heard = r.Parts.Text()
		}
	}
	if !strings.Contains(heard, "is the door open?") && !strings.Contains(heard, "Go on: there are messages for you.") {
		t.Errorf("the scout heard %q", heard)
	}
	for _, e := range of[event.Ended](h.events(builder.Child)) {
		if e.Call == "m" && (!strings.Contains(text(e), "\nscout: explore, ") || !strings.Contains(text(e), "\nbuilder: worker; that is you")) {
			t.Errorf("%s", text(e))
		}
	}
}

// TestMailboxesLast checks that a message which came while no program ran, or when one ended before it woke the member,
// wakes it once the session is opened again, and once only.
func TestMailboxesLast(t *testing.T) {
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{member("c1", "scout", "look around")}, nil
		case task == "look around" && turn > 0:
			return llm.Say("heard: " + lastText(req)), nil
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	run(t, s, nil, say("start"))
	scout := memberOf(t, s.Status(), "scout")
	closed(t, s)
	m := event.Steered{By: "agent x", Origin: event.OriginAgent, Message: "k", Parts: llm.Say("come here")}
	for range 2 { // the second time as a call that is repeated after a crash sends it
		log, err := (&session.Store{Dir: h.dir}).Open(t.Context(), scout.Child)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := log.Append(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		s, err = h.host().Open(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, nil, say("anything new?"))
		testkit.WaitFor(t, "the scout to have heard it", func() bool { return len(of[event.Asked](h.events(scout.Child))) >= 2 })
		run(t, s, nil, say("and now?"))
		closed(t, s)
	}
	var words []string
	for _, e := range of[event.Replied](h.events(scout.Child)) {
		words = append(words, e.Parts.Text())
	}
	if got := strings.Join(words, "\n"); strings.Count(got, "come here") > 1 || len(words) != 2 {
		t.Errorf("%s", got)
	}
}

// TestPersonWakesMember checks that the words of a person to an idle member, from another process, wake it while its lead
// runs.
func TestPersonWakesMember(t *testing.T) {
	idle, heard := newGate(), newGate()
	h := newHouse(t, func(task string, _ int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && len(req.Messages) == 1:
			return llm.Parts{member("c1", "scout", "look around"), member("c2", "builder", "build")}, nil
		case task == "start" && strings.Contains(allText(req), "[agent scout: done"):
			idle.open()
		case task == "build":
			heard.await()
		case strings.Contains(allText(req), "look behind you"):
			heard.open()
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	defer closed(t, s)
	over := make(chan struct{}, 1)
	go func() {
		run(t, s, nil, say("start"))
		over <- struct{}{}
	}()
	idle.await()
	w, err := (&inspan.Host{Dir: h.dir}).Watch(t.Context(), memberOf(t, s.Status(), "scout").Child)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Send(t.Context(), say("look behind you")), w.Close()); err != nil {
		t.Fatal(err)
	}
	testkit.Receive(t, "the end of the run", over)
	if scout := memberOf(t, s.Status(), "scout"); scout.Open || !scout.Returned.Idle {
		t.Errorf("%+v", scout)
	}
}

// TestTasksWakeMembers checks that a task for an idle member wakes it once the tasks before it are done, and another at
// its time, and that what it does not claim is open for all.
func TestTasksWakeMembers(t *testing.T) {
	idle, again := newGate(), newGate()
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		last := lastText(req)
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{member("c1", "scout", "look around"), member("c2", "builder", "build")}, nil
		case task == "start":
			if strings.Contains(allText(req), "[agent scout: done") {
				idle.open()
			}
			if strings.Count(allText(req), "[agent scout: done") == 2 {
				again.open()
			}
			return llm.Say("waiting"), nil
		case task == "build" && turn == 0:
			idle.await()
			return llm.Parts{
				teamCall("1", "add_task", "text", "first"),
				teamCall("2", "add_task", "text", "second", "to", "scout", "after", []string{"1"}),
				teamCall("3", "claim", "task", "1"),
			}, nil
		case task == "build" && turn == 1:
			return llm.Parts{teamCall("4", "done", "task", "1", "text", "ok")}, nil
		case task == "build" && turn == 2:
			again.await()
			return llm.Parts{teamCall("5", "add_task", "text", "third", "to", "scout", "seconds", 1)}, nil
		case task == "look around" && strings.Contains(last, "Task 2 is for you"):
			return llm.Parts{teamCall("7", "claim", "task", "2")}, nil
		case task == "look around" && strings.Contains(last, "is yours: second"):
			return llm.Parts{teamCall("8", "done", "task", "2", "text", "so")}, nil
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	scout := memberOf(t, s.Status(), "scout")
	testkit.WaitFor(t, "the third task", func() bool {
		return strings.Count(h.said(scout.Child), "Task 3 is for you") == 1 && len(of[event.Stopped](h.events(scout.Child))) == 3
	})
	run(t, s, nil, say("and now?"))
	list := s.Status().Tasks.List
	if !list[1].Done || list[1].Holder != scout.Child || list[2].Done || list[2].For != "" {
		t.Errorf("%+v", list)
	}
	if got := h.said(scout.Child); strings.Count(got, "Task 2 is for you") != 1 {
		t.Errorf("%s", got)
	}
}

// said is what a session was told.
func (h *house) said(id string) string {
	var out []string
	for _, e := range h.events(id) {
		switch b := e.Body.(type) {
		case event.Said:
			out = append(out, b.Parts.Text())
		case event.Steered:
			out = append(out, b.Parts.Text())
		}
	}
	return strings.Join(out, "\n")
}

// checking is a tool bash whose commands pass as long as ok says so.
func checking(ok func(command string) bool) tool.Tool {
	return tool.Tool{
		Name: "bash", Doc: "Runs.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}}}`),
		Effects: tool.NoEffects,
		Run: func(_ context.Context, c *tool.Call) (tool.Result, error) {
			var in struct{ Command string }
			_ = json.Unmarshal(c.Args, &in)
			res, code := tool.Text("ran "+in.Command), 0
			if !ok(in.Command) {
				code = 1
			}
			res.Exit = &code
			return res, nil
		},
	}
}

// TestTasksHaveEvidence checks that a task with a check is done only once the harness has run it and it has passed,
// whatever the model says, and that the log of the member has the proof.
func TestTasksHaveEvidence(t *testing.T) {
	var mu sync.Mutex
	var ran []string
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{teamCall("a", "add_task", "text", "make it work", "check", "go test ./x")}, nil
		case task == "start" && turn == 1:
			return llm.Parts{teamCall("z", "done", "task", "1"), spawn("c1", "work", "name", "fixer")}, nil
		case task == "work" && turn < 4:
			return llm.Parts{[]llm.Call{
				teamCall("1", "claim", "task", "1"), call("2", "finish_task", map[string]any{"task": "1", "check": "true"}),
				teamCall("3", "done", "task", "1", "text", "it works"), teamCall("4", "done", "task", "1", "text", "now it does"),
			}[turn]}, nil
		}
		return llm.Say(lastText(req)), nil
	}, checking(func(command string) bool {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, command)
		return command == "true" || len(ran) > 3
	}))
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if e := got["z"]; !strings.Contains(text(e), "its check did not pass: it ended with exit code 1") {
		t.Errorf("the lead: %s", text(e))
	}
	fixer := memberOf(t, s.Status(), "fixer")
	theirs := ended(h.events(fixer.Child))
	if e := theirs["2"]; !strings.Contains(text(e), "task 1 is done once its check passes: go test ./x") {
		t.Errorf("another check: %s", text(e))
	}
	if e := theirs["3"]; e.Outcome == event.OutcomeOK || !strings.Contains(text(e), "ran go test ./x") || !strings.Contains(text(e), "exit code 1") {
		t.Errorf("a failed check: %s", text(e))
	}
	task := s.Status().Tasks.List[0]
	if !task.Done || task.Evidence != "4" || task.Holder != fixer.Child || task.Result != "now it does" {
		t.Errorf("%+v", task)
	}
	proof := false
	for _, e := range of[event.Ended](h.events(fixer.Child)) {
		proof = proof || e.Parent == task.Evidence && e.Exit != nil && *e.Exit == 0
	}
	if want := []string{"go test ./x", "true", "go test ./x", "go test ./x"}; !proof || !slices.Equal(ran, want) {
		t.Errorf("ran %q, proof %v", ran, proof)
	}
}

// TestShutdown checks that a member is asked to shut down and may refuse, and that one who has left is not woken.
func TestShutdown(t *testing.T) {
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		last := lastText(req)
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "stay", "name", "stayer"), spawn("c2", "go", "name", "goer")}, nil
		case task == "start" && turn == 1:
			return llm.Parts{
				call("d1", "manage_agents", map[string]any{"action": "shutdown", "agent": "stayer"}),
				call("d2", "manage_agents", map[string]any{"action": "shutdown", "agent": "goer"}),
			}, nil
		case task == "start" && strings.Count(allText(req), "[agent goer: done") == 2 && !strings.Contains(allText(req), "parent: the agent"):
			return llm.Parts{teamCall("m", "members"), teamCall("s", "send", "to", "goer", "text", "x")}, nil
		case task == "stay" && strings.Contains(last, "You are asked to shut down"):
			return llm.Parts{teamCall("1", "send", "to", "parent", "text", "I am not done")}, nil
		case task == "go" && strings.Contains(last, "You are asked to shut down"):
			return llm.Parts{teamCall("1", "leave")}, nil
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	if st := s.Status(); !memberOf(t, st, "stayer").Returned.Idle || memberOf(t, st, "goer").Returned.Idle {
		t.Errorf("%+v", st.Children)
	}
	got := ended(events)
	if e := got["s"]; !strings.Contains(text(e), `no agent "goer" works; there are stayer`) && !strings.Contains(text(e), "no other agent works") {
		t.Errorf("%s", text(e))
	}
	refused := false
	for _, m := range of[event.Steered](events) {
		refused = refused || strings.Contains(m.Parts.Text(), "[agent stayer says; it is not the person:]\nI am not done")
	}
	if !refused {
		t.Error("the lead has not heard why one stays")
	}
}

// TestPlansAreApproved checks that a member whose plan needs approval changes nothing before it, that the lead or the
// person approves, and that the approval outlives the program.
func TestPlansAreApproved(t *testing.T) {
	for _, who := range []string{"lead", "person"} {
		var ran atomic.Int32
		h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
			last := allText(llm.Request{Messages: req.Messages[max(0, len(req.Messages)-2):]}) // one may say that the mode has changed
			switch {
			case task == "start" && turn == 0:
				return llm.Parts{spawn("c1", "build", "name", "builder", "plan", who)}, nil
			case task == "start" && turn < 3:
				return llm.Parts{call(fmt.Sprint("a", turn), "manage_agents", map[string]any{"action": "approve", "agent": "builder"})}, nil
			case strings.HasSuffix(last, "again"):
				return llm.Parts{call("g", "manage_agents", map[string]any{"action": "message", "agent": "builder", "text": "go on"})}, nil
			case task == "build" && (turn == 0 || strings.Contains(last, "carry it out") || strings.Contains(last, "go on")):
				return llm.Parts{call(fmt.Sprint("x", turn), "change", nil)}, nil
			}
			return llm.Say("my plan"), nil
		}, changing(&ran))
		h.adjust = func(a *inspan.Agent) { a.Mode = "yolo" }
		s := h.open()
		var ranBy []int32 // when each approval was asked for
		answers := []string{"Reject", "Approve"}
		events := run(t, s, func(e event.Event) {
			switch b := e.Body.(type) {
			case event.Started:
				if strings.HasPrefix(b.Call, "a") {
					ranBy = append(ranBy, ran.Load())
				}
			case event.Raised:
				if !strings.Contains(b.Preview, "my plan") {
					t.Errorf("the person sees %+v", b)
				}
				if err := s.Send(t.Context(), event.Decided{Call: b.ID, Question: e.Seq, Allow: true, Answer: answers[0]}); err != nil {
					t.Error(err)
				}
				answers = answers[1:]
			}
		}, say("start"))
		closed(t, s)
		want, results := []int32{0, 1}, []string{"my plan", "it has no plan to approve"}
		if who == "person" {
			want, results = []int32{0, 0}, []string{"The person does not approve the plan: Reject", "my plan"}
		}
		got := ended(events)
		if !slices.Equal(ranBy, want) || ran.Load() != 1 || !strings.Contains(text(got["a1"]), results[0]) || !strings.Contains(text(got["a2"]), results[1]) ||
			!strings.Contains(text(got["c1"]), "[that is its plan:") {
			t.Errorf("%s: ran %d, at approvals %v: %s, %s, %s", who, ran.Load(), ranBy, text(got["c1"]), text(got["a1"]), text(got["a2"]))
		}
		s, err := h.host().Open(t.Context(), s.ID())
		if err != nil {
			t.Fatal(err)
		}
		run(t, s, nil, say("again"))
		closed(t, s)
		if ran.Load() != 2 {
			t.Errorf("%s: in the next program it ran %d times", who, ran.Load())
		}
	}
}

// TestNamesAreUnique checks which names members can have, and that two can't have the same.
func TestNamesAreUnique(t *testing.T) {
	h := newHouse(t, func(task string, turn int, _ llm.Request) (llm.Parts, error) {
		if task == "start" && turn == 0 {
			return llm.Parts{
				spawn("c1", "a", "name", "scout"), spawn("c2", "b", "name", "parent"), spawn("c3", "c", "name", "two words"),
				spawn("c4", "d", "name", strings.Repeat("x", 33)), spawn("c5", "e", "name", "crew", "count", 2),
			}, nil
		}
		if task == "start" && turn == 1 {
			return llm.Parts{spawn("d1", "f", "name", "SCOUT"), spawn("d2", "g", "name", "crew-2")}, nil
		}
		return llm.Say("done"), nil
	})
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	for id, want := range map[string]string{
		"c1": "[agent scout: done", "c2": "stands for others", "c3": "letters, digits", "c4": "at most 32", "c5": "[agent crew-2: done",
		"d1": "there is a scout already", "d2": "there is a crew-2 already",
	} {
		if !strings.Contains(text(got[id]), want) {
			t.Errorf("%s: %s, want %s", id, text(got[id]), want)
		}
	}
}

// TestWait checks that a member waits for a message, for a task, or for a time.
func TestWait(t *testing.T) {
	var here sync.WaitGroup
	here.Add(2)
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "mail", "name", "a"), spawn("c2", "task", "name", "b"), spawn("c3", "time", "name", "c"), spawn("c4", "send", "name", "d")}, nil
		case task == "mail" && turn == 0, task == "task" && turn == 0:
			here.Done()
			return llm.Parts{teamCall("w", "wait", "seconds", 500)}, nil
		case task == "time" && turn == 0:
			return llm.Parts{teamCall("w", "wait", "seconds", 1)}, nil
		case task == "task" && turn == 1:
			return llm.Parts{teamCall("c", "claim", "task", "1")}, nil
		case task == "task" && turn == 2:
			return llm.Parts{teamCall("d", "done", "task", "1")}, nil
		case task == "send" && turn == 0:
			return llm.Parts{call("x", "look", nil)}, nil
		case task == "send" && turn == 1:
			return llm.Parts{teamCall("1", "send", "to", "a", "text", "hello"), teamCall("2", "add_task", "to", "b", "text", "do it")}, nil
		}
		return llm.Say(lastText(req)), nil
	}, looking(func(context.Context, *tool.Call) error { here.Wait(); return nil }))
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	for name, want := range map[string]string{"a": "There are messages for you.", "c": "Nothing came in 1 seconds."} {
		if got := text(ended(h.events(memberOf(t, s.Status(), name).Child))["w"]); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := text(ended(h.events(memberOf(t, s.Status(), "b").Child))["w"]); got != "Task 1 can be claimed." && got != "There are messages for you." {
		t.Errorf("b: %q", got)
	}
}

// allText is the text of all messages of a request.
func allText(req llm.Request) string {
	var out []string
	for _, m := range req.Messages {
		out = append(out, lastText(llm.Request{Messages: []llm.Message{m}}))
	}
	return strings.Join(out, "\n")
}

package subagent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

func team(id, action string, more ...string) llm.Call {
	args := map[string]any{"action": action}
	for i := 0; i < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	return call(id, "team", args)
}

// lastText is the text of the last message of a request, of results too.
func lastText(req llm.Request) string {
	var out []string
	last := len(req.Messages) - 1
	if last > 0 && strings.HasPrefix(req.Messages[last].Parts.Text(), "[You are agent ") { // which stands after the task
		last--
	}
	for _, p := range req.Messages[last].Parts {
		switch p := p.(type) {
		case llm.Text:
			out = append(out, p.Text)
		case llm.Result:
			out = append(out, p.Parts.Text())
		}
	}
	return strings.Join(out, "\n")
}

// TestClaims checks that of many agents that claim a task at once exactly one has it, that the others learn which one,
// and that the log has every attempt.
func TestClaims(t *testing.T) {
	const n, tasks = 6, 5
	var mu sync.Mutex
	won := map[string]int{}
	lost := 0
	gates := []chan struct{}{make(chan struct{}), make(chan struct{})} // all come to each before any goes on
	waiting := 0
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			var parts llm.Parts
			for i := range tasks {
				parts = append(parts, team(fmt.Sprint("a", i), "add_task", "text", fmt.Sprint("thing ", i)))
			}
			return parts, nil
		case task == "start" && turn == 1:
			return llm.Parts{call("c1", "spawn_agent", map[string]any{"task": "part", "count": n})}, nil
		case task == "start" && turn == 2:
			return llm.Parts{team("l", "tasks")}, nil
		case task == "start":
			return llm.Say(lastText(req)), nil
		case turn == 0 || turn == tasks+1:
			return llm.Parts{call("x", "look", nil)}, nil
		case turn <= tasks:
			return llm.Parts{team(fmt.Sprint("k", turn), "claim", "task", fmt.Sprint(turn))}, nil
		case turn == tasks+2:
			return llm.Parts{team("d", "done", "task", "1", "text", "it is so"), team("r", "release", "task", "2")}, nil
		}
		return llm.Say("done"), nil
	}, looking(func(context.Context, *tool.Call) error {
		mu.Lock()
		gate := gates[waiting/n]
		if waiting++; waiting%n == 0 {
			close(gate)
		}
		mu.Unlock()
		<-gate
		return nil
	}))
	h.adjust = func(*inspan.Agent) {}
	s := h.open()
	defer closed(t, s)
	events := run(t, s, nil, say("start"))
	for _, sp := range of[event.Spawned](events) {
		for e, err := range h.host().Events(t.Context(), sp.Child) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Ended); ok && strings.HasPrefix(b.Call, "k") {
				switch {
				case b.Outcome == event.OutcomeOK && strings.Contains(text(b), "is yours: thing"):
					won[b.Call]++
				case strings.Contains(text(b), "'s already") && strings.Contains(text(b), "worker "):
					lost++
				default:
					t.Errorf("%s: %s", b.Call, text(b))
				}
			}
		}
	}
	if len(won) != tasks || won["k1"]+won["k2"]+won["k3"]+won["k4"]+won["k5"] != tasks || lost != tasks*(n-1) {
		t.Errorf("won %v, %d lost", won, lost)
	}
	list := s.Status().Tasks.List
	if len(list) != tasks || !list[0].Done || list[0].Result != "it is so" || list[1].Holder != "" || list[4].Holder != "" {
		t.Errorf("%+v", list)
	}
	shown := text(ended(events)["l"])
	if !strings.Contains(shown, "[done by worker ") || !strings.Contains(shown, "   → it is so") ||
		!strings.Contains(shown, "5 [open] thing ") {
		t.Errorf("%s", shown)
	}
}

// TestTaskCalls checks the result of each call that changes a list, or fails to.
func TestTaskCalls(t *testing.T) {
	steps := []struct {
		call llm.Call
		want string
	}{
		{team("1", "tasks"), "There are no tasks."},
		{team("2", "add_task"), "text is empty"},
		{team("3", "add_task", "text", "the first"), "It is task 1."},
		{team("4", "add_task", "text", strings.Repeat("x", 3000)), "more than"},
		{team("5", "claim", "task", "7"), `no task "7"`},
		{team("6", "done", "task", "1"), "is done"},
		{team("7", "claim", "task", "#1"), "done, by you"},
		{team("8", "add_task", "text", "the second"), "It is task 2."},
		{team("9", "release", "task", "2"), "is nobody's"},
		{team("10", "claim", "task", "2"), "Task 2 is yours: the second"},
		{team("11", "claim", "task", "2"), "Task 2 is yours"},
		{team("12", "tasks"), "1 [done by parent] the first\n2 [parent has it] the second"},
		{team("13", "release", "task", "2"), "is open again"},
		{call("19", "team", map[string]any{"action": "add_task", "text": "the third", "after": []string{"#2", "1"}}), "It is task 3."},
		{team("20", "claim", "task", "3"), "task 3 waits for task 2, which must be done first"},
		{team("21", "tasks"), "3 [waits for task 2] the third"},
		{call("22", "team", map[string]any{"action": "add_task", "text": "x", "after": []string{"4"}}), `no task "4" to come after`},
		{team("23", "add_task", "text", "x", "to", "k3f9a2"), "no other agent works"},
		{team("24", "done", "task", "2"), "is done"},
		{team("25", "claim", "task", "3"), "Task 3 is yours: the third"},
		{team("14", "steal"), `"steal" is none of`},
		{team("15", "send", "to", "all", "text", "x"), "no other agent works"},
		{team("16", "send", "to", "parent", "text", "x"), "work for nobody"},
		{team("17", "send", "to", "all"), "text is empty"},
		{team("18", "send", "to", "all", "text", strings.Repeat("x", 9000)), "more than"},
	}
	h := newHouse(t, func(_ string, turn int, _ llm.Request) (llm.Parts, error) {
		if turn < len(steps) {
			return llm.Parts{steps[turn].call}, nil
		}
		return llm.Say("done"), nil
	})
	h.adjust = func(a *inspan.Agent) { a.Limits.Turns = -1 }
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	for _, step := range steps {
		if !strings.Contains(text(got[step.call.ID]), step.want) {
			t.Errorf("%s: %s, want %s", step.call.ID, text(got[step.call.ID]), step.want)
		}
	}
}

// TestTasksInOrder checks that tasks of one reply have their numbers in its order, so that they can name each other.
func TestTasksInOrder(t *testing.T) {
	const n = 12
	h := newHouse(t, func(_ string, turn int, _ llm.Request) (parts llm.Parts, err error) {
		if turn > 0 {
			return llm.Say("done"), nil
		}
		for i := range n {
			args := map[string]any{"action": "add_task", "text": fmt.Sprint(i + 1)}
			if i > 0 {
				args["after"] = []string{fmt.Sprint(i)}
			}
			parts = append(parts, call(fmt.Sprint("c", i), "team", args))
		}
		return parts, nil
	})
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	list := s.Status().Tasks.List
	for i, task := range list {
		if task.Text != task.ID || i > 0 && len(task.After) != 1 {
			t.Errorf("%+v", task)
		}
	}
	if len(list) != n {
		t.Errorf("%d tasks", len(list))
	}
}

// TestMail checks that messages reach one sibling, all of them or the parent before the next step, that they name the
// sender, and that taint goes along.
func TestMail(t *testing.T) {
	var all sync.WaitGroup // of those that have been sent to
	all.Add(1)
	told := make(chan struct{})
	started := make(chan struct{}, 2)
	var mu sync.Mutex
	heard := map[string]string{}
	fetch := looking(nil)
	fetch.Name = "fetch"
	fetch.Effects = func(context.Context, *tool.Call) ([]tool.Effect, error) {
		return []tool.Effect{{Kind: tool.Network, Text: "example.com"}}, nil
	}
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		raw, _ := json.Marshal(req.Messages)
		mu.Lock()
		heard[task] = string(raw)
		mu.Unlock()
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "listener"), spawn("c2", "planner", "agent", "plan"), spawn("c3", "sender")}, nil
		case task == "sender" && turn == 0:
			return llm.Parts{call("f", "fetch", nil), call("w", "wait", nil)}, nil
		case task == "sender" && turn == 1:
			return llm.Parts{
				team("1", "send", "to", "all", "text", "to all of you"), team("2", "send", "to", "plan", "text", "to the planner"),
				team("3", "send", "to", "parent", "text", "to the parent"), team("4", "send", "to", "wizard", "text", "x"),
				team("5", "send", "to", "worker", "text", "to the worker"), team("6", "add_task", "to", "plan", "text", "draw a map"),
			}, nil
		case task == "sender" && turn == 2:
			return llm.Parts{team("7", "claim", "task", "1"), team("8", "tasks")}, nil
		case task == "sender" && turn == 3:
			close(told)
			return llm.Say(lastText(req)), nil
		case task != "start" && turn == 0:
			return llm.Parts{call("x", "look", nil)}, nil
		}
		return llm.Say("done"), nil
	}, looking(func(context.Context, *tool.Call) error { started <- struct{}{}; <-told; return nil }), fetch, func() tool.Tool {
		w := looking(func(context.Context, *tool.Call) error { <-started; <-started; return nil })
		w.Name = "wait"
		return w
	}())
	h.adjust = func(a *inspan.Agent) { a.Mode = "yolo" }
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	mu.Lock()
	defer mu.Unlock()
	for task, want := range map[string][]string{
		"listener": {"to all of you", "to the worker"},
		"planner":  {"to all of you", "to the planner"}, "start": {"to the parent"},
	} {
		for _, w := range want {
			if !strings.Contains(heard[task], "says; it is not the person:]\\n"+w) || !strings.Contains(heard[task], "[agent worker ") {
				t.Errorf("%s did not hear %q", task, w)
			}
		}
	}
	if strings.Contains(heard["listener"], "to the planner") || strings.Contains(heard["sender"], "[agent worker ") ||
		!strings.Contains(heard["sender"], `no agent \"wizard\" works; there are plan `) ||
		!strings.Contains(heard["sender"], "task 1 is for plan ") || !strings.Contains(heard["sender"], "1 [open, for plan ") {
		t.Errorf("the sender heard %s", heard["sender"])
	}
	for _, c := range s.Status().Children {
		for e, err := range h.host().Events(t.Context(), c.Child) {
			if err != nil {
				t.Fatal(err)
			}
			if b, ok := e.Body.(event.Steered); ok && b.Origin == event.OriginAgent && !b.Untrusted {
				t.Errorf("what one said that has seen the web does not count as such: %+v", b)
			}
		}
	}
}

// TestUnfinishedTasksAreTold checks that the parent learns which tasks a child has claimed and not marked done, and
// that members learn who is there.
func TestUnfinishedTasksAreTold(t *testing.T) {
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{team("a", "add_task", "text", "first"), team("b", "add_task", "text", "second"), team("m", "members")}, nil
		case task == "start" && turn == 1:
			return llm.Parts{spawn("c1", "child")}, nil
		case task == "child" && turn == 0:
			return llm.Parts{team("1", "claim", "task", "1"), team("2", "claim", "task", "2"), team("3", "members")}, nil
		case task == "child" && turn == 1:
			return llm.Parts{team("4", "done", "task", "1", "text", "did it")}, nil
		}
		return llm.Say(lastText(req)), nil
	})
	s := h.open()
	defer closed(t, s)
	got := ended(run(t, s, nil, say("start")))
	if e := got["c1"]; !strings.Contains(text(e), "[it has not marked done what it claimed, so it is open again: task 2]") {
		t.Errorf("%s", text(e))
	}
	if e := got["m"]; text(e) != "parent: the agent that the others work for; that is you\nNo other agent works." {
		t.Errorf("%s", text(e))
	}
	child := s.Status().Children[0].Child
	heard := ""
	for e, err := range h.host().Events(t.Context(), child) {
		if b, is := e.Body.(event.Ended); err == nil && is && b.Call == "3" {
			heard = b.Parts.Text()
		}
	}
	if name := child[strings.LastIndexByte(child, '.')+1:]; heard != "parent: the agent that the others work for\n"+name+": worker; that is you" {
		t.Errorf("%q", heard)
	}
}

// TestMembersKnowEachOther checks that of agents that one reply asks for each finds all, even if the others have
// not begun: three may work at once.
func TestMembersKnowEachOther(t *testing.T) {
	asked, n := make(chan struct{}), atomic.Int32{} // no one comes back before three have asked
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{spawn("c1", "one"), spawn("c2", "two", "agent", "plan"), spawn("c3", "three", "count", 2)}, nil
		case turn == 0:
			return llm.Parts{team("m", "members")}, nil
		case task != "start":
			if n.Add(1) == 3 {
				close(asked)
			}
			<-asked
		}
		return llm.Say(lastText(req)), nil
	})
	h.open3 = true
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	children := s.Status().Children
	if len(children) != 4 {
		t.Fatalf("%d agents", len(children))
	}
	for e, err := range h.host().Events(t.Context(), children[0].Child) { // the first one, which began before the fourth could
		b, is := e.Body.(event.Ended)
		if err != nil || !is {
			continue
		}
		for _, c := range children {
			if name := c.Child[strings.LastIndexByte(c.Child, '.')+1:] + ": " + c.Agent; !strings.Contains(b.Parts.Text(), name) {
				t.Errorf("%q lacks %s", b.Parts.Text(), name)
			}
		}
	}
}

// TestTeamsOfTeams checks that one who has agents and is one has both: the list of those it is among, and its own.
func TestTeamsOfTeams(t *testing.T) {
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{team("a", "add_task", "text", "upper")}, nil
		case task == "start" && turn == 1:
			return llm.Parts{spawn("c1", "middle")}, nil
		case task == "middle" && turn == 0:
			return llm.Parts{
				call("m1", "team", map[string]any{"action": "add_task", "text": "lower", "own": true}),
				team("m2", "claim", "task", "1"),
			}, nil
		case task == "middle" && turn == 1:
			return llm.Parts{spawn("d1", "leaf")}, nil
		case task == "leaf" && turn == 0:
			return llm.Parts{team("l1", "tasks"), call("l2", "team", map[string]any{"action": "tasks", "own": true})}, nil
		}
		return llm.Say(lastText(req)), nil
	})
	s := h.open()
	defer closed(t, s)
	e := ended(run(t, s, nil, say("start")))["c1"]
	if !strings.Contains(text(e), "1 [open] lower") || strings.Contains(text(e), "upper") ||
		!strings.Contains(text(e), "you have no team here") {
		t.Errorf("%s", text(e))
	}
	if list := s.Status().Tasks.List; len(list) != 1 || list[0].Text != "upper" {
		t.Errorf("%+v", list)
	}
}

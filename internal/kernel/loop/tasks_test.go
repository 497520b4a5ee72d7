package loop_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/kernel/loop"
)

// listed writes a list as "1:holder 2! 3", done ones with a mark.
func listed(t loop.Tasks) string {
	var out []string
	for _, task := range t.List {
		text := task.ID
		if task.Holder != "" {
			text += ":" + task.Holder
		}
		if task.Done {
			text += "!"
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// TestTasks checks the effect of each action, and on which task.
func TestTasks(t *testing.T) {
	do := func(action event.TaskAction, id, by string) event.Body {
		return event.Tasked{Action: action, ID: id, By: by, Text: "t"}
	}
	add := do(loop.TaskAdd, "", "s")
	called := func(call, text string) event.Body {
		return event.Tasked{Action: loop.TaskAdd, By: "s", Call: call, Text: text}
	}
	later := func(by string, after ...string) event.Body {
		return event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t", After: after, For: by}
	}
	for name, tc := range map[string]struct {
		bodies []event.Body
		want   string
	}{
		"it waits for others":      {[]event.Body{add, add, later("", "1", "2"), do("done", "1", "s"), do("claim", "3", "a")}, "1:s! 2 3"},
		"until they are done":      {[]event.Body{add, later("", "1"), do("done", "1", "s"), do("claim", "2", "a")}, "1:s! 2:a"},
		"for nothing that comes":   {[]event.Body{add, later("", "2"), later("", "3"), later("", "0"), later("", "01"), later("", "x")}, "1"},
		"it is for one":            {[]event.Body{later("a"), do("claim", "1", "b")}, "1"},
		"who can claim it":         {[]event.Body{later("a"), do("claim", "1", "a")}, "1:a"},
		"until that one has ended": {[]event.Body{later("a"), event.Returned{Child: "a"}, do("claim", "1", "b")}, "1:b"},
		"or is in another session": {[]event.Body{later("a"), event.Forked{From: "x"}, do("claim", "1", "b")}, "1:b"},
		"numbers":                  {[]event.Body{add, add, add}, "1 2 3"},
		"the first claim wins":     {[]event.Body{add, do("claim", "1", "a"), do("claim", "1", "b")}, "1:a"},
		"no such task":             {[]event.Body{add, do("claim", "2", "a"), do("done", "", "a")}, "1"},
		"released":                 {[]event.Body{add, do("claim", "1", "a"), do("release", "1", "a"), do("claim", "1", "b")}, "1:b"},
		"not by others":            {[]event.Body{add, do("claim", "1", "a"), do("release", "1", "b"), do("done", "1", "b")}, "1:a"},
		"but by the session":       {[]event.Body{add, add, do("claim", "1", "a"), do("release", "1", "s"), do("done", "2", "s")}, "1 2:s!"},
		"done": {
			[]event.Body{add, do("claim", "1", "a"), do("done", "1", "a"), do("claim", "1", "b"), do("release", "1", "s")},
			"1:a!",
		},
		"not done by nobody": {[]event.Body{add, do("done", "1", "a")}, "1"},
		"who is back holds no": {[]event.Body{
			add, add, add, do("claim", "1", "a"), do("claim", "2", "b"), do("claim", "3", "a"),
			do("done", "3", "a"),
			event.Returned{Child: "a"},
		}, "1 2:b 3:a!"},
		"a fork has no holders": {[]event.Body{add, add, do("claim", "1", "a"), do("done", "2", "s"), event.Forked{From: "x"}}, "1 2:s!"},
		"an idle one keeps what can't be claimed": {
			[]event.Body{add, later("a", "1"), later("a"), event.Returned{Child: "a", Idle: true}, do("claim", "3", "b"), do("done", "1", "s"), do("claim", "2", "b"), do("claim", "2", "a")},
			"1:s! 2:a 3:b",
		},
		"assigned": {[]event.Body{
			add, do("claim", "1", "a"),
			event.Tasked{Action: loop.TaskAssign, ID: "1", By: "s", For: "b"},
			do("claim", "1", "a"), do("done", "1", "a"), do("claim", "1", "b"),
		}, "1:b"},
		"not by others to others": {[]event.Body{add, do("claim", "1", "a"), event.Tasked{Action: loop.TaskAssign, ID: "1", By: "a", For: "b"}}, "1:a"},
		"not before its time":     {[]event.Body{event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t", At: time.Unix(9, 0)}, do("claim", "1", "a")}, "1"},
		"edited": {[]event.Body{
			event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t", At: time.Unix(9, 0)},
			add, later("", "2"),
			event.Tasked{Action: loop.TaskEdit, ID: "1", By: "s", At: time.Unix(-9, 0)},
			do("claim", "1", "a"),
			event.Tasked{Action: loop.TaskEdit, ID: "3", By: "s", After: []string{}},
			do("claim", "3", "a"),
			event.Tasked{Action: loop.TaskEdit, ID: "2", By: "s", After: []string{"3"}},
			do("claim", "2", "a"), // it would wait for itself
		}, "1:a 2:a 3:a"},
		"not edited by others": {[]event.Body{add, event.Tasked{Action: loop.TaskEdit, ID: "1", By: "b", At: time.Unix(9, 0)}, do("claim", "1", "a")}, "1:a"},
		"done after its check": {[]event.Body{
			event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t", Check: "make"},
			do("claim", "1", "a"), do("done", "1", "a"), do("done", "1", "s"),
			event.Tasked{Action: loop.TaskDone, ID: "1", By: "a", Check: "true"},
		}, "1:a"},
		"with its check": {[]event.Body{
			event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t", Check: "make"},
			do("claim", "1", "a"),
			event.Tasked{Action: loop.TaskDone, ID: "1", By: "a", Check: "make"},
		}, "1:a!"},
		"a call made again": {[]event.Body{called("1", "x"), called("1", "x"), called("1", "y"), called("2", "x")}, "1 2 3"},
		"unknown action":    {[]event.Body{add, do("steal", "1", "s")}, "1"},
	} {
		var list loop.Tasks
		for _, b := range tc.bodies {
			before := list
			kept := listed(before)
			list = list.After("s", event.Event{Body: b, Time: time.Unix(5, 0)})
			if listed(before) != kept {
				t.Errorf("%s: %T changed the list before it", name, b)
			}
		}
		if got := listed(list); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestMostTasks checks that a list is bounded, and that only finished tasks are dropped.
func TestMostTasks(t *testing.T) {
	var list loop.Tasks
	add := event.Event{Body: event.Tasked{Action: loop.TaskAdd, By: "s", Text: "t"}}
	for range loop.MaxTasks + 5 {
		list = list.After("s", add)
	}
	if len(list.List) != loop.MaxTasks || list.Last != loop.MaxTasks {
		t.Fatalf("%d tasks, the last is %d", len(list.List), list.Last)
	}
	list = list.After("s", event.Event{Body: event.Tasked{Action: loop.TaskDone, ID: "7", By: "s"}})
	list = list.After("s", add)
	if list.Find("7") != nil || list.Find(fmt.Sprint(loop.MaxTasks+1)) == nil || len(list.List) != loop.MaxTasks {
		t.Error("what was done does not make room")
	}
}

// TestTasksInState checks that the state has the list, also through a snapshot, and that a rewind does not take it
// back.
func TestTasksInState(t *testing.T) {
	var s, earlier loop.State
	seq := uint64(0)
	apply := func(to *loop.State, b event.Body) {
		seq++
		if err := to.Apply(event.Event{Seq: seq, Session: "s", Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	for _, b := range []event.Body{event.Opened{Root: "/w"}, event.Said{}} {
		apply(&s, b)
		apply(&earlier, b)
	}
	apply(&s, event.Spawned{Child: "s.1", Task: "x"})
	apply(&s, event.Tasked{Action: loop.TaskAdd, By: "s.1", Text: "t", Taint: event.Taint{Untrusted: true}})
	apply(&s, event.Tasked{Action: loop.TaskClaim, ID: "1", By: "s.1"})
	if listed(s.Tasks) != "1:s.1" || !s.Untrusted || s.Private {
		t.Errorf("%+v", s.Tasks)
	}
	raw, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var again loop.State
	if err := json.Unmarshal(raw, &again); err != nil || !reflect.DeepEqual(again.Tasks, s.Tasks) {
		t.Errorf("%+v %v", again.Tasks, err)
	}
	rewound, err := s.Rewound(&earlier, false)
	if err != nil {
		t.Fatal(err)
	}
	apply(&s, rewound)
	if listed(s.Tasks) != "1:s.1" {
		t.Errorf("after a rewind: %s", listed(s.Tasks))
	}
	apply(&s, event.Returned{Child: "s.1"})
	if listed(s.Tasks) != "1" {
		t.Errorf("after the child has come back: %s", listed(s.Tasks))
	}
}

// TestMembersInState checks that the first of two members has a name, that an idle one is idle until it works again, and
// that a fork has neither: its members belong to the original.
func TestMembersInState(t *testing.T) {
	var s loop.State
	apply := func(bodies ...event.Body) {
		for _, b := range bodies {
			if err := s.Apply(event.Event{Seq: s.Seq + 1, Session: "s", Body: b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	apply(event.Opened{Root: "/w"}, event.Said{}, event.Spawned{Child: "s.1", Name: "scout", Mode: "plan"}, event.Spawned{Child: "s.2", Name: "SCOUT"})
	apply(event.Returned{Child: "s.1", Idle: true}, event.Returned{Child: "s.2"})
	if c := s.Children; c[0].Name != "scout" || c[1].Name != "" || !c[0].Idle() || c[1].Idle() {
		t.Errorf("%+v", c)
	}
	apply(event.Spawned{Child: "s.1", Name: "scout", Mode: "edit"})
	if c := s.Children[0]; c.Idle() || !c.Open || c.Mode != "edit" {
		t.Errorf("%+v", c)
	}
	apply(event.Returned{Child: "s.1", Idle: true}, event.Forked{From: "s"})
	if c := s.Children[0]; c.Idle() || c.Name != "" {
		t.Errorf("%+v", c)
	}
}

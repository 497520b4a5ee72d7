package subagent_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/tool"
)

// watching is a hook that does what f says.
type watching struct {
	mu   sync.Mutex
	seen []tool.Moment
	f    func(p tool.Point) tool.Outcome
}

func (w *watching) At(_ context.Context, p tool.Point) (tool.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen = append(w.seen, p.Moment)
	return w.f(p), nil
}

// TestHooksSeeChildren checks that hooks run when a child begins and stops: one may add to its task, refuse it, or make
// it continue.
func TestHooksSeeChildren(t *testing.T) {
	rounds := 0
	w := &watching{f: func(p tool.Point) tool.Outcome {
		switch {
		case p.Moment == tool.AgentStart && strings.Contains(p.Text, "part 1"):
			return tool.Outcome{Action: tool.Deny, By: "the hook", Reason: "one is enough"}
		case p.Moment == tool.AgentStart:
			return tool.Outcome{By: "the hook", Text: "Be quick."}
		case rounds == 0:
			rounds++
			return tool.Outcome{By: "the hook", Text: "Look again."}
		}
		return tool.Outcome{}
	}}
	var heard []string
	says := fan(2, func(int, int) (llm.Parts, error) { return llm.Say("Found."), nil })
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		if strings.HasPrefix(task, "part") {
			heard = append(heard, lastText(req))
		}
		return says(task, turn, req)
	})
	h.hooks = []tool.Hook{w}
	s := h.open()
	defer closed(t, s)
	ended := of[event.Ended](run(t, s, nil, say("start")))
	got := map[string]string{}
	for _, e := range ended {
		got[e.Call] = text(e)
	}
	if !strings.Contains(got["c0"], "Found.") || !strings.Contains(got["c1"], "one is enough") {
		t.Errorf("%v", got)
	}
	if len(heard) != 2 || !strings.Contains(heard[0], "Be quick.") || !strings.Contains(heard[1], "Look again.") {
		t.Errorf("the child heard %q", heard)
	}
	if n := len(w.seen); n != 4 { // two begin, one stops twice
		t.Errorf("asked %d times: %v", n, w.seen)
	}
}

// TestHooksOfTeams checks that a hook can keep a task from being done, and a member from idling.
func TestHooksOfTeams(t *testing.T) {
	var seen []string
	objects := map[tool.Moment]bool{tool.TeammateIdle: true, tool.TaskCompleted: true}
	w := &watching{f: func(p tool.Point) (out tool.Outcome) {
		if p.Moment != tool.TeammateIdle && p.Moment != tool.TaskCompleted {
			return out
		}
		seen = append(seen, string(p.Moment)+" "+p.Who.Name+" "+p.Why+" "+p.Text)
		if objects[p.Moment] {
			out = tool.Outcome{Action: tool.Deny, By: "the hook", Reason: "test it"}
			if p.Moment == tool.TeammateIdle {
				out = tool.Outcome{By: "the hook", Text: "tidy up"}
			}
		}
		objects[p.Moment] = false
		return out
	}}
	heard := ""
	h := newHouse(t, func(task string, turn int, req llm.Request) (llm.Parts, error) {
		switch {
		case task == "start" && turn == 0:
			return llm.Parts{team("a", "add_task", "text", "write it"), spawn("c1", "work", "name", "writer")}, nil
		case task == "work" && turn == 0:
			return llm.Parts{team("0", "claim", "task", "1")}, nil
		case task == "work" && turn < 3:
			return llm.Parts{team("d", "done", "task", "1")}, nil
		case task == "work" && turn == 3:
			return llm.Say("I am done"), nil
		case task == "work":
			heard = lastText(req)
		}
		return llm.Say("so"), nil
	})
	h.hooks = []tool.Hook{w}
	s := h.open()
	defer closed(t, s)
	run(t, s, nil, say("start"))
	want := []string{"task_completed writer 1 write it", "task_completed writer 1 write it", "teammate_idle writer  I am done", "teammate_idle writer  so"}
	if diff := cmp.Diff(want, seen); diff != "" || !strings.Contains(heard, "tidy up") || !s.Status().Tasks.List[0].Done {
		t.Errorf("%s, heard %q, %+v", diff, heard, s.Status().Tasks.List)
	}
}

// TestHooksThatCrash checks that a hook that panics at a child which works in the background, where no call is around
// it, is one that has failed.
func TestHooksThatCrash(t *testing.T) {
	w := &watching{f: func(p tool.Point) tool.Outcome { panic("boom at " + p.Moment) }}
	h := newHouse(t, numbered(map[string]any{"task": "part", "background": true}, func(int, int, llm.Request) (llm.Parts, error) {
		return llm.Say("Found."), nil
	}))
	h.hooks = []tool.Hook{w}
	s := h.open()
	defer closed(t, s)
	var noted []string
	for _, b := range of[event.Steered](run(t, s, nil, say("start"))) {
		noted = append(noted, b.Parts.Text())
	}
	all := strings.Join(noted, "\n")
	if !strings.Contains(all, "boom at subagent_start") || !strings.Contains(all, "boom at subagent_stop") {
		t.Errorf("noted %q", noted)
	}
}

package tui_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/delegate/subagent"
	"github.com/inspan/inspan/internal/extend/skill"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
	"github.com/inspan/inspan/tool"
)

// withTeam gives the front end's sessions subagents that do what their task says.
func withTeam(t *tui.TUI) {
	host := t.Host
	t.Host = func(o app.Options, warn func(string)) *inspan.Host {
		h := host(o, warn)
		agent := h.Agent
		h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
			a, err := agent(ctx, at)
			if err == nil {
				team := &subagent.Team{
					Sessions: h.Sessions(), Roles: skill.BuiltinRoles,
					Make: func(_ context.Context, _ subagent.Order, at inspan.SessionSpec) (*inspan.Agent, error) {
						return &inspan.Agent{Model: &script.Model{}, Tools: agentTools(), Env: tool.Env{Root: at.Root}, Limits: inspan.Limits{Retry: -1}}, nil
					},
				}
				team.Wire(a)
			}
			return a, err
		}
		return h
	}
}

// TestChildAsks checks that a child's question is answered while the run continues, and that an interrupt at its
// question ends everything.
func TestChildAsks(t *testing.T) {
	spawn := call("spawn_agent", `{"task":"call: note {\"word\":\"red\"}\nsay: noted it"}`)
	for _, tc := range []struct{ keys, shown string }{
		{"y" + enter, "■ done"},
		{"n" + enter, "■ done"},
		{esc, "■ cancelled"},
	} {
		s := start(t, 80, 24, withTeam, spawn, sayStep("It is back."))
		s.typed("go", enter)
		s.shows("▸ spawn_agent", "? worker › note asks", "changes /", "1 Yes (y)", "or say what to do instead")
		s.press(tc.keys)
		s.wait(tc.shown+" after "+tc.keys, func(text string) bool {
			return strings.Contains(text, tc.shown) && !strings.Contains(text, "? worker") &&
				(tc.keys == esc || strings.Contains(text, "It is back."))
		})
	}
}

// TestChildInTheBackground checks that a background child is shown while it works, and reported when it returns.
func TestChildInTheBackground(t *testing.T) {
	s := start(t, 100, 24, withTeam, call("spawn_agent", `{"task":"call: slow {\"word\":\"x\"}","background":true}`),
		sayStep("Meanwhile."), sayStep("Heard."))
	s.typed("go", enter)
	s.shows("◦ worker ", "in the background: call: slow", "Meanwhile.")
	s.press(esc)
	s.shows("returned: cancelled", "■ cancelled")
}

// TestSubagents checks that the subagents of a session are listed, and that the work of one can be looked into,
// even by its name.
func TestSubagents(t *testing.T) {
	s := start(t, 100, 30, withTeam, call("spawn_agent", `{"task":"say: before it"}`), call("spawn_agent", `{"task":"say: just this"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("Over.", "■ done")
	s.press("/subagents" + enter)
	s.shows("subagents (2 of 2)", "done · 2", "say: just this")
	s.press("just" + enter)
	text := s.shows("· subagent 2", ": say: just this", "You are agent ", "\n\njust this\n", "so far subagent")
	at := strings.LastIndex(text, "so far subagent ") + len("so far subagent ")
	id, _, _ := strings.Cut(text[at:], "\n")
	s.press("/subagents " + id[strings.LastIndexByte(id, '.')+1:] + enter)
	s.wait("it once more", func(text string) bool { return strings.Count(text, "so far subagent "+id) == 2 })
	s.press("/subagents nobody" + enter)
	s.shows("no subagent is called nobody")
}

// TestMembers checks that a member of a team is listed by its name as idle, and found by it.
func TestMembers(t *testing.T) {
	s := start(t, 100, 30, withTeam, call("spawn_agent", `{"name":"scout","task":"say: just this"}`), sayStep("Over."))
	s.typed("go", enter)
	s.shows("Over.", "■ done")
	s.press("/subagents" + enter)
	s.shows("scout say: just this", "idle · 2")
	s.press(enter)
	s.shows("so far subagent")
	s.press("/subagents Scout" + enter)
	s.wait("it once more", func(text string) bool { return strings.Count(text, "so far subagent") == 2 })
}

// TestTeam checks that the team is shown with its tasks, that a message wakes a member that is idle, and that a person can
// hand over a task.
func TestTeam(t *testing.T) {
	s := start(t, 100, 30, withTeam, call("spawn_agent", `{"name":"scout","task":"say: just this"}`),
		call("team", `{"action":"add_task","text":"paint it","check":"make paint"}`), sayStep("Over."))
	s.press("/team" + enter)
	s.shows("there is no team yet")
	s.typed("go", enter)
	s.shows("Over.", "■ done")
	s.press("/team" + enter)
	s.shows("team (2 of 2)", "scout   idle · $0.0000 · say: just this", "task 1  open · paint it")
	s.press("task" + enter)
	s.shows("give task 1 to (2 of 2)", "any member can claim it")
	s.press("scout" + enter)
	s.shows("task 1 is for scout")
	scout := memberLog(s)
	testkit.WaitFor(t, "the task told to its member", func() bool { return strings.Contains(scout(), "Task 1 is for you") })
	s.press("/team" + enter)
	s.shows("team (2 of 2)")
	s.press(enter)
	s.shows("scout · worker · ", "show its work", "write to it") // it may still work on the task
	s.press("write" + enter)
	s.shows("› /team scout")
	s.press("say: awake again" + enter)
	s.shows("sent to scout")
	testkit.WaitFor(t, "the answer of a member that is awake", func() bool { return strings.Contains(scout(), `"text":"awake again"`) })
	s.press("/team nobody hello" + enter)
	s.shows("no member is called nobody")
}

// memberLog returns a function that reads the log of the only session that works for another.
func memberLog(s *screen) func() string {
	s.t.Helper()
	sessions := s.tui.App.Running.Sessions
	list, err := sessions.List(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(info store.Info) bool { return info.Parent != "" })
	return func() string {
		var b strings.Builder
		for e, err := range store.Events(s.t.Context(), sessions, list[i].ID) {
			line, encoded := event.Encode(e)
			if err != nil || encoded != nil {
				s.t.Fatal(err, encoded)
			}
			b.Write(line)
		}
		return b.String()
	}
}

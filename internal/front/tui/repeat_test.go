package tui_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm/script"
)

// hand is a clock that the test puts forward.
type hand struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (h *hand) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.ahead)
}

func (h *hand) forward(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += d
}

// loops is a front end at such a clock.
func loops(t *testing.T, change func(*tui.TUI), steps ...script.Step) (*screen, *hand) {
	t.Helper()
	clock := &hand{}
	return start(t, 100, 40, func(ui *tui.TUI) {
		ui.SetClock(clock.now)
		if change != nil {
			change(ui)
		}
	}, steps...), clock
}

// rests waits until so many runs have ended and the next one is due in so much time, give or take the time of the test
// itself. The status line of before the end may stay for a moment.
func (s *screen) rests(runs int, clock *hand, want time.Duration) {
	s.t.Helper()
	at := regexp.MustCompile(`· loop at (\d\d:\d\d:\d\d)`)
	s.wait(fmt.Sprintf("the end of run %d, with the next one in %v", runs, want), func(all string) bool {
		found := at.FindAllStringSubmatch(all, -1)
		if strings.Count(all, "■ ") != runs || len(found) == 0 {
			return false
		}
		next, err := time.Parse(time.TimeOnly, found[len(found)-1][1])
		now := clock.now()
		left := time.Date(now.Year(), now.Month(), now.Day(), next.Hour(), next.Minute(), next.Second(), 0, now.Location()).Sub(now)
		if left < -12*time.Hour {
			left += 24 * time.Hour
		}
		return err == nil && left <= want && left >= want-30*time.Second
	})
}

// TestLoop checks when a prompt comes again, until the model says that it is done.
func TestLoop(t *testing.T) {
	s, clock := loops(t, nil, sayStep("Heron."), sayStep("Egret.\nAll LOOP DONE soon."), sayStep("Stork."), sayStep("Over.\n LOOP DONE \n"))
	s.typed("/loop 5m which bird?", enter)
	s.shows("repeats every 5m00s after a run has ended: which bird?", "› which bird?", "[This prompt repeats every 5m00s.", "Heron.")
	s.rests(1, clock, 5*time.Minute)
	clock.forward(4 * time.Minute)
	s.typed("/loop", enter)
	if all := s.shows(", every 5m00s after a run has ended: which bird?"); strings.Contains(all, "Egret") {
		t.Error("it came too early")
	}
	clock.forward(time.Minute)
	s.shows("Egret.")
	s.rests(2, clock, 5*time.Minute)
	clock.forward(4 * time.Minute)
	s.typed("hello", enter) // a run of the person's puts it off
	s.shows("Stork.")
	s.rests(3, clock, 5*time.Minute)
	clock.forward(5 * time.Minute)
	s.shows("Over.", "the loop has ended: the model says that it is done")
	s.wait("the end of it in the status line", func(all string) bool { return !strings.Contains(all, "· loop ") })
	s.typed("/loop", enter)
	s.shows("nothing loops; begin with")
}

// TestLoopEnds checks the other ends of a loop.
func TestLoopEnds(t *testing.T) {
	limited := func(ui *tui.TUI) {
		made := ui.Host
		ui.Host = func(o app.Options, warn func(string)) *inspan.Host {
			h := made(o, warn)
			agent := h.Agent
			h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				a, err := agent(ctx, at)
				if err == nil {
					a.Limits.Turns = 1
				}
				return a, err
			}
			return h
		}
	}
	says := []script.Step{sayStep("Heron."), sayStep("Egret.")}
	for _, c := range []struct {
		name   string
		change func(*tui.TUI)
		steps  []script.Step
		then   func(*screen)
		want   string
	}{
		{"off", nil, says, func(s *screen) { s.typed("/loop off", enter) }, "the loop has ended"},
		{"esc", nil, says, func(s *screen) { s.press(esc) }, "the loop has ended"},
		{"another session", nil, says, func(s *screen) { s.typed("/new", enter) }, "the loop has ended: its session is closed"},
		{"a limit", limited, []script.Step{call("look", `{"word":"blue"}`)}, nil, "the loop has ended: a limit has stopped the run: max turns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, clock := loops(t, c.change, c.steps...)
			s.typed("/loop 10s go", enter)
			if c.then != nil {
				s.rests(1, clock, 10*time.Second)
				c.then(s)
			}
			s.wait(c.want, func(all string) bool { return strings.Contains(all, c.want) && !strings.Contains(all, "· loop ") })
			clock.forward(time.Hour)
			if c.then == nil { // it is asked whether to continue
				s.press("n")
				s.shows("say what to do")
			}
			s.typed("/loop", enter)
			if all := s.shows("nothing loops"); strings.Contains(all, "Egret") {
				t.Error("it goes on")
			}
		})
	}
}

// TestLoopFails has each run fail.
func TestLoopFails(t *testing.T) {
	s, clock := loops(t, nil, script.Step{Fail: 400, Times: 9})
	s.typed("/loop 10s go", enter)
	s.rests(1, clock, 10*time.Second)
	clock.forward(10 * time.Second)
	s.rests(2, clock, 10*time.Second)
	clock.forward(10 * time.Second)
	s.shows("the loop has ended: 3 runs in a row have failed")
}

// TestLoopWaits checks that no prompt comes during a run or a question.
func TestLoopWaits(t *testing.T) {
	s, clock := loops(t, nil, call("slow", `{"word":"blue"}`), call("note", `{"word":"red"}`), sayStep("Egret."), sayStep("Stork."))
	s.typed("begin", enter)
	s.shows("▸ slow")
	s.typed("/loop 10s go on", enter)
	s.shows("loop after this run")
	clock.forward(time.Hour)
	s.press(esc)
	s.rests(1, clock, 10*time.Second)
	clock.forward(10 * time.Second)
	s.shows("? note asks", "loop after this run")
	clock.forward(time.Hour)
	s.press("y")
	s.shows("Egret.")
	s.rests(2, clock, 10*time.Second)
	if n := strings.Count(s.text(), "[This prompt repeats"); n != 1 {
		t.Errorf("the prompt came %d times", n)
	}
}

// TestLoopArguments checks the arguments of /loop.
func TestLoopArguments(t *testing.T) {
	s, clock := loops(t, func(ui *tui.TUI) {
		greets := 0
		ui.Commands = []tui.Command{{Name: "greet", Prompt: func(_ context.Context, args string) (string, error) {
			greets++
			return "greet " + args + strings.Repeat("!", greets), nil
		}}}
	}, sayStep("Heron."), sayStep("Egret."), sayStep("Stork."))
	for typed, want := range map[string]string{
		"/loop 9s go":  "/loop: 9s is too short; use at least 10s",
		"/loop 5m":     "/loop: say what to repeat, such as: /loop 5m check the build",
		"/loop /nope":  "/loop: unknown command /nope",
		"/loop /todo":  "/loop: /todo is not a prompt for the model; only prompts repeat",
		"/loop off":    "nothing loops",
		"/loop -5m go": "/loop: -5m is too short",
	} {
		s.typed(typed, enter)
		s.shows(want)
	}
	s.typed("/loop 1m /greet you", enter)
	s.shows("greet you!\n", "Heron.")
	s.rests(1, clock, time.Minute)
	clock.forward(time.Minute)
	s.shows("greet you!!\n", "Egret.")
	s.rests(2, clock, time.Minute)
	s.typed("/loop go", enter) // in the place of that
	s.shows("repeats every 10m00s", "Stork.")
	s.rests(3, clock, 10*time.Minute)
}

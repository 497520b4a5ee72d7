package tui_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
	"github.com/inspan/inspan/store"
)

// cutOff leaves a session of the front end whose run is cut off in the middle.
func (s *screen) cutOff() *inspan.Session {
	s.t.Helper()
	session, err := s.tui.Host(app.Options{}, nil).New(s.t.Context(), s.tui.Root)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	for e, err := range session.Run(s.t.Context(), event.Say("go")) {
		if err != nil {
			s.t.Fatal(err)
		}
		if _, ok := e.Body.(event.Replied); ok {
			break
		}
	}
	return session
}

// drivenElsewhere opens a session whose lease another log has, which stands for another process.
func drivenElsewhere(t *testing.T, more ...script.Step) (*screen, store.Log) {
	t.Helper()
	first := start(t, 80, 24, nil, append([]script.Step{call("look", `{"word":"blue"}`)}, more...)...)
	session := first.cutOff()
	log, err := first.tui.App.Store().Open(t.Context(), session.ID())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Lease(t.Context()); err != nil {
		t.Fatal(err)
	}
	return start(t, 100, 24, func(next *tui.TUI) {
		next.App, next.Host, next.Session, next.Root = first.tui.App, first.tui.Host, session.ID(), first.tui.Root
	}), log
}

// TestDrivenElsewhere opens a session that another process drives: nothing goes into it
// from here before that one is gone.
func TestDrivenElsewhere(t *testing.T) {
	s, log := drivenElsewhere(t, sayStep("Over."))
	driven := fmt.Sprintf("process %d drives this session; join it: inspan attach %s", os.Getpid(), log.ID())
	s.shows("› another process runs this session; Enter steers it, Esc interrupts it")
	s.press(enter)
	s.shows("\n" + driven)
	s.press("/continue" + enter)
	s.shows("\n" + driven)
	s.typed("and now", enter)
	s.shows("↳ steering: and now")
	if err := log.Release(); err != nil {
		t.Fatal(err)
	}
	s.press(enter)
	if text := s.shows("Over.", "■ done"); strings.Contains(text, "busy") {
		t.Error(text)
	}
}

// TestInterruptsElsewhere interrupts a run of another process, and leaves it to that process.
func TestInterruptsElsewhere(t *testing.T) {
	s, log := drivenElsewhere(t)
	s.shows("Esc interrupts it")
	s.press(esc)
	s.shows("interrupting")
	s.wait("the interrupt", func(string) bool {
		for e, err := range s.tui.App.Store().Events(t.Context(), log.ID()) {
			if b, ok := e.Body.(event.Cancelled); err == nil && ok {
				return b.By == "the user"
			}
		}
		return false
	})
	s.press(ctrlC + ctrlC)
	if code, err := s.ends(); code != 0 || err != nil || !strings.Contains(s.text(), "join it with: inspan attach "+log.ID()) {
		t.Errorf("%d, %v\n%s", code, err, s.text())
	}
}

// TestCutOffGoesOn checks that an interrupted run without a driver continues here.
func TestCutOffGoesOn(t *testing.T) {
	first := start(t, 80, 24, nil, call("look", `{"word":"blue"}`), sayStep("Over."))
	id := first.cutOff().ID()
	s := start(t, 80, 24, func(next *tui.TUI) {
		next.App, next.Host, next.Session, next.Root = first.tui.App, first.tui.Host, id, first.tui.Root
	})
	s.shows("› the run was cut off; Enter continues it")
	s.press(enter)
	s.shows("Over.", "■ done")
}

// TestMessageWaits checks that a message to a session that is idle here waits for the person, and is not taken for a
// run that was cut off.
func TestMessageWaits(t *testing.T) {
	s := start(t, 100, 24, nil, sayStep("One."), sayStep("Two."))
	s.typed("go", enter)
	s.shows("One.", "■ done", "say what to do")
	other, err := s.tui.Host(app.Options{}, nil).Open(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Send(t.Context(), event.Said{Parts: llm.Say("more"), By: "inspan send"}); err != nil {
		t.Fatal(err)
	}
	s.shows("› a message waits; Enter begins the run")
	s.press(enter)
	s.shows("Two.")
}

// TestOpenHere checks that other processes see the session that is open here, and not for longer.
func TestOpenHere(t *testing.T) {
	s := start(t, 100, 24, nil, sayStep("One."))
	s.typed("go", enter)
	s.shows("One.", "■ done", "say what to do")
	id, _ := s.modes()
	table := s.tui.App.Running
	if list := table.WithOpen(t.Context(), nil); len(list) != 1 || list[0].ID != id || list[0].State != "idle" {
		t.Errorf("%+v", list)
	}
	s.press(ctrlD)
	if _, err := s.ends(); err != nil {
		t.Fatal(err)
	}
	if list := table.WithOpen(t.Context(), nil); len(list) != 0 {
		t.Errorf("it was closed: %+v", list)
	}
}

// TestNamedFiles checks that a file that a message names comes with it, as news and not as a wish, and that the message
// is shown as it was written.
func TestNamedFiles(t *testing.T) {
	s := start(t, 100, 24, nil, sayStep("One."), sayStep("Two."), call("slow", `{"word":"turning"}`))
	if err := os.WriteFile(filepath.Join(s.tui.Root, "plan.txt"), []byte("first the tests\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.typed("do @plan.txt now", enter)
	s.shows("› do @plan.txt", "· with your message the model gets plan.txt", "One.", "■ done")
	s.typed("mail a@b.c", enter)
	s.shows("Two.")
	s.typed("go", enter)
	s.shows("turning")
	s.typed("again @plan.txt now", enter)
	s.wait("the file again", func(text string) bool { return strings.Count(text, "for the model: plan.txt") > 0 })
	id, _ := s.modes()
	if text := s.text(); strings.Contains(text, "first the tests") {
		t.Errorf("the file is shown:\n%s", text)
	}
	if list, err := s.tui.App.Store().List(t.Context()); err != nil || list[0].Preview != "do @plan.txt now" {
		t.Errorf("the session is called %q, %v", list[0].Preview, err)
	}
	list, err := s.tui.App.Running.Said(t.Context(), id)
	if want := []string{"do @plan.txt now", "mail a@b.c", "go", "again @plan.txt now"}; err != nil || !slices.Equal(list, want) {
		t.Errorf("%q, %v", list, err)
	}
	told := 0
	for e, err := range s.tui.App.Running.Past(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(event.Said); ok && strings.Contains(b.Parts.Text(), "first the tests") && !b.Origin.Leads() {
			told++
		}
	}
	if told != 2 {
		t.Errorf("the model was told %d times", told)
	}
}

// TestRunBeginsElsewhere checks that a run that another process begins in the session that is open here is not taken
// for one that was cut off.
func TestRunBeginsElsewhere(t *testing.T) {
	s := start(t, 100, 24, nil, sayStep("One."), call("slow", `{"word":"turning"}`))
	s.typed("go", enter)
	s.shows("One.", "■ done", "say what to do")
	other, err := s.tui.Host(app.Options{}, nil).Open(t.Context(), "last")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for _, err := range other.Run(ctx, event.Say("more")) {
			if err != nil {
				return
			}
		}
	})
	defer running.Wait()
	defer stop()
	s.shows("› another process runs this session; Enter steers it, Esc interrupts it")
}

// TestContinueTellsTheTruth checks that only a run that stopped before its end is continued.
func TestContinueTellsTheTruth(t *testing.T) {
	s := start(t, 80, 24, nil, sayStep("One."))
	s.press("/continue" + enter)
	s.shows("there is no run to continue")
	s.typed("go", enter)
	s.shows("One.", "■ done")
	s.press("/continue" + enter)
	if text := s.shows("the run is done; type a new task"); strings.Contains(text, "cut off") {
		t.Error(text)
	}
}

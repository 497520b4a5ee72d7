package tui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/llm/script"
)

const ctrlR = "\x12"

// TestSearchFindsAllMessages holds that Ctrl-R finds what was said in all sessions of the folder, not
// only what each began with, and a command of the person's own as it was typed.
func TestSearchFindsAllMessages(t *testing.T) {
	first := start(t, 80, 24, nil, sayStep("One."), sayStep("Two."), sayStep("Three."))
	first.press("!echo own" + enter)
	first.shows("! echo own", "  own")
	first.typed("hello", enter)
	first.shows("■ done")
	first.typed("touch the brakes", enter)
	first.wait("two answers", func(text string) bool { return strings.Count(text, "■ done") == 2 })
	first.press("/new" + enter)
	first.shows("your next message starts a new session")
	first.typed("in another session", enter)
	first.wait("three answers", func(text string) bool { return strings.Count(text, "■ done") == 3 })
	first.press(ctrlD)
	_, _ = first.ends()

	next := func(change func(*tui.TUI)) *screen {
		return start(t, 80, 24, func(next *tui.TUI) {
			next.App, next.Host, next.Root = first.tui.App, first.tui.Host, first.tui.Root
			change(next)
		}, script.Step{})
	}
	s := next(func(*tui.TUI) {})
	for range 2 { // the second time it knows them
		s.press(ctrlR)
		s.shows("history (4 of 4)", "› in another session\n  touch the brakes\n  hello\n  !echo own\n")
		s.press(esc)
		s.shows("› say what to do")
	}
	s.press(ctrlR + "own" + enter)
	s.shows("› !echo own\n")

	elsewhere := next(func(next *tui.TUI) { next.Root = t.TempDir() })
	elsewhere.press(ctrlR)
	elsewhere.shows("history (0 of 0)")

	// What the session that is gone on with was told of a command is one, too.
	id := ""
	list, err := first.tui.App.Store().List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	for _, info := range list {
		if info.Preview == "!echo own" {
			id = info.ID
		}
	}
	resumed := next(func(next *tui.TUI) { next.Session = id })
	resumed.shows("· session " + id)
	resumed.press(ctrlR + "!ec")
	resumed.shows("history (1 of 4)", "› !echo own")
}

// TestSearchIsBounded holds that of very many sessions those that are not read are found by what they
// began with.
func TestSearchIsBounded(t *testing.T) {
	s := start(t, 80, 24, nil, script.Step{})
	host := s.tui.Host(app.Options{}, nil)
	for i := range 205 {
		session, err := host.New(t.Context(), s.tui.Root)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range []string{"first", "second"} {
			if err := session.Send(t.Context(), event.Say(fmt.Sprint(what, " of ", i))); err != nil {
				t.Fatal(err)
			}
		}
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.press(ctrlR)
	s.shows("history (405 of 405)", "second of 204\n  first of 204\n")
}

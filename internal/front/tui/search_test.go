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

// TestSearchFindsAllMessages checks that Ctrl-R finds every message in all sessions of the folder, not only first ones,
// and the person's own commands as typed.
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

	// The resumed session's note about a command is one, too.
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

// TestSearchIsBounded checks that among very many sessions the unread ones are found by their first message.
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

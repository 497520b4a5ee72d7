package tui_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/install/config"
)

// modes are the modes that the only session has had.
func (s *screen) modes() (id string, modes []string) {
	s.t.Helper()
	list, err := s.tui.App.Store().List(s.t.Context())
	if err != nil || len(list) != 1 {
		s.t.Fatal(list, err)
	}
	for e, err := range s.tui.App.Store().Events(s.t.Context(), list[0].ID) {
		if err != nil {
			s.t.Fatal(err)
		}
		if b, ok := e.Body.(event.Switched); ok && b.Mode != "" {
			modes = append(modes, string(b.Mode))
		}
	}
	return list[0].ID, modes
}

// TestResumeThatFails checks that everything stays as it was: the mode before the first session, and the session that
// is open.
func TestResumeThatFails(t *testing.T) {
	s := start(t, 80, 24, func(t *tui.TUI) {
		t.App.Config = config.Config{Mode: "auto"}
		t.Options.Mode = "plan"
	}, sayStep("One."), sayStep("Two."), sayStep("Three."))
	fails := func(times int) {
		t.Helper()
		s.press("/resume nope" + enter)
		s.wait("the error", func(text string) bool { return strings.Count(text, `no session matches "nope"`) == times })
	}
	fails(1)
	s.typed("first", enter)
	s.shows("One.", "■ done")
	fails(2)
	id, _ := s.modes()
	other, err := s.tui.Host(app.Options{}, nil).Open(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, err := range other.Run(t.Context(), event.Say("elsewhere")) {
		if err != nil {
			t.Fatal(err)
		}
	}
	s.shows("› elsewhere", "Two.") // the session is followed as before
	s.wait("its end", func(text string) bool { return strings.Count(text, "■ done") == 2 })
	s.typed("second", enter)
	s.shows("Three.")
	s.wait("the end", func(text string) bool { return strings.Count(text, "■ done") == 3 })
	if _, modes := s.modes(); len(modes) != 1 || modes[0] != "plan" {
		t.Errorf("modes %v", modes)
	}
}

// TestResumeOfTheOpenSession checks that the open session can be opened again, and stays open if that fails.
func TestResumeOfTheOpenSession(t *testing.T) {
	var broken atomic.Bool
	s := start(t, 80, 24, func(t *tui.TUI) {
		host := t.Host
		t.Host = func(o app.Options, warn func(string)) *inspan.Host {
			h := host(o, warn)
			agent := h.Agent
			h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				if broken.Load() {
					return nil, errors.New("no agent today")
				}
				return agent(ctx, at)
			}
			return h
		}
	}, sayStep("One."), sayStep("Two."), sayStep("Three."))
	s.typed("first", enter)
	s.shows("One.", "■ done")
	id, _ := s.modes()
	broken.Store(true)
	for i, command := range []string{"/resume " + id, "/fork"} {
		s.press(command + enter)
		s.wait("the error", func(text string) bool { return strings.Count(text, "no agent today") == i+1 })
	}
	s.typed("second", enter)
	s.shows("Two.")
	s.wait("the end", func(text string) bool { return strings.Count(text, "■ done") == 2 })
	broken.Store(false)
	s.press("/resume " + id + enter)
	s.shows("· session " + id)
	s.typed("third", enter)
	s.wait("another answer", func(text string) bool { return strings.Count(text, "■ done") == 5 })
	if list, err := s.tui.App.Store().List(t.Context()); err != nil || len(list) != 1 {
		t.Error(list, err) // of what was to be the fork nothing is left
	}
}

// TestNewSessionKeepsTheModel checks that a new session has the model of the command line also after one was gone on
// with that had its own.
func TestNewSessionKeepsTheModel(t *testing.T) {
	var mu sync.Mutex
	var models []string
	s := start(t, 80, 24, func(t *tui.TUI) {
		t.Options.Model = "script/asked-for"
		host := t.Host
		t.Host = func(o app.Options, warn func(string)) *inspan.Host {
			mu.Lock()
			defer mu.Unlock()
			models = append(models, o.Model)
			return host(o, warn)
		}
	}, sayStep("One."))
	s.typed("first", enter)
	s.shows("One.", "■ done")
	id, _ := s.modes()
	s.press("/resume " + id + enter)
	s.shows("· session " + id)
	s.press("/new" + enter)
	s.shows("your next message starts a new session")
	s.typed("second", enter)
	s.wait("another answer", func(text string) bool { return strings.Count(text, "■ done") == 3 })
	mu.Lock()
	defer mu.Unlock()
	if diff := cmp.Diff([]string{"script/asked-for", "", "script/asked-for"}, models); diff != "" {
		t.Error(diff)
	}
}

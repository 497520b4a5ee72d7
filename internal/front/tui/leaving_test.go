package tui_test

import (
	"context"
	"strings"
	"testing"

	"github.com/inspan/inspan"
	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/tui"
	"github.com/inspan/inspan/internal/install/app"
	"github.com/inspan/inspan/internal/testkit"
)

// TestLeavingAtASet checks that who leaves at the question about a set leaves it open: the session that is resumed asks
// it again, and an answer runs the calls; so does a mode.
func TestLeavingAtASet(t *testing.T) {
	for name, key := range map[string]string{"answer": "y", "mode": "\x1b[Z"} {
		t.Run(name, func(t *testing.T) { leavingAtASet(t, key) })
	}
}

func leavingAtASet(t *testing.T, key string) {
	t.Helper()
	first := start(t, 80, 24, func(t *tui.TUI) {
		host := t.Host
		t.Host = func(o app.Options, warn func(string)) *inspan.Host {
			h := host(o, warn)
			agent := h.Agent
			h.Agent = func(ctx context.Context, at inspan.SessionSpec) (*inspan.Agent, error) {
				a, err := agent(ctx, at)
				a.Tools = append(a.Tools, testkit.Fill("note", `{"word":"red"}`, `{"word":"blue"}`))
				return a, err
			}
			return h
		}
	}, call("fill", "{}"), sayStep("Over."))
	first.typed("go", enter)
	first.shows("? a set of 2 calls asks", "or say what to do instead")
	first.press(ctrlD)
	if code, err := first.ends(); code != 0 || err != nil {
		t.Error(code, err)
	}
	id, _ := first.modes()
	for e, err := range first.tui.App.Store().Events(t.Context(), id) {
		if _, cancelled := e.Body.(event.Cancelled); cancelled || err != nil {
			t.Errorf("who leaves has interrupted the run: %+v, %v", e.Body, err)
		}
	}
	again := start(t, 80, 24, func(next *tui.TUI) { next.App, next.Host, next.Session = first.tui.App, first.tui.Host, id })
	again.shows("? a set of 2 calls asks", "or say what to do instead")
	again.press(key)
	if text := again.shows("noted red", "noted blue", "Over.", "■ done"); strings.Contains(text, "after this run") {
		t.Errorf("a run that waits has another mode at once:\n%s", text)
	}
}

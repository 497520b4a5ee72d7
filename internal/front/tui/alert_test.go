package tui_test

import (
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/front/tui"
)

// TestCallsWhoIsAway checks that a person is called when a question waits and when a run has ended, in the way that
// they want, if another window has the focus, and not otherwise.
func TestCallsWhoIsAway(t *testing.T) {
	const asks, done = "\x1b]9;inspan: note asks\x1b\\", "\x1b]9;inspan: done\x1b\\"
	for name, tc := range map[string]struct {
		to    []string // as the settings have it
		focus string
		want  []string // in this order
		never string
	}{
		"away":         {nil, "\x1b[O", []string{"\x1b[?1004h", asks + "\a", done + "\a"}, "\a\a"},
		"bell":         {[]string{"bell"}, "\x1b[O", []string{"\a", "\a"}, "\x1b]9;"},
		"desktop":      {[]string{"desktop"}, "\x1b[O", []string{asks, done}, "\a"},
		"here":         {nil, "\x1b[I", nil, "\a"},
		"not told yet": {nil, "", nil, "\a"}, // keys are being pressed
		"off":          {[]string{}, "\x1b[O", nil, "\x1b[?1004h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VTE_VERSION", "")
			t.Setenv("TERM", "xterm-256color")
			s := start(t, 60, 20, func(u *tui.TUI) { u.App.Config.Notify.To = tc.to }, call("note", `{"word":"x"}`), sayStep("that is it"))
			raw := func() string { return strings.ReplaceAll(s.raw.String(), "\x1b]11;?\a", "") } // asks for a colour
			s.press(tc.focus + "go" + enter)
			s.shows("note asks", "or say what to do instead")
			s.press("y")
			s.shows("that is it", "■ done")
			s.wait("all calls", func(string) bool {
				rest := raw()
				for _, want := range tc.want {
					_, after, there := strings.Cut(rest, want)
					if !there {
						return false
					}
					rest = after
				}
				return true
			})
			s.press(ctrlD)
			if _, err := s.ends(); err != nil || strings.Contains(raw(), tc.never) {
				t.Errorf("%v; there is %q in %q", err, tc.never, raw())
			}
		})
	}
}

package tui_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/inspan/inspan/internal/front/tui"
)

// TestStatusLine checks that the command of the settings gets the state, that its line is shown clean, and that one
// that fails leaves our own line.
func TestStatusLine(t *testing.T) {
	for name, tc := range map[string]struct{ command, shown string }{
		"what it prints":   {`printf '\033[31mred\033[0m\033]0;evil\007 %s\nsecond\n' "$(pwd | wc -l)"`, "\nred 1"},
		"the state":        {`cat > state; grep -o '"mode":"[a-z]*"' state`, "\n\"mode\":\"ask\""},
		"no session yet":   {`grep -o '"context_window_size":[a-z0-9]*'`, "\n\"context_window_size\":null"},
		"it fails":         {`echo shown; exit 3`, "\nask"},
		"it prints naught": {`true`, "\nask"},
		"it is not there":  {`no-such-program-of-anyone`, "\nask"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, 80, 24, func(t *tui.TUI) { t.App.Config.TUI.StatusLine = tc.command }, sayStep("Fine."))
			text := s.shows(tc.shown)
			if strings.Contains(text, "second") || strings.Contains(s.sequences(), "]0;evil") {
				t.Errorf("%q", text)
			}
			if name != "the state" {
				return
			}
			s.typed("go", enter)
			s.shows("■ done")
			s.press("\x1b[Z")
			s.shows("\n\"mode\":\"edit\"")
			raw, err := os.ReadFile(filepath.Join(s.tui.Root, "state"))
			for _, want := range []string{
				`"hook_event_name":"Status"`, `"session_id":"2`, `"model":{"id":"script/commands","display_name":"commands"}`,
				`"context_window_size":200000`, `"total_cost_usd":0`, `"project_dir":"` + s.tui.Root + `"`,
			} {
				if err != nil || !strings.Contains(string(raw), want) {
					t.Errorf("no %s in %s, %v", want, raw, err)
				}
			}
		})
	}
}

// TestTheme checks what makes the look light: the settings, then the terminal, then COLORFGBG.
func TestTheme(t *testing.T) {
	const dark, light = "38;5;75mvar", "38;5;25mvar"
	for name, tc := range map[string]struct {
		theme, colors, answer string
		light                 bool
	}{
		"nothing is known":         {"", "", "", false},
		"the variable":             {"", "0;15", "", true},
		"the variable, of three":   {"auto", "0;default;7", "", true},
		"the variable, dark":       {"", "15;0", "", false},
		"the variable, dark grey":  {"", "15;8", "", false},
		"no sense in the variable": {"", "white", "", false},
		"the terminal":             {"", "15;0", "\x1b]11;rgb:ffff/ffff/ffff\x07", true},
		"the setting":              {"dark", "0;15", "\x1b]11;rgb:ffff/ffff/ffff\x07", false},
		"the other setting":        {"light", "15;0", "\x1b]11;rgb:0000/0000/0000\x07", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("COLORFGBG", tc.colors)
			s := start(t, 80, 24, func(t *tui.TUI) { t.App.Config.TUI.Theme = tc.theme }, sayStep("```go\nvar x = \"a\"\n```"))
			s.press(tc.answer)
			s.typed("go", enter)
			s.shows("■ done", "var x =")
			raw := s.sequences()
			if got := strings.Contains(raw, light); got != tc.light || got == strings.Contains(raw, dark) {
				t.Errorf("light is %v: %q", got, raw)
			}
		})
	}
}

// TestThemeOfTheMoment checks that a theme counts at once, and that the terminal is asked again for auto.
func TestThemeOfTheMoment(t *testing.T) {
	const dark, light = "38;5;75mvar", "38;5;25mvar"
	s := start(t, 80, 24, settled, sayStep("```go\nvar x = \"a\"\n```"), sayStep("```go\nvar y = \"a\"\n```"))
	s.press("/theme light" + enter)
	s.shows("Set tui.theme in ")
	s.typed("go", enter)
	s.shows("■ done", "var x =")
	if raw := s.sequences(); !strings.Contains(raw, light) || strings.Contains(raw, dark) {
		t.Errorf("%q", raw)
	}
	asked := strings.Count(s.sequences(), "\x1b]11;?")
	s.press("/theme auto" + enter)
	s.wait("the answer", func(text string) bool { return strings.Count(text, "Set tui.theme in ") == 2 })
	s.press("\x1b]11;rgb:0000/0000/0000\x07")
	s.typed("on", enter)
	s.shows("var y =")
	if raw := s.sequences(); !strings.Contains(raw, dark) || strings.Count(raw, "\x1b]11;?") <= asked {
		t.Errorf("%q", raw)
	}
}

// TestFact checks that a line that begins with # is remembered or sent, as the person chooses, and that it is not
// lost if they choose nothing.
func TestFact(t *testing.T) {
	var added []string
	s := start(t, 80, 24, func(t *tui.TUI) {
		t.Commands = []tui.Command{{Name: "memory", Print: func(_ context.Context, args string) (string, error) {
			added = append(added, args)
			return "saved", nil
		}}}
	}, sayStep("One."), sayStep("Two."), sayStep("Three."))
	s.typed("# the tests need tmux", enter)
	s.shows("a line that begins with # (2 of 2)", "remember it", "send it")
	s.press(esc)
	s.shows("› # the tests need tmux\n")
	s.press(enter)
	s.shows("(2 of 2)")
	s.press(enter)
	s.shows("saved", "› say what to do")
	if len(added) != 1 || added[0] != "add the tests need tmux" {
		t.Errorf("%q", added)
	}
	s.typed("# a title", enter)
	s.shows("(2 of 2)")
	s.press(down + enter)
	s.shows("› # a title", "One.", "■ done")
	s.typed("#1 is a number", enter)
	s.shows("› #1 is a number", "Two.")
	s.press("# a title" + "\n" + "and text")
	s.shows("  and text")
	s.press(enter)
	s.shows("Three.")
	if len(added) != 1 {
		t.Errorf("%q", added)
	}
}

// TestScreenReader checks that a screen reader gets words, and nothing that moves by itself.
func TestScreenReader(t *testing.T) {
	s := start(t, 80, 24, func(t *tui.TUI) { t.App.Config.TUI.ScreenReader = true },
		call("look", `{"word":"blue"}`), call("note", `{"word":"red"}`), call("slow", `{"word":"turning"}`),
		sayStep("A table:\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nOver."))
	s.typed("go", enter)
	s.shows("You said: go", "Call: look", "Result: blue", "Question: note asks", "or say what to do instead")
	s.press("y")
	s.shows("noted red", "Call: slow")
	s.press("!echo mine" + enter)
	s.shows("Waiting: for the model: $ echo mine")
	if text := s.text(); strings.Contains(text, "turning\n") || strings.Contains(text, "at 1") {
		t.Errorf("progress is shown:\n%s", text)
	}
	s.press(esc)
	s.shows("Failed: cancelled", "You ran: echo mine\n  mine", "End: cancelled")
	s.typed("on", enter)
	text := s.shows("Over.", "End: done")
	for _, r := range text {
		if r >= 0x2500 && r <= 0x25FF || strings.ContainsRune("▸✓✗■∙☐", r) {
			t.Errorf("%q is drawn:\n%s", r, text)
			break
		}
	}
}

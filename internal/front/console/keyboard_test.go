//go:build linux || darwin

package console_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/creack/pty"

	"github.com/inspan/inspan/event"
	"github.com/inspan/inspan/internal/front/console"
	"github.com/inspan/inspan/internal/testkit"
	"github.com/inspan/inspan/llm"
	"github.com/inspan/inspan/llm/script"
)

// At a terminal y and n answer by themselves, other text by Enter, and text from before the question
// not at all.
func TestKeysAtATerminal(t *testing.T) {
	for _, tc := range []struct {
		early, keys string
		ran         []string
		shown       string
	}{
		{"", "y", []string{"a"}, "✓"},
		{"", "n", nil, "Denied by the user."},
		{"y", "n", nil, "(dropped what was typed before the question)"},
		{"yes\n", "n", nil, "Denied by the user."},
		{"", "s\r", []string{"a"}, "✓"},
		{"", "yes\r", []string{"a"}, "✓"},
		{"", "use ç\x7fc\x1b[D\r", nil, "Denied by the user: use c"},
		{"", "gone\x15kept\r", nil, "Denied by the user: kept"},
		{"", "\rn", nil, "Please answer; nothing runs before you do."},
		{"", "\x1b[B\r", []string{"a"}, "instead: yes\n"},
		{"", "\x1bOB\x1b[B\x1b[A\r", []string{"a"}, "✓"},
		{"", "\x1b[A\r", nil, "Denied by the user."},
		{"", "\tgently\r", []string{"a"}, "told the model: gently"},
		{"", "not\t that\r", nil, "Denied by the user: not that"},
		{"", "\x1b[A\t\r", nil, "Denied by the user."},
		{"", "\x04", nil, "cancelled"},
	} {
		t.Run(fmt.Sprintf("%q", tc.early+tc.keys), func(t *testing.T) {
			t.Parallel()
			window, tty, err := pty.Open()
			if err != nil {
				t.Skip(err)
			}
			defer tty.Close()
			go func() { _, _ = io.Copy(io.Discard, window) }()
			var ran []string
			var screen screen
			c := &console.Console{Out: &screen, Err: &screen}
			c.Person = console.NewPerson(c, tty, &screen)
			done := make(chan int, 1)
			s := opened(t, &ran, step("I write.", "a"), script.Step{Parts: llm.Say("Done.")})
			types := func(text string) {
				if _, err := io.WriteString(window, text); err != nil {
					t.Error(err)
				}
			}
			types(tc.early)
			go func() { done <- c.Run(t.Context(), s, event.Say("go")) }()
			screen.shows(t, "or say what to do instead: ")
			first, rest := tc.keys, ""
			if strings.HasPrefix(tc.keys, "\r") { // what follows is for the question that is put again
				first, rest = tc.keys[:1], tc.keys[1:]
			}
			types(first)
			if rest != "" {
				testkit.WaitFor(t, "the question again", func() bool {
					return strings.Count(screen.String(), "or say what to do instead: ") == 2
				}, screen.String)
				types(rest)
			}
			testkit.Receive(t, "the run to end", done)
			if !slices.Equal(ran, tc.ran) || !strings.Contains(screen.String(), tc.shown) {
				t.Errorf("ran %q:\n%s", ran, screen.String())
			}
		})
	}
}
